"""Status diff: shadowed rules, conflicts and conditions that differ between two translations.

In: two translations. Out: `Change`s with an example request where one can be made of the object.
Must never: repeat what example requests show already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.snapshot import Key
from edgefast.diagnostics.problem import Problem
from edgefast.explain.changes import Change, Kind
from edgefast.explain.example_request import ExampleRequest, make_example_requests
from edgefast.explain.fleet_pair import make_example, make_host
from edgefast.explain.made_names import has_made_objects
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import first_of
from edgefast.translate.conditions.condition import Condition
from edgefast.translate.match.hostname import narrower
from edgefast.translate.translation import Translation

#: Reasons of problems, and the kinds of change when such a problem goes and comes.
_PROBLEMS: tuple[tuple[tuple[str, ...], Kind, Kind], ...] = (
    (("Shadowed",), "unshadowed", "shadowed"),
    (
        ("HostnameConflict", "ProtocolConflict", "RouteRulesOverlap", "PortUnavailable"),
        "conflict_gone",
        "conflict",
    ),
)
#: Conditions that other kinds of change tell.
_TOLD = ("RouteRulesOverlap", "RouteRulesShadowed", "Conflicted")
#: Of a new object only what is wrong with it is news.
_GOOD = ("Accepted", "AddressesAssigned", "Programmed", "ResolvedRefs", "SupportedVersion")
#: What ends the names of conditions that a policy gives to its targets: requests show its effect.
_AFFECTED = "Affected"

_StatusTexts = dict[tuple[str, str, str], Condition]  # object, parent or listener, type


def compare_statuses(old: Translation, new: Translation) -> Iterator[Change]:
    """Give what problems and statuses say otherwise; problems of Ingresses and of their converted objects cannot be compared."""
    converted = has_made_objects(old) != has_made_objects(new)
    for reasons, gone, come in () if converted else _PROBLEMS:
        before, after = _problems(old, reasons), _problems(new, reasons)
        yield from _wakeup(come, new, after, before)
        yield from _wakeup(gone, old, before, after)
    yield from _compare_conditions(_conditions(old), _conditions(new), converted=converted)


def _compare_conditions(
    before: _StatusTexts, after: _StatusTexts, *, converted: bool
) -> Iterator[Change]:
    """Give conditions that differ; `converted`: warnings of new objects are those of Ingresses that had no status."""
    objects = {key[0] for key in after}
    for key, now in after.items():
        was = before.get(key)
        if was is None and (not _is_bad(now) or now.type.endswith(_AFFECTED)):
            continue
        if was is None and converted and now.type not in _GOOD:
            continue
        if was is None or (was.status, was.reason) != (now.status, now.reason):
            yield _write(key, was, now)
    for key, was in before.items():
        if key not in after and key[0] in objects and _is_bad(was):
            named, where, type_ = key
            at = f" at {where}" if where else ""
            message = f"{named}{at}: {type_} was {was.status} ({was.reason}), it was removed"
            yield Change(kind="condition", text=message)


def _problems(translation: Translation, reasons: Iterable[str]) -> dict[str, Problem]:
    wanted = {*reasons}
    return {one.text(): one for one in translation.problems if one.reason in wanted}


def _wakeup(
    kind: Kind, of: Translation, ours: dict[str, Problem], theirs: dict[str, Problem]
) -> Iterator[Change]:
    for text, problem in ours.items():
        if text not in theirs:
            request = find_example(of, problem)
            yield Change(kind=kind, text=text, example=make_example(request) if request else None)


def _conditions(translation: Translation) -> _StatusTexts:
    reported: _StatusTexts = {}
    for ref, status in translation.statuses.items():
        raw = msgspec.structs.asdict(status)
        parts = [("", raw.get("conditions", ()))]
        for one in (*raw.get("parents", ()), *raw.get("ancestors", ())):
            parent = getattr(one, "parent_ref", None) or one.ancestor_ref
            section = f"/{parent.section_name}" if parent.section_name else ""
            parts.append((f"{parent.name}{section}", one.conditions))
        parts += [(one.name, one.conditions) for one in raw.get("listeners", ())]
        for where, conditions in parts:
            reported.update(
                ((str(ref), where, one.type), one) for one in conditions if one.type not in _TOLD
            )
    return reported


def _is_bad(one: Condition) -> bool:
    return (one.status == "False") == (one.type in _GOOD)


def _write(key: tuple[str, str, str], was: Condition | None, now: Condition) -> Change:
    named, where, type_ = key
    at = f" at {where}" if where else ""
    before = f"{was.status} ({was.reason})" if was is not None else "not there"
    text = f"{named}{at}: {type_} is {now.status} ({now.reason}), it was {before}"
    return Change(kind="condition", text=f"{text}: {now.message}" if _is_bad(now) else text)


def find_example(translation: Translation, problem: Problem) -> RequestSpec | None:
    """Return a request that a problem is about: of the match, rule or listener that its path names."""
    ref = problem.object
    if ref is None:
        return None
    if ref.kind in ("Gateway", "ListenerSet"):
        gateway = translation.memo.world.snapshot.get(ref)
        at = _number(problem.path, "listeners")
        if (
            not isinstance(gateway, Gateway | ListenerSet)
            or at is None
            or at >= len(gateway.spec.listeners)
        ):
            return None
        listener = gateway.spec.listeners[at]
        return _ask(
            listener.port,
            listener.protocol,
            listener.hostname or "*",
            ExampleRequest("GET", "/", ()),
        )
    return _find_route_example(translation, (ref.namespace, ref.name), problem)


def _find_route_example(translation: Translation, key: Key, problem: Problem) -> RequestSpec | None:
    outcome, path = translation.memo.routes.get(key), problem.path
    listeners = {one.name: one for fleet in translation.ir.fleets for one in fleet.listeners}
    rule, match = _number(path, "rules"), _number(path, "matches")
    for listener, hostname, part in outcome.hosts if outcome else ():
        found = listeners.get(listener)
        matches = [
            one
            for _, index, at, one in part.candidates
            if rule in (None, index) and match in (None, at)
        ]
        reported = path != "spec.hostnames" or f"requests to {hostname} " in problem.message
        if found is None or not matches or not reported:
            continue
        examples, _ = make_example_requests(matches[:1])
        if examples:
            name = narrower(found.hostname, hostname)
            return _ask(found.port, found.protocol, name, examples[0], first_of(found))
    return None


def _ask(
    port: int, protocol: str, name: str, example: ExampleRequest, address: str = ""
) -> RequestSpec:
    scheme = "https" if protocol == "HTTPS" else "http"
    host = make_host(name, ())
    default = port == (443 if scheme == "https" else 80)
    return RequestSpec(
        method=example.method,
        scheme=scheme,
        port=port,
        host=host if default else f"{host}:{port}",
        target=example.target,
        headers=example.headers,
        address=address,
    )


def _number(path: str, field: str) -> int | None:
    _, found, rest = path.partition(f"{field}[")
    digits = rest.partition("]")[0]
    return int(digits) if found and digits.isdigit() else None
