"""Rejected routes: routes near a request that no listener accepts, or that have mistakes.

In: the origin's translation (none for a running proxy's table), the host and path of a request.
Out: a `Candidate` for each route with the reason of its status. Their matches are not compiled, so
the path is compared with the written one.
Must never: run while requests are served.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.api.gateway.grpcroute import (
    GRPCMethodMatch,
    GRPCRoute,
    GRPCRouteMatch,
    Route,
)
from edgefast.api.gateway.httproute import HTTPPathMatch
from edgefast.api.gateway.layer4_route import TCPRoute, TLSRoute, UDPRoute
from edgefast.api.model.route_name import name_of, route_key
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.explain.explanation import Candidate, Place
from edgefast.explain.source_location import Origin
from edgefast.table.match import Call, order_hostnames
from edgefast.translate.match.path import check_path, normalize_path
from edgefast.translate.route.outcome import RouteOutcome


def find_unaccepted(origin: Origin, host: str, call: Call) -> Iterator[Candidate]:
    """Give routes for the host and path that are on no listener."""
    translation = origin.translation
    if translation is None:
        return
    names = {*order_hostnames(host)}
    for key, outcome in translation.memo.routes.items():
        route, name = outcome.route, name_of(key)
        if isinstance(route, TLSRoute | TCPRoute | UDPRoute):
            continue  # no request would come to it
        if outcome.hosts or not names & {one.lower() for one in route.spec.hostnames or ("*",)}:
            continue
        if not _may_match(route, call.path.decode("utf-8", "replace")):
            continue
        reason, message = _reason(outcome)
        problem = next(iter(outcome.problems), None)
        yield Candidate(
            route=name,
            reason=f"route not accepted: {reason}" + (f", {message}" if message else ""),
            code="not_accepted",
            place=origin.route_place(name, problem.path if problem else ""),
        )


def find_refused(origin: Origin) -> Iterator[Candidate]:
    """Give routes of files that mistakes keep out: their hostnames are not known, so it may be any."""
    first: dict[ObjectRef, Problem] = {}
    for problem in origin.problems:
        if problem.object is not None and problem.object.kind in ("HTTPRoute", "GRPCRoute"):
            if problem.severity == "error" and origin.is_refused(problem.object):
                if origin.is_closed(problem.object):
                    continue  # in its place it takes requests
                first.setdefault(problem.object, problem)
    for ref, problem in first.items():
        message = " ".join((problem.path, problem.reason, problem.message))
        yield Candidate(
            route=name_of(route_key(ref.kind, ref.namespace, ref.name)),
            reason=f"route ignored because of an error: {message}",
            code="refused",
            place=Place(
                object=str(ref),
                path=problem.path,
                source=str(problem.source) if problem.source else "",
            ),
        )


def _reason(outcome: RouteOutcome) -> tuple[str, str]:
    """Return the condition's reason and what it says; of the first parent that has refused the route."""
    for parent in outcome.status.parents:
        for one in parent.conditions:
            if one.type == "Accepted" and one.status == "False":
                message = one.message.partition(": ")[2] or one.message
                return one.reason, message.removeprefix(f"{one.reason} ")
    if not outcome.status.parents:
        message = next((one.text().partition(": ")[2] for one in outcome.problems), "")
        return "NoMatchingParent", message.removeprefix("NoMatchingParent ")
    return "no listener serves it", "its listeners are not programmed"


def _may_match(route: Route, path: str) -> bool:
    if isinstance(route, GRPCRoute):
        matches = [one for rule in route.spec.rules for one in rule.matches or (GRPCRouteMatch(),)]
        return any(_may_call(one.method, path) for one in matches)
    return not route.spec.rules or any(
        not rule.matches or any(_may_take(one.path, path) for one in rule.matches)
        for rule in route.spec.rules
    )


def _may_call(match: GRPCMethodMatch | None, path: str) -> bool:
    if match is None or match.type == "RegularExpression":
        return True
    service, _, method = path.removeprefix("/").partition("/")
    return match.service in (None, service) and match.method in (None, method)


def _may_take(match: HTTPPathMatch, path: str) -> bool:
    if match.type == "RegularExpression":
        return True
    if check_path(match.value):
        return False
    want = normalize_path(match.value)
    if match.type == "Exact":
        return path == want
    want = want.rstrip("/")
    return path == want or path.startswith(f"{want}/")
