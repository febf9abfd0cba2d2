"""Document: one document's plain value into objects: finds the kind, decodes fast, then strictly.

In: the plain value of YAML or JSON. Out: `Found`s: an object, or violations with the object's name. The fast decoder is msgspec's, in C.
Only when it or a rule fails, the walk finds every mistake. Lists (`kind: List`, `HTTPRouteList`) give one `Found` per item.
Must never: know files or lines.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from edgefast.api.decode.adopted import build_adopted, write_note
from edgefast.api.decode.fail_closed.gateway import close_gateway, close_listener_set
from edgefast.api.decode.fail_closed.ingress import close_ingress
from edgefast.api.decode.fail_closed.policy import (
    OWN_POLICIES,
    OwnPolicy,
    close_policy_object,
    name_policy,
    set_policy_target,
)
from edgefast.api.decode.fail_closed.route import (
    close_grpc_route,
    close_route,
    close_stream_route,
)
from edgefast.api.decode.fail_closed.scope import SCOPES, Scope, close_scope
from edgefast.api.decode.walk import Walk
from edgefast.api.decode.yaml_text import ParsedDocument
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.grpcroute import GRPCRoute
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.gateway.layer4_route import StreamRoute
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.kinds import EDGE_GROUP, KINDS, KindInfo, Object, ref_of
from edgefast.api.limits import MAX_SHOWN_NAME, MAX_SHOWN_VALUE
from edgefast.api.loaded import Path
from edgefast.api.migration.access_policies import find_access_policies
from edgefast.api.migration.adoption.adopt import adopt_document
from edgefast.api.migration.adoption.adopted_document import ENVOY_GROUP
from edgefast.api.migration.adoption.references import ADOPTED_KINDS, is_adoptable
from edgefast.api.migration.adoption.refused_policy import describe_refusal, find_deciding
from edgefast.api.migration.annotations import Unapplied
from edgefast.api.migration.field_mappings import find_kind
from edgefast.api.migration.foreign_kinds import (
    Classification,
    api_version_of,
    classify_foreign,
    is_foreign_server,
)
from edgefast.api.migration.foreign_policy import (
    has_unread_target,
    read_fields,
    read_targets,
)
from edgefast.api.migration.target import Target
from edgefast.api.model.fields import Element, Resource
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.model.shape import NOTED_FIELDS
from edgefast.api.validation.rule import Violation
from edgefast.api.validation.rules import obeys
from edgefast.api.validation.version import check_version
from edgefast.diagnostics.problem import ObjectRef, Severity, did_you_mean
from edgefast.diagnostics.reasons.word import Word

DEFAULT_NAMESPACE = "default"

#: An object that only keeps the place of one with a mistake.
Closing = HTTPRoute | GRPCRoute | StreamRoute | Gateway | ListenerSet | Ingress | Scope | OwnPolicy
#: Kinds that have a place, decide about those of others, or are named by rules that then say what is wrong.
_CLOSES: dict[str, Callable[..., Closing]] = {
    "HTTPRoute": close_route,
    "GRPCRoute": close_grpc_route,
    **dict.fromkeys(("TLSRoute", "TCPRoute", "UDPRoute"), close_stream_route),
    "Gateway": close_gateway,
    "ListenerSet": close_listener_set,
    "Ingress": close_ingress,
    **dict.fromkeys(SCOPES, close_scope),
    **dict.fromkeys(OWN_POLICIES, close_policy_object),
}
#: A kind without a placeholder: its targets alone are closed.
_TLS_POLICY = BackendTLSPolicy.__name__
_POLICIES = (*OWN_POLICIES, _TLS_POLICY)
#: Kinds that close something, by the hint that suggests one of them.
_SUGGESTED = {did_you_mean(kind, (kind,)): kind for kind in (*_CLOSES, _TLS_POLICY)}


#: Fields of a ClientTrafficPolicy with an error that are named.
_MOST_NAMES = 16
_TARGET_PATHS: tuple[Path, ...] = (
    ("spec",),
    ("spec", "targetRef"),
    ("spec", "targetRefs"),
    ("spec", "targetSelectors"),
)


class Found(msgspec.Struct, frozen=True, eq=False):
    """An object, or what is wrong with it; `prefix` is where in the document it is."""

    prefix: Path
    obj: Object | None = None
    ref: ObjectRef | None = None
    violations: tuple[Violation, ...] = ()
    references: tuple[tuple[Path, Element], ...] = ()  # sound ones of an object that is not
    severity: Severity = "error"
    targets: tuple[
        Target, ...
    ] = ()  # of a policy of another project, or a BackendTLSPolicy with an error
    fields: tuple[str, ...] = ()  # that it sets, if it is known what does the same here
    closed: Closing | None = None  # the place of one with a mistake
    meant: ObjectRef | None = None  # the BackendTLSPolicy that an object with an error counts as
    lost: bool = False  # a target of a policy of another project cannot be read
    access_policies: tuple[str, ...] = ()  # fields of a foreign policy that decide access


def decode_object(
    document: ParsedDocument, namespace: str = DEFAULT_NAMESPACE, *, adopt: bool = False
) -> Iterator[Found]:
    """Yield what is in a document, nothing for an empty one; `namespace` is of objects that name none.

    `adopt`: decode documents of Envoy Gateway as those of edgefast.
    """
    value = document.value
    if value is None:
        return
    if not isinstance(value, dict):
        shown = "a list" if isinstance(value, list) else "a bare value"
        yield _wrong((), None, (), "Invalid", f"{shown} (expected an object)")
        yield from _find_buried(value, (), namespace)
        return
    items, kind = value.get("items"), value.get("kind")
    if isinstance(items, dict) and _is_list(kind):
        yield _wrong((), None, ("items",), "Invalid", "an object (expected a list)")
        yield from _find_buried(value, (), namespace)
        return
    if not isinstance(items, list) or not isinstance(kind, str) or not kind.endswith("List"):
        yield _decode(value, (), tuple(repeated_fields(document)), namespace, adopt=adopt)
        return
    repeated: dict[Path, list[Violation]] = {}
    for one in repeated_fields(document):
        size = 2 if one.path[0] == "items" and len(one.path) > 2 else 0
        inside = msgspec.structs.replace(one, path=one.path[size:])
        repeated.setdefault(one.path[:size], []).append(inside)
    if () in repeated:
        yield Found((), None, None, tuple(repeated[()]))
    for index, item in enumerate(items):
        prefix: Path = ("items", index)
        if not isinstance(item, dict):
            yield _wrong(prefix, None, (), "Invalid", "not an object")
        elif _is_list(item.get("kind")):
            yield _wrong(prefix, None, ("kind",), "Forbidden", "a List in a List")
            yield from _find_buried(item, prefix, namespace)
        else:
            if kind != "List" and "kind" not in item and "apiVersion" not in item:
                # Items of a typed list carry neither when they come from an API server.
                item |= {
                    "kind": str(kind).removesuffix("List"),
                    "apiVersion": value.get("apiVersion"),
                }
            yield _decode(item, prefix, tuple(repeated.get(prefix, ())), namespace, adopt=adopt)


def _is_list(kind: object) -> bool:
    """Tell whether a kind is that of a list: of anything, or of objects that are read."""
    if not isinstance(kind, str) or not kind.endswith("List"):
        return False
    return kind == "List" or any(one.kind == kind.removesuffix("List") for one in KINDS.values())


def _find_buried(
    value: object, prefix: Path, namespace: str, of: dict[str, Any] | None = None
) -> Iterator[Found]:
    """Give the policies in what is no document, and is not taken for one: what they are for must know of them. `of`: what items of a typed list are.

    It ends where documents do (MAX_DEPTH).
    """
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from _find_buried(one, (*prefix, index), namespace, of)
    elif isinstance(value, dict) and _is_list(value.get("kind")):
        kind = value["kind"].removesuffix("List")
        typed = {"kind": kind, "apiVersion": value.get("apiVersion")} if kind else None
        yield from _find_buried(value.get("items"), (*prefix, "items"), namespace, typed)
    elif isinstance(value, dict):
        one = {**(of or {}), **value}
        kind, api_version = one.get("kind"), one.get("apiVersion")
        counted = _closing_kind(one, api_version, kind)
        if counted in _POLICIES:
            ref = _ref(one, kind if isinstance(kind, str) and kind else counted, "", True)
            message = Violation((), "Forbidden", "it is in a broken document and is not read")
            yield _refuse(one, counted, prefix, ref, (message,), (), namespace)


def repeated_fields(document: ParsedDocument) -> list[Violation]:
    """Return the fields that a document gives twice, as violations."""
    return [
        Violation(path, "Duplicate", "the field is given twice") for path in document.duplicates
    ]


def _decode(
    raw: dict[str, Any],
    prefix: Path,
    repeated: tuple[Violation, ...],
    namespace: str,
    *,
    adopt: bool,
) -> Found:
    document = adopt_document(raw) if adopt else None
    if document is None:
        found = _decode_one(raw, prefix, repeated, namespace)
        if adopt and found.ref is not None and is_adoptable(found.ref.group, found.ref.kind):
            more = find_deciding(found.ref.kind, raw, repeated=bool(repeated))
            access = (*found.access_policies, *more)
            return msgspec.structs.replace(
                found,
                violations=(*found.violations, *repeated, write_note(describe_refusal(raw))),
                access_policies=access,
                lost=bool(access) and (has_unread_target(raw) or _repeats_targets(repeated)),
            )
        return found
    found = _decode_one(document.raw, prefix, (), namespace)
    notes = tuple(write_note(one) for one in document.notes)
    wrong: tuple[Violation, ...] = ()
    obj = found.obj
    if obj is not None:
        built = build_adopted(obj, document)
        obj, wrong = built.obj, built.violations
    placed = (
        msgspec.structs.replace(one, path=document.locate(one.path))
        for one in (*found.violations, *wrong)
    )
    told = (*repeated, *placed, *notes)
    if document.client:
        found = _place_client(raw, prefix, obj, told, namespace)
        return msgspec.structs.replace(found, lost=found.lost or _repeats_targets(repeated))
    grave = [one for one in told if one.severity != "warning"]
    if grave and (obj is not None or found.closed is not None or wrong):
        # Its targets are those of the original document.
        kind = str(raw["kind"])
        ours = kind == ADOPTED_KINDS.get(kind)
        ref = _ref(raw, kind, EDGE_GROUP if ours else ENVOY_GROUP, True)
        return _refuse(raw, kind, prefix, ref, told, repeated, namespace, found.references)
    if not told:
        return msgspec.structs.replace(found, obj=obj)
    named = found.ref or (ref_of(obj) if obj is not None else None)
    if named is not None and named.kind != raw["kind"]:
        named = msgspec.structs.replace(named, kind=str(raw["kind"]), group=ENVOY_GROUP)
    return msgspec.structs.replace(found, obj=obj, ref=named, violations=told)


def _repeats_targets(repeated: tuple[Violation, ...]) -> bool:
    """Tell whether a document gives its targets twice: only the last are known."""
    return any(one.path[:2] in _TARGET_PATHS for one in repeated)


def _place_client(
    raw: dict[str, Any],
    prefix: Path,
    obj: Object | None,
    told: tuple[Violation, ...],
    namespace: str,
) -> Found:
    """Return a ClientTrafficPolicy; one with an error closes its targets, because their client addresses and certificates are not checked."""
    ref = _named_so(raw, "ClientTrafficPolicy", namespace)
    ref = msgspec.structs.replace(ref, group=ENVOY_GROUP)
    grave = [one for one in told if one.severity != "warning"]
    if not grave:
        return Found(prefix, obj, ref if told else None, told)
    names = dict.fromkeys(".".join(str(part) for part in one.path[1:]) for one in grave)
    return Found(
        prefix,
        None,
        ref,
        told,
        targets=read_targets(raw, ref.namespace),
        access_policies=tuple(one[:MAX_SHOWN_NAME] or "spec" for one in names)[:_MOST_NAMES],
        lost=has_unread_target(raw),
    )


def _decode_one(
    raw: dict[str, Any], prefix: Path, repeated: tuple[Violation, ...], namespace: str
) -> Found:
    api_version, kind = raw.get("apiVersion"), raw.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not kind:
        return _untyped(raw, prefix, repeated, namespace)
    group, _, version = api_version.rpartition("/")
    info = KINDS.get((group, kind))
    if info is None or version not in info.versions:
        decision = classify_foreign(api_version, kind, raw)
        path: Path = (decision.field,) if decision.field else ()
        one = Violation(path, decision.reason, decision.message, decision.hint)
        ref = _ref(raw, kind, group, True)
        counted = _closing_kind(raw, api_version, kind, decision)
        if counted in _POLICIES:
            grave = msgspec.structs.replace(one, severity="error")
            return _refuse(raw, counted, prefix, ref, (*repeated, grave), repeated, namespace)
        targets = read_targets(raw, ref.namespace) if info is None else ()
        known = find_kind(group, kind)
        fields = read_fields(raw, known.inner) if known is not None else ()
        access_policies = (
            find_access_policies(group, kind, raw, aimed=bool(targets)) if info is None else ()
        )
        closed = None
        if counted:
            closed = close_object(raw, _named_so(raw, counted, namespace), one, repeated)
        return Found(
            prefix,
            None,
            ref,
            (one, *map(_unapplied, decision.parts)),
            severity=decision.severity,
            targets=targets,
            fields=fields,
            closed=closed,
            lost=bool(access_policies) and has_unread_target(raw),
            access_policies=access_policies,
        )
    metadata = raw.get("metadata")
    misplaced = () if info.namespaced else _take_namespace(metadata, kind)
    if info.namespaced and isinstance(metadata, dict) and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    if not repeated:
        obj = _decode_fast(raw, info)
        if obj is not None and next(check_version(obj, version), None) is None:
            named = _ref(raw, kind, group, info.namespaced) if misplaced else None
            if kind in OWN_POLICIES:
                obj = set_policy_target(obj, None)
            return Found(prefix, obj, named, misplaced)
    walk = Walk(info.kind, redact=info.kind == "Secret")
    built: Object | None = walk.build(info.struct, raw)
    violations = [*repeated, *walk.violations, *check_version(built, version)]
    ref = _ref(raw, kind, group, info.namespaced)
    if violations:
        reported = (*misplaced, *violations, *walk.late)
        references = tuple(walk.references)
        return _refuse(raw, kind, prefix, ref, reported, repeated, namespace, references)
    return Found(prefix, set_policy_target(built, raw), ref, misplaced)


def _unapplied(one: Unapplied) -> Violation:
    severity: Literal["", "warning"] = "" if one.access_policies else "warning"
    return Violation(one.path, "NotSupported", one.message, one.hint, severity)


def _closing_kind(
    raw: dict[str, Any], api_version: object, kind: object, decision: Classification | None = None
) -> str:
    """Return the kind as which an object of another kind or version closes something, "" for none.

    That is its exact kind, or the one that its message suggests; else it is a policy if it names targets.
    """
    if not isinstance(kind, str) or not isinstance(api_version, str):
        exact = kind if kind in (*_CLOSES, _TLS_POLICY) else ""
    else:
        decision = decision or classify_foreign(api_version, kind, raw)
        exact = kind if kind in (*_CLOSES, _TLS_POLICY) else _SUGGESTED.get(decision.hint, "")
        if decision.severity != "error" or is_foreign_server(api_version.rpartition("/")[0], kind):
            exact = ""
    return exact or name_policy(raw, api_version, kind)


def _refuse(
    raw: dict[str, Any],
    kind: str,
    prefix: Path,
    ref: ObjectRef,
    told: tuple[Violation, ...],
    repeated: tuple[Violation, ...],
    namespace: str,
    references: tuple[tuple[Path, Element], ...] = (),
) -> Found:
    """Return an object with an error, and what closes all that an object of this kind can decide."""
    named = _named_so(raw, kind, namespace)
    if kind == _TLS_POLICY:
        targets = read_targets(raw, named.namespace)
        return Found(prefix, None, ref, told, references, targets=targets, meant=named)
    first = next(one for one in told if one.severity != "warning")
    closed = close_object(raw, named, first, repeated)
    return Found(prefix, None, ref, told, references, closed=closed)


def _take_namespace(metadata: object, kind: str) -> tuple[Violation, ...]:
    """Take the namespace off an object that is of none, as API servers do, and say so."""
    if not isinstance(metadata, dict) or not metadata.get("namespace"):
        return ()
    del metadata["namespace"]
    message = f"{kind} is cluster-scoped; the field is ignored"
    return (Violation(("metadata", "namespace"), "Forbidden", message, severity="warning"),)


_META_FIELDS = frozenset(ObjectMeta.__struct_encode_fields__) | ObjectMeta.unread


@functools.cache
def _top_fields(struct: type[Resource]) -> frozenset[str]:
    """Return the fields that a document of a kind may have at its top.

    The names alone, not `shape_of`: a shape resolves the types of the whole kind, which takes 10 ms.
    """
    names = zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    return struct.unread.union(encoded for name, encoded in names if name not in NOTED_FIELDS)


def _decode_fast(raw: dict[str, Any], info: KindInfo) -> Object | None:
    """Return the object when nothing at all is wrong, None when the walk must look."""
    try:
        obj: Object = msgspec.convert(raw, info.struct)  # type: ignore[assignment]
    except msgspec.ValidationError:
        return None
    # These two Structs pass over unknown fields, for API servers' sake.
    if not raw.keys() <= _top_fields(info.struct) or not raw["metadata"].keys() <= _META_FIELDS:
        return None
    return obj if obeys(obj) else None


def _untyped(
    raw: dict[str, Any], prefix: Path, repeated: tuple[Violation, ...], namespace: str
) -> Found:
    violations = list(repeated)
    for name in ("apiVersion", "kind"):
        value = raw.get(name)
        if value is None or value == "":
            guess = api_version_of(raw.get("kind")) if name == "apiVersion" else ""
            hint = f"write {name}: {guess}" if guess else ""
            violations.append(Violation((name,), "Required", "field is missing", hint))
        elif not isinstance(value, str):
            violations.append(Violation((name,), "Invalid", "not text"))
    kind = raw.get("kind")
    ref = _ref(raw, kind, "", True) if isinstance(kind, str) and kind else None
    if not (counted := _closing_kind(raw, raw.get("apiVersion"), kind)):
        return Found(prefix, None, ref, tuple(violations))
    named = ref or _ref(raw, counted, "", True)
    return _refuse(raw, counted, prefix, named, tuple(violations), repeated, namespace)


def _named_so(raw: dict[str, Any], kind: str, namespace: str) -> ObjectRef:
    """Return the reference to an object whose type is not quite said, in the namespace of those that name none."""
    ref = _ref(raw, kind, GATEWAY_GROUP, True)
    metadata = raw.get("metadata")
    bare = not isinstance(metadata, dict) or not metadata.get("namespace")
    return msgspec.structs.replace(ref, namespace=namespace) if bare else ref


def close_object(
    raw: dict[str, Any], ref: ObjectRef, first: Violation, repeated: Sequence[Violation] = ()
) -> Closing | None:
    """Return what keeps the place of an object closed whose first mistake this is, None when its kind has none."""
    close = _CLOSES.get(ref.kind)
    return close(raw, ref, first, [one.path for one in repeated]) if close else None


def _ref(raw: dict[str, Any], kind: str, group: str, namespaced: bool) -> ObjectRef:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        name = "?"
    if not isinstance(namespace, str) or not namespace:
        namespace = DEFAULT_NAMESPACE
    return ObjectRef(
        kind=kind[:MAX_SHOWN_VALUE],
        namespace=namespace[:MAX_SHOWN_VALUE] if namespaced else "",
        name=name[:MAX_SHOWN_NAME],
        group=group[:MAX_SHOWN_NAME],
    )


def _wrong(prefix: Path, ref: ObjectRef | None, path: Path, reason: Word, message: str) -> Found:
    return Found(prefix, None, ref, (Violation(path, reason, message),))
