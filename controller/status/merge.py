"""merge_status: joins this controller's status with the present one.

In: the present status of an object and the desired one, both plain JSON, and the time.
Out: the fields of `status` to write, or None without a change. Entries of other controllers and
condition types of others stay unchanged; `lastTransitionTime` changes only with a condition's
status. Messages about problems get the command that prints the pages of their reasons.
Source: Gateway API RouteStatus, PolicyStatus (lists shared by controllers, 32 and 16 entries),
metav1.Condition.
Must never: change an argument, or change entries of others, even to make space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from controller.status.shape import MAX_CONDITIONS, Json, Shape, reference_key, shape_for
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.diagnostics.reasons.mentions import MORE, lead_on
from edgefast.translate.conditions.condition import MESSAGE_LIMIT, cut_message
from edgefast.translate.conditions.reasons import GOOD

#: Entry, its parentRef or ancestorRef, namespace of the object.
IsStale = Callable[[Json, Json, str], bool]

_END = 256  # characters of a message kept for the command at its end


def merge_status(
    kind: str,
    namespace: str,
    present: Json,
    wanted: Json | None,
    *,
    controller: str,
    now: str,
    is_stale: IsStale | None = None,
) -> Json | None:
    """Return the fields to write, each whole, or None.

    `wanted` None means that the object is no longer ours: entries of ours are taken out, and where the
    status is not shared by entry it is left as it is. `now` is RFC 3339 text. `is_stale` tells of entries of other names that
    are ours to take out, by entry, its reference and the namespace.
    """
    shape = shape_for(kind, wanted, present)
    if shape.entries:
        new = _merge_entries(shape, namespace, present, wanted, controller, now, is_stale)
    elif wanted is None:
        return None
    elif shape.load_balancer:
        return _merge_addresses(present, wanted)
    else:
        new = _merge_root(shape, present, wanted, now)
    changed = {field: value for field, value in new.items() if value != present.get(field)}
    # An absent list and an empty one say the same, as do 0 and no number; only the present one needs no write.
    return {f: v for f, v in changed.items() if v or present.get(f)} or None


def _merge_addresses(present: Json, wanted: Json) -> Json | None:
    """Return the addresses of an Ingress where they differ; all of them are ours."""
    there = (present.get("loadBalancer") or {}).get("ingress") or []
    addresses = (wanted.get("loadBalancer") or {}).get("ingress") or []
    return {"loadBalancer": {"ingress": addresses}} if there != addresses else None


def _merge_root(shape: Shape, present: Json, wanted: Json, now: str) -> Json:
    new: Json = {
        "conditions": merge_conditions(
            present.get("conditions") or (), wanted.get("conditions") or (), now, shape.own_types
        )
    }
    for field, limit in shape.lists:
        new[field] = list(wanted.get(field) or ())[:limit]
    for field in shape.counts:
        new[field] = wanted.get(field, 0)
    if shape.own_listener_types:
        before = {one.get("name"): one for one in present.get("listeners") or ()}
        new["listeners"] = [
            _merge_listener(shape, before.get(one["name"], {}), one, now)
            for one in wanted.get("listeners") or ()
        ]
    return new


def _merge_listener(shape: Shape, present: Json, wanted: Json, now: str) -> Json:
    conditions = merge_conditions(
        present.get("conditions") or (),
        wanted.get("conditions") or (),
        now,
        shape.own_listener_types,
    )
    return {**present, **wanted, "conditions": conditions}


def _merge_entries(
    shape: Shape,
    namespace: str,
    present: Json,
    wanted: Json | None,
    controller: str,
    now: str,
    is_stale: IsStale | None,
) -> Json:
    there: Sequence[Json] = present.get(shape.entries) or ()
    if is_stale is not None:
        there = [
            one
            for one in there
            if one.get("controllerName") == controller
            or not is_stale(one, one.get(shape.entry_ref) or {}, namespace)
        ]
    ours: dict[tuple[object, ...], Json] = {}
    for one in (wanted or {}).get(shape.entries) or ():
        if one.get("conditions"):  # the API wants at least one
            ours.setdefault(reference_key(one[shape.entry_ref], namespace), one)
    foreign = sum(1 for one in there if one.get("controllerName") != controller)
    room = max(0, shape.max_entries - foreign)
    ours = dict(list(ours.items())[:room])
    merged: list[Json] = []
    for one in there:
        if one.get("controllerName") != controller:
            merged.append(one)
            continue
        mine = ours.pop(reference_key(one.get(shape.entry_ref) or {}, namespace), None)
        if mine is not None:
            merged.append(_merge_entry(shape, one, mine, now))
    merged += (_merge_entry(shape, {}, one, now) for one in ours.values())
    return {shape.entries: merged}


def _merge_entry(shape: Shape, present: Json, wanted: Json, now: str) -> Json:
    """Return an entry of ours: a condition that is no longer wanted goes, whoever wrote it."""
    conditions = merge_conditions(
        present.get("conditions") or (), wanted["conditions"], now, own_types=None
    )
    # The server fills defaults in, which is no difference.
    filled = {"group": GATEWAY_GROUP, "kind": "Gateway", **wanted[shape.entry_ref]}
    ref = filled if present.get(shape.entry_ref) == filled else wanted[shape.entry_ref]
    return {
        shape.entry_ref: ref,
        "controllerName": wanted["controllerName"],
        "conditions": conditions,
    }


def merge_conditions(
    present: Iterable[Json], wanted: Iterable[Json], now: str, own_types: frozenset[str] | None
) -> list[Json]:
    """Return conditions in their present order, then the new ones; at most 8.

    `own_types`: what is of another type stays; None takes every type as ours.
    """
    before = list(present)
    new = {one["type"]: one for one in wanted}
    foreign = {
        type_
        for type_ in (one.get("type") for one in before)
        if own_types is not None and type_ not in own_types and type_ not in new
    }
    room = MAX_CONDITIONS - sum(one.get("type") in foreign for one in before)
    new = dict(list(new.items())[: max(0, room)])
    merged: list[Json] = []
    for one in before:
        if one.get("type") in foreign:
            merged.append(one)
        elif (mine := new.pop(str(one.get("type")), None)) is not None:
            merged.append(_date(mine, one, now))
    merged += (_date(one, {}, now) for one in new.values())
    return merged


def _date(wanted: Json, before: Json, now: str) -> Json:
    kept = before.get("lastTransitionTime") if before.get("status") == wanted["status"] else None
    dated = {**wanted, "lastTransitionTime": kept or now}
    reason, message = dated.get("reason", ""), dated.get("message", "")
    if reason not in GOOD:
        message = message.partition(MORE)[
            0
        ]  # one that was there before, and holds still, has it already
        # Cut before it is read: what was cut says the same at the next look.
        message = cut_message(message, MESSAGE_LIMIT - _END)
        dated["message"] = message + lead_on(reason, message)
    return dated
