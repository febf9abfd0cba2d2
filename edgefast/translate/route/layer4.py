"""Layer 4: one TLSRoute, TCPRoute or UDPRoute -> its statuses and the backends of its connections or datagrams.

In: a route and a Reader. Out: a `RouteOutcome` with streams instead of hosts, valid until the route
or a fact it read changes. A share with an invalid reference is refused by its weight. A route with
a mistake keeps its hostnames and refuses everything. An access policy that cannot decide about
connections (policy/connection_access.py) has the same effect.
Source: Gateway API TLSRouteRule, TCPRouteRule, UDPRouteRule. Backends of several rules (v1alpha2)
are shares of one whole.
Must never: know of other routes (virtual_host/layer4.py does), or send anywhere what a mistake was
to decide about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from edgefast import ir
from edgefast.api.gateway.layer4_route import StreamRoute, TCPRoute, TLSRoute, UDPRoute
from edgefast.api.kinds import EDGE_GROUP, ref_of
from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.reference import BackendRef
from edgefast.api.model.route_name import RouteKey, name_of
from edgefast.translate.backend.backend import resolve_backend
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import GatewayView, ListenerView, Reader
from edgefast.translate.deps.policy_summary import CLOSED, Level, owner_of_unit
from edgefast.translate.edgeproxy.protocols import proxy_protocol_of
from edgefast.translate.match.hostname import ANY
from edgefast.translate.match.precedence import age_order
from edgefast.translate.policy.connection_access import (
    CLIENT_CERTIFICATE,
    SERVER_NAMES,
    find_unsupported,
)
from edgefast.translate.policy.merge import Effective, merge_levels
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved
from edgefast.translate.route.attachment import attach_route
from edgefast.translate.route.outcome import (
    ADDRESSES,
    RouteOutcome,
    StreamPart,
    check_unsupported,
    compute_parent_status,
    settle,
)


class _Way(NamedTuple):
    """What shares depend on besides the route: the Gateway's certificate for backends, its PROXY protocol, whether TLS is passed on, and the policies above."""

    certificate: str
    proxy_protocol: ir.ProxyProtocol
    passes: bool
    levels: tuple[Level, ...] = ()


def translate_stream_route(
    key: RouteKey, route: StreamRoute, source: str, reader: Reader, previous: RouteOutcome | None
) -> RouteOutcome:
    """Translate one route; parts equal to those of `previous` keep their identity."""
    ref = ref_of(route)
    reports, attachments = [], []
    for at, parent in enumerate(route.spec.parent_refs):
        report = Report(ref)
        attached = attach_route(route, parent, reader, report, f"spec.parentRefs[{at}]")
        reports.append(report)
        if attached is not None:
            attachments.append((attached, report))
    own, closed = Report(ref), route.closed
    if closed is None and any(one.refused for one, _ in attachments):
        closed = ADDRESSES
    if route.closed is None:
        check_unsupported(route, own, standalone=reader.settings.standalone)
    if not attachments and not reader.settings.standalone:
        return RouteOutcome(route=route, source=source, reads=reader.noted())
    if closed is not None:
        _close(route, closed, own, placed=any(one.listeners for one, _ in attachments))
    before = len(own.refused)
    refuse_unserved(route, own, "its connections are refused")
    mistakes = own.refused[before if closed is None else 0 :]
    broken = mistakes[0].text() if mistakes else ""
    on_it = reader.attached(type(route).__name__, ref.namespace, ref.name)
    levels = tuple(on_it[one] for one in _parts_of(route) if one in on_it)
    parts: dict[_Way, StreamPart] = {}

    def part_of(way: _Way) -> StreamPart:
        if way not in parts:
            report = Report(ref)
            made = _translate_part(key, route, source, way, reader, report, broken)
            parts[way] = _keep_part(made, previous)
            own.join(report)
        return parts[way]

    counted: dict[str, None] = {}
    streams: dict[tuple[str, str], StreamPart] = {}
    for attached, _ in attachments:
        for listener, hostnames in attached.listeners:
            way = _way_of(route, attached.gateway, listener)
            part = part_of(way._replace(levels=(*way.levels, *levels)) if levels else way)
            if not broken:
                counted[listener.name] = None
            names = hostnames if not isinstance(route, TCPRoute | UDPRoute) else (ANY,)
            for hostname in names if listener.served else ():
                streams[listener.name, hostname] = part
    if not parts:  # what is wrong with its backends is told all the same
        part_of(_Way("", "", passes=False))
    parents = [
        compute_parent_status(route, attached, report, own, (), not broken, reader)
        for attached, report in attachments
    ]
    problems = [problem for report in reports for problem in report.problems]
    return settle(
        route,
        source,
        reader,
        attachments,
        parents,
        counted,
        (*problems, *own.problems),
        streams=streams,
        used=(one.clusters for one in parts.values()),
    )


def _parts_of(route: StreamRoute) -> dict[str, None]:
    """Return what a policy may name of a route, "" for all of it: backends of its rules are shares of one whole, and so are policies of these."""
    return dict.fromkeys(("", *(one.name or "" for one in route.spec.rules)))


def _way_of(route: StreamRoute, gateway: GatewayView, listener: ListenerView) -> _Way:
    if isinstance(route, UDPRoute):
        return _Way("", "", passes=False, levels=listener.policies)
    certificate = "" if listener.passes else gateway.certificate
    return _Way(certificate, gateway.proxy_protocol, listener.passes, listener.policies)


def _translate_part(
    key: RouteKey,
    route: StreamRoute,
    source: str,
    way: _Way,
    reader: Reader,
    report: Report,
    broken: str,
) -> StreamPart:
    rules = route.spec.rules
    plain = ir.StreamRoute(
        listener="",
        hostname="",
        route=name_of(key),
        name=(rules[0].name or "") if rules else "",
        source=source,
    )
    age = age_order(route.metadata)
    if broken:
        return StreamPart(key=key, age=age, route=msgspec.structs.replace(plain, reason=broken))
    shares: list[ir.StreamBackend] = []
    clusters: dict[ClusterRef, None] = {}
    for index, rule in enumerate(rules):
        for at, ref in enumerate(rule.backend_refs):
            path = f"spec.rules[{index}].backendRefs[{at}]"
            share, used = _translate_share(route, ref, way, reader, report, path)
            if ref.weight > 0:
                shares.append(share)
                clusters.update(dict.fromkeys(used))
    reason = _check_shares(shares)
    if not shares:
        report.lose("spec.rules", "Invalid", f"{reason}; all connections are refused")
    above = merge_levels(way.levels) if way.levels else Effective()
    refused = tuple(find_unsupported(above.policies, way.levels, _list_given(route, way)))
    plain = msgspec.structs.replace(
        plain,
        policies=above.policies,
        traffic=above.traffic,
        ceilings=above.ceilings,
        lost=above.lost,
    )
    if refused:
        closed = _explain_refusal(*refused[0], type(route).__name__)
        made = msgspec.structs.replace(plain, reason=closed)
        return StreamPart(key=key, age=age, route=made, above=above, refused=refused)
    made = msgspec.structs.replace(plain, backends=tuple(shares), reason=reason)
    return StreamPart(key=key, age=age, route=made, above=above, clusters=tuple(clusters))


def _list_given(route: StreamRoute, way: _Way) -> tuple[str, ...]:
    """Return the conditions besides addresses that the listener reads of a connection."""
    if not isinstance(route, TLSRoute):
        return ()
    return (SERVER_NAMES,) if way.passes else (SERVER_NAMES, CLIENT_CERTIFICATE)


def _explain_refusal(unit: str, field: str, kind: str) -> str:
    """Return why a unit closes a route; `field`: what of it cannot apply."""
    owner = owner_of_unit(unit)
    if field == CLOSED:
        return f"{owner} targets this route or its parent, and has an error"
    return f"{owner} {field}: not supported for {kind}s"


def _translate_share(
    route: StreamRoute, ref: BackendRef, way: _Way, reader: Reader, report: Report, path: str
) -> tuple[ir.StreamBackend, Iterable[ClusterRef]]:
    unresolved = len(report.unresolved)
    namespace, kind = route.metadata.namespace, type(route).__name__
    cluster = resolve_backend(
        ref, namespace, way.certificate, reader, report, path, kind=kind, passes=way.passes
    )
    if cluster is None:
        reason = report.unresolved[unresolved].text()
        return ir.StreamBackend(weight=ref.weight, reason=reason), ()
    state = reader.cluster(cluster)
    if not state.available:
        message = f"{cluster.told} has no endpoints"
        report.miss(path, "EndpointsNotFound", message, mistake=state.mismatch)
    proxied = way.proxy_protocol
    if (ref.group, ref.kind) == (EDGE_GROUP, "Backend"):
        backend = reader.backend(cluster.namespace, cluster.name)
        proxied = proxy_protocol_of(backend.spec.proxy_protocol if backend else "") or proxied
    share = ir.StreamBackend(
        cluster=reader.name_of(cluster), weight=ref.weight, proxy_protocol=proxied
    )
    return share, (cluster,)


def _check_shares(shares: list[ir.StreamBackend]) -> str:
    """Return why nothing is sent anywhere, "" when something is."""
    if any(one.cluster for one in shares):
        return ""
    return shares[0].reason if shares else "the weights of all backendRefs are 0"


def _close(route: StreamRoute, closed: Closed, report: Report, *, placed: bool) -> None:
    """Say what becomes of the connections of a route that only keeps its place."""
    message = f"the route has an error: {closed.path}: {closed.reason}"
    report.follow(report.refuse("", "Invalid", message, condition="UnsupportedValue"))
    names = ", ".join(route.spec.hostnames[:4]) or "its listeners"
    fate = f"connections to {names} are refused" if placed else "its listeners are unknown"
    report.warn(closed.path, "Invalid", f"{closed.since.format('route')}, {fate}")


def _keep_part(part: StreamPart, previous: RouteOutcome | None) -> StreamPart:
    for _, _, old in previous.streams if previous else ():
        if old == part:
            return old
    return part
