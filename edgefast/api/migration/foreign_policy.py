"""ForeignPolicy: the targets that an object of another project names.

In: a document of a kind that edgefast does not read, or of a BackendTLSPolicy with an error.
Out: the objects that its `targetRef`, `targetRefs`, `targetSelectors` (GEP-713) or the label
selector of a Gateway's pods name. Also targets without a reference (untargeted_policy.py). Its
author may rely on it for access control, so a problem must report each such object that is served
without it. The problem names the equivalents in edgefast (field_mappings.py). For that the names of
the policy's fields are kept, and of those below them the paths that the tables know.
Must never: read anything else of it, or raise for its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from edgefast.api.kinds import KINDS
from edgefast.api.limits import MAX_SHOWN_NAME
from edgefast.api.loaded import Path
from edgefast.api.migration.target import Target
from edgefast.api.migration.untargeted_policy import find_untargeted
from edgefast.api.model.meta import LabelSelector
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.problem import ObjectRef, Source

#: Targets of one policy that are looked at; the API takes 16.
_MOST_TARGETS = 64
#: Names of fields that are kept; no kind has as many.
_MOST_FIELDS = 32
#: Items of a list that are looked into for a field below it.
_MOST_ITEMS = 64
#: The label that pods of a Gateway have wherever its implementation follows GEP-1762.
_GATEWAY_LABEL = "gateway.networking.k8s.io/gateway-name"


class ForeignPolicy(msgspec.Struct, frozen=True):
    """A policy of another project, and where each of its targets is named."""

    ref: ObjectRef
    targets: tuple[tuple[Target, Source], ...]
    #: Of its spec, those that are set: "jwt", "jwt.providers[].recomputeRoute".
    fields: tuple[str, ...] = ()
    source: Source | None = None
    # Fields, or annotations of an object that is served, that decide access (access_policies.py).
    access_policies: tuple[str, ...] = ()
    lost: bool = False  # a target that cannot be read may be anything of the namespace


def read_fields(raw: dict[str, Any], inner: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the fields of `spec` that a document sets, some of very many, and of the paths `inner` those that it sets; sorted."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return ()
    named = (one for one, value in spec.items() if isinstance(one, str) and value is not None)
    some = (one[:MAX_SHOWN_NAME] for _, one in zip(range(_MOST_FIELDS), named, strict=False))
    return tuple(sorted({*some, *(one for one in inner if _is_set(spec, one.split(".")))}))


def _is_set(value: object, path: Sequence[str]) -> bool:
    """Tell whether anything stands at a path; "providers[]" is each of a list."""
    if not path:
        return value is not None
    name = path[0].removesuffix("[]")
    part = value.get(name) if isinstance(value, dict) else None
    if name == path[0]:
        return _is_set(part, path[1:])
    return isinstance(part, list) and any(_is_set(one, path[1:]) for one in part[:_MOST_ITEMS])


def read_targets(raw: dict[str, Any], namespace: str) -> tuple[Target, ...]:
    """Return the targets that a document names or means; `namespace` is its own."""
    spec = raw.get("spec", {})
    if not isinstance(spec, dict):
        return ()
    metadata = raw.get("metadata")
    group = _text(raw, "apiVersion").rpartition("/")[0]
    name = _text(metadata, "name") if isinstance(metadata, dict) else ""
    given = metadata.get("labels") if isinstance(metadata, dict) else None
    labels = given if isinstance(given, dict) else {}
    unaimed = find_untargeted(group, _text(raw, "kind"), name, namespace, spec, labels)
    found = chain(_read_all(spec, namespace), unaimed)
    return tuple(one for _, one in zip(range(_MOST_TARGETS), found, strict=False))


def _read_all(spec: dict[str, Any], namespace: str) -> Iterator[Target]:
    for field in ("targetRef", "targetRefs", "targetSelectors"):
        given = spec.get(field)
        one_only = isinstance(given, dict)
        for at, one in enumerate([given] if one_only else given if isinstance(given, list) else ()):
            path: Path = ("spec", field) if one_only else ("spec", field, at)
            target = read_target(one, path, namespace) if isinstance(one, dict) else None
            if target is not None:
                yield target
    selector = spec.get("selector")
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    name = labels.get(_GATEWAY_LABEL) if isinstance(labels, dict) else None
    if isinstance(name, str) and name:
        path = ("spec", "selector", "matchLabels", _GATEWAY_LABEL)
        yield Target(path, GATEWAY_GROUP, "Gateway", namespace, name)


def has_unread_target(raw: dict[str, Any]) -> bool:
    """Tell whether a target of a document cannot be read: it may be any object of the namespace."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return False
    for field in ("targetRef", "targetRefs", "targetSelectors"):
        given = spec.get(field)
        for one in given if isinstance(given, list) else [given]:
            if one is not None and (not isinstance(one, dict) or read_target(one, (), "") is None):
                return True
    return False


def read_target(one: dict[str, Any], path: Path, namespace: str) -> Target | None:
    """Return the target that an entry names, None when it cannot be told."""
    kind, name = _text(one, "kind"), _text(one, "name")
    if not kind:
        return None
    selector = None if name else _selector_of(one)
    if not name and selector is None:
        return None
    where = _text(one, "namespace") or namespace
    if (
        selector is not None and one.get("namespaces") is not None
    ):  # it selects in other namespaces as well
        where = ""
    # Envoy Gateway's selectors have a default: a kind of the Gateway API is of its group where no group is written.
    unwritten = GATEWAY_GROUP if (GATEWAY_GROUP, kind) in KINDS else ""
    group = _text(one, "group") if "group" in one else unwritten
    # NGINX Gateway Fabric takes "core" for the group that has no name.
    group = "" if group == "core" else group
    return Target(path, group, kind, where, name, selector, _text(one, "sectionName"))


def _selector_of(one: dict[str, Any]) -> LabelSelector | None:
    given = {field: one[field] for field in ("matchLabels", "matchExpressions") if field in one}
    try:
        return msgspec.convert(given, LabelSelector)
    except msgspec.ValidationError:
        return None


def _text(raw: dict[str, Any], field: str) -> str:
    value = raw.get(field)
    return value[:MAX_SHOWN_NAME] if isinstance(value, str) else ""
