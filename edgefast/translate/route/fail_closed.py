"""Fail closed: a route with a mistake in its file; requests for it are answered 500.

In: a route with `closed`, its report. Out: the outcomes of its rules, as those of a route with only
broken rules. The decoder reported the mistake; here a status reports it, and one warning the effect
on requests.
Must never: send a request anywhere, or omit a match: a match with unknown conditions takes every
path.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.gateway.grpcroute import Route
from edgefast.api.kinds import ref_of
from edgefast.api.model.fail_closed import Closed
from edgefast.translate.match.match import match_text
from edgefast.translate.report.report import Report
from edgefast.translate.route.rule import Match, Rule, RuleOutcome, characters_in, translate_any

_TOLD = 4  # matches and hostnames that a message names


def close_rules(
    route: Route, name: str, closed: Closed, source: str, report: Report, *, placed: bool
) -> list[RuleOutcome]:
    """Return the outcome of each rule; `name`: of the route, among all; `placed`: a listener has it."""
    ref = ref_of(route)
    message = f"{closed.path}: {closed.reason}"
    outcomes = []
    rules: tuple[Rule, ...] = route.spec.rules
    for index, rule in enumerate(rules):
        characters = characters_in(rule.matches)
        matches: list[tuple[int, ir.Match]] = []
        widened: dict[int, int] = {}
        written: tuple[Match, ...] = rule.matches
        for at, one in enumerate(written):
            match, length = translate_any(one, Report(report.object), "")
            if length is not None or (index, at) in closed.widened:
                widened[at] = characters.get(at, len(match.path)) if length is None else length
            matches.append((at, match))
        reason = f"{ref} {message}"
        outcomes.append(
            RuleOutcome(
                rule=ir.Rule(route=name, index=index, source=source, status=500, reason=reason),
                matches=tuple(matches),
                broken=True,
                clusters=(),
                widened=widened,
                characters=characters,
            )
        )
    mistake = f"the route has an error: {message}"
    report.follow(report.refuse("", "Invalid", mistake, condition="UnsupportedValue"))
    fate = _report_effect(route, outcomes) if placed else _report_lost(route)
    report.warn(closed.path, "Invalid", f"{closed.since.format('route')}, {fate}")
    return outcomes


def _report_effect(route: Route, outcomes: list[RuleOutcome]) -> str:
    places = dict.fromkeys(match_text(match) for one in outcomes for _, match in one.matches)
    hosts = f" of {_list(route.spec.hostnames)}" if route.spec.hostnames else ""
    return f"requests to {_list(places)}{hosts} get 500"


def _report_lost(route: Route) -> str:
    what = "listener" if route.spec.parent_refs else "parent or hostname"
    return f"it is ignored; without a readable {what} its requests cannot get 500 and go to other routes"


def _list(texts: dict[str, None] | tuple[str, ...]) -> str:
    more = f" and {len(texts) - _TOLD} more" if len(texts) > _TOLD else ""
    return ", ".join([*texts][:_TOLD]) + more
