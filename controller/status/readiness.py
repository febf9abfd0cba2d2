"""gate_status: the part of a desired status that may be written now, so that it is never ahead of the data plane.

In: the desired and the present status as plain JSON, and a `ReadinessGate` for each fleet.
Out: the status that may be written now. Errors are written at once. Successes, and the end of
errors, wait until the proxies have the tables; until then the present condition stays. This module
sets Programmed of a Gateway (architecture D6).
Must never: change an error to a success, change an argument, or set Programmed from True to False
only because proxies are behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from controller.status.progress import Reach
from controller.status.shape import Json, Shape, is_bad, reference_key, shape_for
from edgefast.diagnostics.reasons.mentions import BEHIND, BY_PROXIES
from edgefast.translate.conditions.condition import cut_message

_NAMED = 5
_NO_PROXY = "waiting for a proxy of the fleet to be ready"


class ReadinessGate(msgspec.Struct, frozen=True, kw_only=True):
    """What one fleet allows to say of the revision that a status is of."""

    open: bool = True  # its proxies have the tables
    reach: Reach = Reach()
    refused: tuple[str, ...] = ()  # what its proxies refuse of the object, as texts
    notes: tuple[str, ...] = ()  # what else there is to say of the fleet where Programmed is told
    awaited: bool = False  # the fleet before it serves until it can take over
    unfetched: str = ""  # the text about the policy's key sets that its proxies cannot fetch

    @property
    def deserted(self) -> bool:
        """Tell whether there is no proxy at all: tables are nobody's then, and nothing waits for them, but nothing serves."""
        return self.reach.deserted and not self.awaited


OPEN = ReadinessGate()
#: Finds the gate of a Gateway or ListenerSet by (kind, namespace, name).
Gates = Callable[[str, str, str], ReadinessGate]


def gate_status(
    kind: str, namespace: str, name: str, present: Json, wanted: Json, gates: Gates, controller: str
) -> Json:
    """Return what of `wanted` may be said now."""
    shape = shape_for(kind, wanted)
    if shape.entries:
        return _gate_entries(shape, namespace, present, wanted, gates, controller)
    if kind == "Gateway":
        return _gate_gateway(present, wanted, gates(kind, namespace, name))
    if kind == "Ingress" and not gates(kind, namespace, name).open:
        return present  # clients find an Ingress when proxies have it
    if kind == "ListenerSet":
        gate = gates(kind, namespace, name)
        return _gate_listener_set(present, wanted, f"{namespace}/{name}/", gate)
    return wanted


def _gate_entries(
    shape: Shape, namespace: str, present: Json, wanted: Json, gates: Gates, controller: str
) -> Json:
    before = {
        reference_key(one.get(shape.entry_ref) or {}, namespace): one.get("conditions") or ()
        for one in present.get(shape.entries) or ()
        if one.get("controllerName") == controller
    }
    held = []
    for one in wanted[shape.entries]:
        ref = one[shape.entry_ref]
        gate = gates(ref.get("kind", "Gateway"), ref.get("namespace") or namespace, ref["name"])
        there = before.get(reference_key(ref, namespace), ())
        conditions = gate_conditions(there, one["conditions"], gate.open)
        conditions = _gate_programmed(conditions, one["conditions"], there, gate)
        if gate.refused:
            conditions = [*conditions, _refused(gate.refused, one["conditions"])]
        if gate.unfetched:
            rest = [known for known in conditions if known["type"] != "KeysAvailable"]
            conditions = [*rest, _unfetched(gate.unfetched, one["conditions"])]
        held.append({**one, "conditions": conditions})
    return {**wanted, shape.entries: held}


def _gate_programmed(
    held: list[Json], wanted: Sequence[Json], present: Sequence[Json], gate: ReadinessGate
) -> list[Json]:
    """Return the conditions of an entry that says itself whether it is programmed, as policies do: pending until it is."""
    own = next((one for one in wanted if one["type"] == "Programmed"), None)
    if own is None:
        return held
    reported = _as_before(own, {"conditions": present}, gate)
    rest = [one for one in held if one["type"] != "Programmed"]
    return [*rest, reported]


def gate_conditions(present: Iterable[Json], wanted: Sequence[Json], open_: bool) -> list[Json]:
    """Return the wanted conditions when the gate is open, else the bad ones and what was said before."""
    if open_:
        return list(wanted)
    new = {one["type"]: one for one in wanted}
    held = [one for one in wanted if is_bad(one)]
    message = {one["type"] for one in held}
    for one in present:
        type_ = one.get("type")
        if type_ not in message and (type_ in new or is_bad(one)):
            # Good news that holds still, of an older generation perhaps; or bad news that is not over yet.
            held.append(one)
    return sorted(held, key=lambda one: list(new).index(one["type"]) if one["type"] in new else 99)


def _gate_gateway(present: Json, wanted: Json, gate: ReadinessGate) -> Json:
    before = {one.get("type"): one for one in present.get("conditions") or ()}
    conditions = [
        _noted(_programmed(one, before.get("Programmed"), gate), before.get("Programmed"), gate)
        if one["type"] == "Programmed"
        else one
        for one in wanted["conditions"]
        if _may_say(one, present, gate)
    ]
    listeners = _gate_listeners(present, wanted, "", gate)
    held = {**wanted, "conditions": conditions, "listeners": listeners}
    if gate.awaited and present.get("addresses"):
        held["addresses"] = present["addresses"]  # where requests are answered still
    return held


def _gate_listener_set(present: Json, wanted: Json, place: str, gate: ReadinessGate) -> Json:
    conditions = [
        _as_before(one, present, gate) if one["type"] == "Programmed" else one
        for one in wanted["conditions"]
    ]
    listeners = _gate_listeners(present, wanted, place, gate)
    return {**wanted, "conditions": conditions, "listeners": listeners}


def _gate_listeners(present: Json, wanted: Json, place: str, gate: ReadinessGate) -> list[Json]:
    """Hold the listeners of a Gateway or, with a place before their names, of a ListenerSet."""
    before = {one.get("name"): one for one in present.get("listeners") or ()}
    return [
        {
            **one,
            "conditions": [
                _listener_programmed(c, before.get(one["name"], {}), place + one["name"], gate)
                if c["type"] == "Programmed"
                else c
                for c in one["conditions"]
                if _may_say(c, before.get(one["name"], {}), gate)
            ],
        }
        for one in wanted.get("listeners") or ()
    ]


def _may_say(wanted: Json, present: Json, gate: ReadinessGate) -> bool:
    """Tell whether a condition may be there: that policies hold is said when proxies have them."""
    if gate.open or not str(wanted["type"]).endswith("Affected"):
        return True
    return any(one.get("type") == wanted["type"] for one in present.get("conditions") or ())


def _programmed(wanted: Json, before: Json | None, gate: ReadinessGate) -> Json:
    if wanted["status"] != "True":
        return wanted
    reported = wanted
    if not gate.open:
        if before is None or before.get("status") != "True":
            return _pending(wanted, gate)
        if not gate.reach.behind:
            return before  # they are given time
        reported = before  # all are behind: it stays what it was, and says who they are
    generation = wanted.get("observedGeneration", 0)
    there = gate.reach.ready - len(gate.reach.behind)
    message = f"{there}/{gate.reach.ready} proxies at version {generation}{_behind(gate.reach)}"
    if gate.refused:
        message += f"; {_message(gate.refused)}"
    return {**reported, "message": f"{wanted['message']}, {message}"}


def _noted(told: Json, before: Json | None, gate: ReadinessGate) -> Json:
    """Return Programmed with what there is to say of the fleet besides; what is left as it was has that already."""
    if not gate.notes or told is before:
        return told
    return {**told, "message": cut_message("; ".join((told["message"], *gate.notes)))}


def _listener_programmed(wanted: Json, listener: Json, name: str, gate: ReadinessGate) -> Json:
    if wanted["status"] != "True":
        return wanted
    refused = [one for one in gate.refused if f"listener {name}:" in one]
    if refused:
        return {**wanted, "status": "False", "reason": "Invalid", "message": _message(refused)}
    return _as_before(wanted, listener, gate)


def _as_before(wanted: Json, present: Json, gate: ReadinessGate) -> Json:
    """Return Programmed as it is wanted when that may be said, else as it was if it was True, else pending.

    Where there is no proxy it is pending, whatever it was: a listener that nobody serves is not programmed.
    """
    if wanted["status"] != "True":
        return wanted
    if gate.deserted:
        return {**wanted, "status": "False", "reason": "Pending", "message": _NO_PROXY}
    if gate.open:
        return wanted
    for before in present.get("conditions") or ():
        if before.get("type") == "Programmed" and before.get("status") == "True":
            return {**before}
    return _pending(wanted, gate)


def _pending(wanted: Json, gate: ReadinessGate) -> Json:
    message = f"waiting for the proxies to apply the tables{_behind(gate.reach)}"
    if gate.refused:
        message += f"; {_message(gate.refused)}"
    return {**wanted, "status": "False", "reason": "Pending", "message": message}


def _refused(texts: Sequence[str], wanted: Sequence[Json]) -> Json:
    return {
        "type": "Programmed",
        "status": "False",
        "reason": "RefusedByProxies",
        "message": _message(texts),
        **_generation(wanted),
    }


def _unfetched(text: str, wanted: Sequence[Json]) -> Json:
    return {
        "type": "KeysAvailable",
        "status": "False",
        "reason": "KeysNotFetched",
        "message": cut_message(text),
        **_generation(wanted),
    }


def _generation(wanted: Sequence[Json]) -> Json:
    return {key: one[key] for one in wanted[:1] for key in ("observedGeneration",) if key in one}


def _message(texts: Sequence[str]) -> str:
    message = "; ".join(texts[:_NAMED])
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return f"{BY_PROXIES}{message}{more}"


def _behind(reach: Reach) -> str:
    """Name the stragglers, if there are any, with the reasons that are known."""
    if not reach.behind:
        return ""
    why = reach.why
    named = [f"{one} ({why[one]})" if one in why else one for one in reach.behind]
    return f"{BEHIND}{name_some(named)}"


def name_some(names: Sequence[str]) -> str:
    """Name the first few and count the rest."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
