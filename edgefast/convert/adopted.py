"""Adopted: objects of Envoy Gateway as the objects of edgefast that `--adopt` serves.

In: the snapshot of files with and without adoption, and what reading them reported. Out: objects with public names, each with a
comment about what was not carried over. Routes and Gateways are in the output if a policy or a reference changes them.
Must never: make another decision than edgefast/translate/adoption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.kinds import EDGE_GROUP, Object, ref_of
from edgefast.api.migration.field_mappings import describe_field
from edgefast.api.model.fail_closed import is_closed
from edgefast.api.snapshot import Snapshot
from edgefast.convert.conversion import Converted
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.adoption.expand import Adoption, expand_adopted
from edgefast.translate.adoption.route_rules import MARK
from edgefast.translate.settings import Settings

__all__ = ["AdoptedConversion", "convert_adopted"]

_CLUSTER = "cluster.yaml"
#: What follows the name of a policy or Gateway in the name of a made object.
_SUFFIXES = {"RateLimitFilter": "limits", "EdgeProxy": "proxy"}
#: Fields of a policy that are no settings.
_BARE = {"targetRefs", "mergeType"}
_POLICIES = (SecurityPolicy, BackendTrafficPolicy)
_Name = tuple[str, str, str]


class AdoptedConversion(msgspec.Struct, frozen=True, kw_only=True):
    """The output; `problems`: what was not carried over."""

    objects: tuple[Converted, ...]
    problems: tuple[Problem, ...] = ()


def convert_adopted(
    plain: Snapshot, adopted: Snapshot, settings: Settings, problems: Iterable[Problem]
) -> AdoptedConversion:
    """Convert the objects of `adopted` that are not in `plain`, or differ there."""
    told = tuple(problems)
    adoption = expand_adopted(adopted, settings, None)
    after = adoption.snapshot
    names = dict(_name_made(adoption, after))
    notes: dict[_Name, list[str]] = {}
    for one in (*told, *adoption.problems):
        if one.object is not None:
            key = (one.object.kind, one.object.namespace, one.object.name)
            notes.setdefault(key, []).append(_describe(one))
    found: list[Converted] = []
    left_out: list[Problem] = []
    for obj in _list_changed(plain, adoption):
        ref = ref_of(obj)
        key = (ref.kind, ref.namespace, ref.name)
        closing = next((one.path for one in obj.unserved if one.closes != "nothing"), "")
        if not closing and is_closed(obj) and isinstance(obj, _POLICIES):
            continue  # what is wrong with it is among the problems
        if closing or is_closed(obj):
            # Without the field the object would open what it closes now.
            message = f"not converted: {closing or 'it has an error'}"
            left_out.append(Problem(ref, closing, "NotSupported", message, "write it yourself"))
            continue
        if isinstance(obj, _POLICIES):
            if not obj.spec.target_refs:
                left_out.append(_describe_untargeted(ref))
                continue
            if _is_bare(obj):
                continue
        renamed = _rename(obj, names)
        owner = adoption.origins.get(key)
        about = notes.get((owner.kind, owner.namespace, owner.name) if owner else key, [])
        lines = [f"of {owner}"] if owner is not None else []
        lines += [f"{one.path}: {describe_field(ref.kind, one.path)}" for one in obj.unserved]
        found.append(
            Converted(
                obj=renamed,
                comment="\n".join([*lines, *about]),
                file=f"{ref.namespace}.yaml" if ref.namespace else _CLUSTER,
            )
        )
    return AdoptedConversion(objects=tuple(found), problems=(*told, *adoption.problems, *left_out))


def _describe_untargeted(ref: ObjectRef) -> Problem:
    path, message = "spec.targetSelectors", "not converted: its selectors choose no object"
    return Problem(ref, path, "NotFound", message, "name the targets", severity="warning")


def _describe(one: Problem) -> str:
    hint = f"; {one.hint}" if one.hint else ""
    return f"{one.path}: {one.message}{hint}"


def _list_changed(plain: Snapshot, adoption: Adoption) -> Iterator[Object]:
    removed = set(adoption.removed)
    keys: dict[_Name, None] = dict.fromkeys(adoption.snapshot.loaded)
    keys.update(dict.fromkeys(adoption.made))
    for kind, namespace, name in sorted(keys):
        ref = ObjectRef(kind, namespace, name)
        now = adoption.snapshot.get(ref)
        if now is None or ref_of(now) in removed or now == plain.get(ref):
            continue
        yield now


def _name_made(adoption: Adoption, snapshot: Snapshot) -> Iterator[tuple[_Name, str]]:
    """Yield the public names of made objects; a number follows one that is taken."""
    taken: set[_Name] = set()
    for kind, namespace, name in adoption.origins:
        base = f"{name.removesuffix(MARK).removesuffix('.Local')}-{_SUFFIXES[kind]}"
        public, count = base, 1
        while (kind, namespace, public) in taken or snapshot.get(
            ObjectRef(kind, namespace, public, EDGE_GROUP)
        ):
            count += 1
            public = f"{base}-{count}"
        taken.add((kind, namespace, public))
        yield (kind, namespace, name), public


def _is_bare(obj: SecurityPolicy | BackendTrafficPolicy) -> bool:
    spec: Mapping[str, Any] = msgspec.to_builtins(obj.spec)
    return spec.keys() <= _BARE and obj.spec.merge_type == "Inherit"


def _rename(obj: Object, names: Mapping[_Name, str]) -> Object:
    """Return an object whose name, and whose references to made objects, are public."""
    ref = ref_of(obj)
    key = (ref.kind, ref.namespace, ref.name)
    if key in names:
        metadata = msgspec.structs.replace(obj.metadata, name=names[key])
        obj = msgspec.structs.replace(obj, metadata=metadata)
    if isinstance(obj, EdgeProxy | SecurityPolicy | BackendTrafficPolicy):
        return obj
    spec = getattr(obj, "spec", None)
    if not isinstance(spec, msgspec.Struct):
        return obj
    value = msgspec.to_builtins(spec)
    if not _rename_all(value, ref.namespace, names):
        return obj
    changed: Object = msgspec.structs.replace(obj, spec=msgspec.convert(value, type(spec)))
    return changed


def _rename_all(value: Any, namespace: str, names: Mapping[_Name, str]) -> bool:
    """Rename the references below a plain value, in place; tell whether there was one."""
    if isinstance(value, list | tuple):
        return 0 < sum(_rename_all(one, namespace, names) for one in value)
    if not isinstance(value, dict):
        return False
    found = 0 < sum(_rename_all(one, namespace, names) for one in value.values())
    public = names.get((str(value.get("kind")), namespace, str(value.get("name"))))
    if public is not None and value.get("group") == EDGE_GROUP:
        value["name"] = public
        return True
    return found
