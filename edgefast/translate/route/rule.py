"""Rule: HTTPRouteRule -> ir.Rule and its matches.

In: one rule of a route. Out: a `RuleOutcome`. A rule answers 500 with a problem if it has a
mistake, a field that is not served, or no valid backend. An invalid backend among valid ones costs
its share of the traffic.
Source: Gateway API HTTPRouteRule; spec section 4. Such a share answers 500, or 503 where other
shares of the rule have no endpoints.
Must never: let one rule's mistake reach its siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from edgefast import ir
from edgefast.api.gateway.grpcroute import (
    GRPCBackendRef,
    GRPCRouteMatch,
    GRPCRouteRule,
    Route,
)
from edgefast.api.gateway.httproute import (
    HTTPBackendRef,
    HTTPRoute,
    HTTPRouteMatch,
    HTTPRouteRetry,
    HTTPRouteRule,
    HTTPRouteTimeouts,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.filter import check_filter_list
from edgefast.api.validation.httproute import check_redirect, check_timeouts
from edgefast.api.validation.regexes import REGEXES_PER_ROUTE
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.backend.session_persistence import translate_session
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Reader
from edgefast.translate.deps.intern import intern
from edgefast.translate.filter.filter import Filters, Place, translate_filters
from edgefast.translate.filter.narrow import narrow_matches
from edgefast.translate.match.grpc_match import characters_of, translate_call, widen_call
from edgefast.translate.match.match import Matched, translate_match, widen_match
from edgefast.translate.rate_limit.counter import name_route, name_rule
from edgefast.translate.rate_limit.rate_limit import translate_rate_limits
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved
from edgefast.translate.report.violation import refuse_violations
from edgefast.translate.route.rule_order import RULE_ORDER

#: What `matches: []` stands for: an API server puts the default in only where the field is absent; for GRPCRoutes there is none.
_ANY = (HTTPRouteMatch(),)
_ANY_CALL = (GRPCRouteMatch(),)
#: Calls may last: only what a client says of its patience bounds them.
_NO_TIMEOUT = ir.Timeouts(request=0)
#: RETRY_MAX_ATTEMPTS of core/consts.pxi.
MAX_RETRIES = 16


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One rule."""

    rule: ir.Rule
    matches: tuple[tuple[int, ir.Match], ...]  # with their place in spec.rules[].matches
    broken: bool  # the rule has a mistake of its own: Accepted=False or PartiallyInvalid
    clusters: tuple[ClusterRef, ...]
    #: Places of matches that take more than was written: the length of the path that was.
    widened: Mapping[int, int] = {}
    #: What precedence counts of matches of calls, in place of the lengths of their paths (match/grpc_match.py).
    characters: Mapping[int, int] = {}


Rule = HTTPRouteRule | GRPCRouteRule
Match = HTTPRouteMatch | GRPCRouteMatch


def translate_any(match: Match, report: Report, path: str) -> Matched:
    """Translate a match of any kind of route."""
    if isinstance(match, GRPCRouteMatch):
        return translate_call(match, report, path)
    return translate_match(match, report, path)


def widen_any(match: Match) -> Matched:
    """Return a match of any kind of route without its regular expressions: it accepts more requests."""
    return widen_call(match) if isinstance(match, GRPCRouteMatch) else widen_match(match)


def characters_in(matches: Iterable[Match]) -> dict[int, int]:
    """Return what precedence counts of matches of calls, by place; of others nothing."""
    return {
        at: characters_of(one) for at, one in enumerate(matches) if isinstance(one, GRPCRouteMatch)
    }


def translate_rule(
    route: Route,
    named: str,
    index: int,
    certificate: str,
    source: str,
    reader: Reader,
    report: Report,
    *,
    excess: bool = False,
    disorder: str = "",
) -> RuleOutcome:
    """Translate `spec.rules[index]` for Gateways that show `certificate` to TLS backends.

    `named`: what the route is called among all. `excess`: it has more regular expressions than the route may have. `disorder`:
    what is wrong with the annotation that orders the rules.
    """
    rule, path, meta = route.spec.rules[index], f"spec.rules[{index}]", route.metadata
    before = len(report.refused)
    http = rule if isinstance(rule, HTTPRouteRule) else None
    made = route.origin if isinstance(route, HTTPRoute) else None
    origin = made.rules[index] if made is not None else None
    wanted: tuple[Match, ...] = rule.matches or (_ANY if http else _ANY_CALL)
    if disorder:
        where = f"metadata.annotations[{RULE_ORDER}]"
        report.refuse(where, "Invalid", disorder, condition="UnsupportedValue")
    matches: list[tuple[int, ir.Match]] = []
    widened: dict[int, int] = {}
    if excess:
        message = f"more than {REGEXES_PER_ROUTE} regular expressions in this route up to this rule; requests that its matches can take get 500; use several routes, or PathPrefix"
        report.refuse(f"{path}.matches", "TooMany", message, condition="UnsupportedValue")
    for at, one in enumerate(wanted):
        if excess:
            match, length = widen_any(one)
        else:
            match, length = translate_any(one, report, f"{path}.matches[{at}]")
        matches.append((at, intern(match)))
        if length is not None:
            widened[at] = length
    characters = {} if http else characters_in(wanted)
    place = Place(
        namespace=meta.namespace,
        certificate=certificate,
        kind=type(route).__name__,
        http2=origin is not None and origin.http2,
        prefixes=http is not None
        and all(one.path.type == "PathPrefix" for one in http.matches or _ANY),
    )
    refuse_violations(check_filter_list(rule), report, path, "IncompatibleFilters")
    if http:
        refuse_violations(check_redirect(http), report, path, "IncompatibleFilters")
    filters = translate_filters(rule.filters, place, reader, report, f"{path}.filters")
    if origin is not None and filters.redirect is not None and not filters.redirect.template:
        filters.redirect = msgspec.structs.replace(
            filters.redirect,
            trim_slash=origin.trim_slash,
            write_port=origin.write_port,
            drop_query=origin.drop_query,
        )
    if filters.http2:
        place = msgspec.structs.replace(place, http2=True)
    if filters.extensions or filters.unknown:
        narrowed = narrow_matches(matches, filters.extensions, report, f"{path}.filters")
        if narrowed is None or filters.unknown:
            # A condition that is not known: the rule takes more than was written.
            for at, match in matches:
                widened.setdefault(at, len(match.path))
        matches = matches if narrowed is None else [(at, intern(one)) for at, one in narrowed]
    name = _name_of(route, index, report, f"{path}.name")
    rate_limits: tuple[ir.RateLimit, ...] = ()
    if filters.limits:
        rate_limits = translate_rate_limits(
            filters.limits,
            name_route(route, standalone=reader.settings.standalone),
            name_rule(name, (match for _, match in matches)),
            report,
            f"{path}.filters",
        )
    timeouts: ir.Timeouts | None = _NO_TIMEOUT
    retry = None
    if http:
        timeouts = _translate_timeouts(http.timeouts, report, f"{path}.timeouts")
        retry = _translate_retry(http.retry, report, f"{path}.retry")
    where = f"{path}.sessionPersistence"
    session = translate_session(rule.session_persistence, report, where)
    refuse_unserved(route, report, "the rule answers 500", path=path)
    broken = report.refused[before:]
    shares, clusters = _translate_shares(rule, place, reader, report, path)
    if filters.direct is not None:
        shares, clusters = (), []  # nobody is asked
    plain = ir.Rule(route=named, index=index, name=name, source=source)
    reason = broken[0].text() if broken else _check_shares(rule, shares, filters)
    if reason and not broken and not shares:
        report.lose(f"{path}.backendRefs", "Invalid", f"{reason}, so it answers 500")
    if reason:
        return RuleOutcome(
            rule=msgspec.structs.replace(plain, status=500, reason=reason),
            matches=tuple(matches),
            broken=bool(broken),
            clusters=(),
            widened=widened,
            characters=characters,
        )
    return RuleOutcome(
        rule=msgspec.structs.replace(
            plain,
            backends=shares,
            request_headers=filters.request_headers,
            response_headers=filters.response_headers,
            redirect=filters.redirect,
            rewrite=filters.rewrite,
            mirrors=tuple(filters.mirrors),
            cors=filters.cors,
            timeouts=timeouts,
            retry=retry,
            rate_limits=rate_limits,
            ext_auth=filters.ext_auth,
            direct=filters.direct,
            session=session,
        ),
        matches=tuple(matches),
        broken=False,
        clusters=(*clusters, *filters.clusters),
        characters=characters,
    )


def _name_of(route: Route, index: int, report: Report, path: str) -> str:
    """Return the rule's name, "" when it has none of its own: the standard CRDs let names be equal.

    Rules of one name would count together what each is limited to.
    """
    name = route.spec.rules[index].name or ""
    if name and any(one.name == name for one in route.spec.rules[:index]):
        report.warn(path, "Duplicate", f'"{name}" is the name of an earlier rule and ignored')
        return ""
    return name


def _translate_shares(
    rule: Rule, place: Place, reader: Reader, report: Report, path: str
) -> tuple[tuple[ir.BackendRef, ...], list[ClusterRef]]:
    shares: list[ir.BackendRef] = []
    clusters: list[ClusterRef] = []
    empty = False
    refs: tuple[HTTPBackendRef | GRPCBackendRef, ...] = rule.backend_refs
    for at, ref in enumerate(refs):
        share, used = _translate_share(ref, place, reader, report, f"{path}.backendRefs[{at}]")
        state = reader.cluster(used[0]) if used else None
        if state is not None and not state.available:
            message = f"{used[0].told} has no endpoints"
            where = f"{path}.backendRefs[{at}]"
            report.miss(where, "EndpointsNotFound", message, mistake=state.mismatch)
            empty = empty or ref.weight > 0
        if ref.weight > 0:
            shares.append(share)
            clusters += used
    if empty:
        shares = [
            one if one.cluster else msgspec.structs.replace(one, status=503) for one in shares
        ]
    return tuple(shares), clusters


def _translate_share(
    ref: HTTPBackendRef | GRPCBackendRef, place: Place, reader: Reader, report: Report, path: str
) -> tuple[ir.BackendRef, list[ClusterRef]]:
    """Translate one backendRef; the clusters begin with its own and are none when it is invalid."""
    unresolved, refused = len(report.unresolved), len(report.refused)
    cluster = resolve_backend(
        ref,
        place.namespace,
        place.certificate,
        reader,
        report,
        path,
        kind=place.kind,
        http2=place.http2,
    )
    if cluster is None:
        reason = report.unresolved[unresolved].text()
        if ref.filters:
            # Who is used must not depend on whether another one can be sent to: what is wrong with the filters is told when this is mended.
            where = msgspec.structs.replace(place, limits=False)
            translate_filters(ref.filters, where, reader, Report(report.object), path)
        return ir.BackendRef(weight=ref.weight, reason=reason), []
    # No other kind says anything of sessions.
    session = reader.cluster(cluster).session if cluster.kind == "xbackend" else None
    if not ref.filters:
        share = ir.BackendRef(cluster=reader.name_of(cluster), weight=ref.weight, session=session)
        return share, [cluster]
    refuse_violations(check_filter_list(ref), report, path, "IncompatibleFilters")
    place = msgspec.structs.replace(place, limits=False)
    filters = translate_filters(ref.filters, place, reader, report, f"{path}.filters")
    if len(report.refused) > refused:
        return ir.BackendRef(weight=ref.weight, reason=report.refused[refused].text()), []
    share = ir.BackendRef(
        cluster=reader.name_of(cluster),
        weight=ref.weight,
        request_headers=filters.request_headers,
        response_headers=filters.response_headers,
        rewrite=filters.rewrite,
        redirect=filters.redirect,
        mirrors=tuple(filters.mirrors),
        cors=filters.cors,
        session=session,
    )
    return share, [cluster, *filters.clusters]


def _check_shares(rule: Rule, shares: tuple[ir.BackendRef, ...], filters: Filters) -> str:
    """Return why the rule has nowhere to send to, "" when it has or answers itself."""
    if filters.redirect is not None or filters.direct is not None:
        return ""
    if any(one.cluster for one in shares):
        return ""
    if not rule.backend_refs:
        return "the rule has no backendRefs"
    return shares[0].reason if shares else "the weights of all backendRefs are 0"


def _translate_timeouts(
    timeouts: HTTPRouteTimeouts | None, report: Report, path: str
) -> ir.Timeouts | None:
    if timeouts is None:
        return None
    whole = None if timeouts.request is None else parse_duration(timeouts.request)
    single = None if timeouts.backend_request is None else parse_duration(timeouts.backend_request)
    refuse_violations(check_timeouts(timeouts), report, path)
    return ir.Timeouts(request=whole, backend_request=single)


def _translate_retry(retry: HTTPRouteRetry | None, report: Report, path: str) -> ir.Retry | None:
    if retry is None:
        return None
    plain = ir.Retry()
    attempts = plain.attempts if retry.attempts is None else retry.attempts
    if attempts > MAX_RETRIES:
        message = f"{attempts} is more than {MAX_RETRIES}, which is used instead"
        report.warn(f"{path}.attempts", "Invalid", message)
    return ir.Retry(
        codes=tuple(sorted(set(retry.codes))),
        attempts=min(attempts, MAX_RETRIES),
        backoff=plain.backoff if retry.backoff is None else parse_duration(retry.backoff),
    )
