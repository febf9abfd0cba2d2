"""Connection policies: the decision of each access policy of a layer 4 route for one client.

In: a route, the client's address, its server name. Out: `PolicyChecks`, and the addresses of clients for which two
sets of rules can differ. The twin of core/policy/connection_policies.pyx: a unit that needs a
request refuses every connection.
Must never: report that a connection passes about which a unit cannot decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from edgefast import ir
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain.access import Decision, decide_connection, describe_access, needs_request
from edgefast.explain.authz_examples import list_edges
from edgefast.explain.explanation import Answer, UnitPart, Verdict
from edgefast.explain.policy_checks import PolicyChecks, answer_broken, place_of
from edgefast.explain.served_fleet import Served
from edgefast.netaddr import parse_network

__all__ = ["evaluate_connection_policies", "list_sources"]

_RULES = 8  # of an authorization, in descriptions
_SOURCES = 64  # examples for one place


def evaluate_connection_policies(
    served: Served, route: ir.StreamRoute, client: str, sni: str, fate: str
) -> PolicyChecks:
    """Ask the units of a route in their order; `sni`: "" without a server name, `fate`: what a refusal looks like to a client."""
    parts: list[UnitPart] = []
    answer: Answer | None = None
    for unit in served.units(route.policies):
        decision = _decide(unit, client, sni)
        verdict: Verdict = "passes"
        why = ""
        if answer is not None:
            verdict, why = "not_asked", "an earlier check has answered"
        elif decision is None:
            answer = _refuse_broken(unit, route, fate)
            verdict, why = "broken", answer.why
        elif decision.allow:
            why = decision.why
        else:
            verdict, why = "refuses", decision.why
            fix = decision.failed[-1] if decision.rule is None and decision.failed else ""
            told = f"{unit.name}: {decision.why}: {fate}"
            answer = Answer(kind="closed", check="authorization", why=told, fix=fix)
        place = place_of(served.origin, unit.name)
        about = _describe(unit)
        parts.append(UnitPart(name=unit.name, verdict=verdict, why=why, about=about, place=place))
    for name, whom in route.lost:
        place = place_of(served.origin, name)
        parts.append(UnitPart(name=name, verdict="lost", why=f"overridden by {whom}", place=place))
    return PolicyChecks(tuple(parts), answer)


def list_sources(units: Iterable[ir.PolicyUnit]) -> list[str]:
    """Return addresses in and beside the ranges of authorizations, each once; a bounded number."""
    found: dict[str, None] = {}
    for unit in units:
        for rule in unit.authorization.rules if unit.authorization is not None else ():
            for text in rule.sources:
                found.update(dict.fromkeys(list_edges(parse_network(text))))
                if len(found) >= _SOURCES:
                    return list(found)[:_SOURCES]
    return list(found)


def _decide(unit: ir.PolicyUnit, client: str, sni: str) -> Decision | None:
    """Return the decision of a unit; None: it cannot decide."""
    of = unit.authorization
    if unit.status or of is None or any(map(needs_request, of.rules)):
        return None
    return decide_connection(of, client, sni)


def _describe(unit: ir.PolicyUnit) -> tuple[str, ...]:
    return tuple(_lines(unit.authorization)) if unit.authorization is not None else ()


def _lines(of: ir.Authorization) -> Iterator[str]:
    for number, one in enumerate(of.rules[:_RULES]):
        yield f"rules[{number}] {describe_access(one)}"
    if len(of.rules) > _RULES:
        yield f"and {len(of.rules) - _RULES} more"


def _refuse_broken(unit: ir.PolicyUnit, route: ir.StreamRoute, fate: str) -> Answer:
    if unit.status:
        answer = answer_broken(unit)
        return msgspec.structs.replace(answer, kind="closed", status=0, why=f"{answer.why}: {fate}")
    why = route.reason or f"{unit.name} needs a request"
    reasons = name_reasons(why)
    return Answer(kind="closed", check="policy_invalid", why=f"{why}: {fate}", reasons=reasons)
