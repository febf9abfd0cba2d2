"""Layer 4: why a layer 4 connection or datagram gets its backend.

In: the served table, a `RequestSpec` with the scheme tcp, tls or udp.
Out: an `Explanation`: the listener of the port, for TLS the one with the server name, the route
that wins, and its shares.
Source: layer4.py; hostnames as for virtual hosts (table/match.py).
Must never: do I/O, or report what is only readable after TLS termination.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain.connection_policies import evaluate_connection_policies
from edgefast.explain.deciding_check import answer_closed_port, answer_handshake, ends_handshake
from edgefast.explain.describe import list_dark, list_known, list_settings
from edgefast.explain.explanation import (
    Answer,
    BackendPart,
    ExplainedRequest,
    Explanation,
    ListenerPart,
    RulePart,
    TimeoutPart,
)
from edgefast.explain.rejected_listeners import RejectedListener, find_rejected_listeners
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.explain.traffic import settle_traffic
from edgefast.table.match import find_listener, order_hostnames

__all__ = ["explain_stream", "find_stream_route"]

#: What a refusal looks like to a client.
_REFUSED = {
    "tcp": "the connection is reset",
    "tls": "the connection is closed",
    "udp": "datagrams are dropped",
}
_PROTOCOLS = {"tcp": ("TCP",), "tls": ("TLS",), "udp": ("UDP",)}


def explain_stream(served: Served, request: RequestSpec) -> Explanation:
    """Explain what is not a request."""
    transport: ir.Transport = "UDP" if request.scheme == "udp" else "TCP"
    there = served.all_listeners(request.port, transport, request.address)
    dark = find_rejected_listeners(served, request.port, request.sni, transport=transport)
    if not there:
        return _stop(
            served,
            request,
            answer_closed_port(
                served, request.port, dark, transport=transport, address=request.address
            ),
        )
    listener = find_listener(there, request.port, request.sni)
    if request.scheme == "tls" and listener is None and any(one.protocol == "TLS" for one in there):
        names = ", ".join(dict.fromkeys(one.hostname for one in there))
        message = f"no listener of port {request.port} has {_shown(request)} (they have {names})"
        return _stop(served, request, _refuse(request, "listener", message, dark))
    listener = listener or there[0]
    if listener.protocol not in _PROTOCOLS[request.scheme]:
        return _stop(served, request, _other_protocol(request, listener), listener)
    if ends_handshake(listener):
        return _stop(served, request, answer_handshake(listener, dark), listener)
    route = _find_route(served, listener, request)
    notes = list_dark(listener, dark)
    if route is None:
        what = _shown(request) if request.scheme == "tls" else f"listener {listener.name}"
        message = f"no route of listener {listener.name} has {what}"
        if request.scheme != "tls":
            message = f"no route has {what}"
        closed = dark if dark is not None and dark.name == listener.name else None
        found = _refuse(request, "rule", message, closed)
        if closed is None:
            found = msgspec.structs.replace(
                found, fix=f"attach a {request.scheme.upper()}Route to the listener"
            )
        return _stop(served, request, found, listener, notes)
    hostname = route.hostname
    parts = _shares(served, route)
    fate = _REFUSED[request.scheme]
    checks = evaluate_connection_policies(served, route, request.source, request.sni.lower(), fate)
    settings = {
        name: one
        for name, one in settle_traffic(served.units(route.traffic), route.ceilings).items()
        if name == "connect_timeout"
    }
    patience = settings["connect_timeout"].value if settings else listener.stream.connect_timeout
    return Explanation(
        request=_was_requested(request),
        answers=(checks.answer,) if checks.answer else _answers(served, request, route),
        listener=_listener(served, listener),
        virtual_hosts=(hostname,) if request.scheme == "tls" else (),
        rule=RulePart(
            route=route.route,
            index=route.index,
            name=route.name,
            virtual_host=hostname,
            match=_match(request, hostname),
            place=served.origin.stream_place(route, f"spec.rules[{route.index}]"),
        ),
        backends=parts,
        policies=checks.parts,
        traffic=list_settings(settings),
        timeouts=TimeoutPart(
            request=0,
            connect=patience,
            stream_idle=listener.stream.session_timeout
            if request.scheme == "udp"
            else listener.stream.idle_timeout,
        ),
        notes=(*notes, *_notes(listener, route)),
        table=served.version,
    )


def find_stream_route(served: Served, request: RequestSpec) -> ir.StreamRoute | None:
    """Return the route that takes a connection or datagram, or None."""
    transport: ir.Transport = "UDP" if request.scheme == "udp" else "TCP"
    there = served.all_listeners(request.port, transport, request.address)
    listener = find_listener(there, request.port, request.sni) if there else None
    return _find_route(served, listener, request) if listener is not None else None


def _find_route(
    served: Served, listener: ir.Listener, request: RequestSpec
) -> ir.StreamRoute | None:
    routes = served.streams.get(listener.name, {})
    names = order_hostnames(request.sni or "*")
    return next((routes[one] for one in names if one in routes), None)


def _answers(served: Served, request: RequestSpec, route: ir.StreamRoute) -> tuple[Answer, ...]:
    total = sum(one.weight for one in route.backends)
    if not total:
        why = route.reason or "the route has no backends"
        return (_refuse(request, "rule_invalid", why),)
    found: dict[Answer, float] = {}
    for share in route.backends:
        if share.weight:
            one = _answer_share(served, request, share)
            found[one] = found.get(one, 0.0) + 100.0 * share.weight / total
    answers = [msgspec.structs.replace(one, share=round(found[one], 2)) for one in found]
    return tuple(sorted(answers, key=lambda one: -one.share))


def _answer_share(served: Served, request: RequestSpec, share: ir.StreamBackend) -> Answer:
    if not share.cluster:
        return _refuse(request, "backend_invalid", share.reason or "the backendRef is not valid")
    endpoints, _ = served.endpoints(share.cluster)
    if not endpoints:
        found = _refuse(request, "endpoints", f"{share.cluster} has no endpoints")
        fix = "add ready endpoints to the backend (EndpointSlices, or the endpoints of a Backend)"
        return msgspec.structs.replace(found, fix=fix, reasons=("EndpointsNotFound",))
    why = ""
    if all(one.failing for one in endpoints):
        why = "the last connection to each of its endpoints failed"
    return Answer(kind="backend", check="forwarded", backend=share.cluster, why=why)


def _shares(served: Served, route: ir.StreamRoute) -> tuple[BackendPart, ...]:
    total = sum(one.weight for one in route.backends) or 1
    parts = []
    for at, share in enumerate(route.backends):
        cluster = served.clusters.get(share.cluster)
        endpoints, fallback = served.endpoints(share.cluster) if share.cluster else ((), False)
        parts.append(
            BackendPart(
                name=share.cluster,
                weight=share.weight,
                share=round(100.0 * share.weight / total, 2),
                reason=share.reason,
                fallback=fallback,
                tls=cluster.tls.sni if cluster is not None and cluster.tls is not None else "",
                endpoints=endpoints,
                place=served.origin.stream_backend(route, at),
            )
        )
    return tuple(parts)


def _notes(listener: ir.Listener, route: ir.StreamRoute) -> list[str]:
    stream, notes = listener.stream, []
    if listener.protocol == "TLS":
        how = "forwarded unchanged" if listener.tls is None else "terminated"
        notes.append(f"TLS is {how}")
    for version in dict.fromkeys(one.proxy_protocol for one in route.backends):
        if version:
            notes.append(f"backends get the client address in a PROXY protocol header ({version})")
    if stream.address_connections:
        notes.append(f"at most {stream.address_connections} connections for each client address")
    if stream.address_rate:
        notes.append(
            f"at most {stream.address_rate} new connections a second for each client address"
        )
    return notes


def _refuse(
    request: RequestSpec, check: str, message: str, dark: RejectedListener | None = None
) -> Answer:
    why, fix = f"{message}: {_REFUSED[request.scheme]}", ""
    if dark is not None:
        why, fix = f"{why}; listener {dark.name} is not served, {dark.said}", dark.fix
    return Answer(kind="closed", check=check, why=why, fix=fix, reasons=name_reasons(why))


def _other_protocol(request: RequestSpec, listener: ir.Listener) -> Answer:
    """The listener that has the port, or the server name, does not pass on what is asked for."""
    words = {"HTTP": "http", "HTTPS": "https"}
    requested = words.get(listener.protocol, listener.protocol.lower())
    message = f"port {request.port} serves {listener.protocol}, not {request.scheme.upper()}"
    if request.sni and listener.hostname != "*":
        message = (
            f"{request.sni} belongs to listener {listener.name}, which serves {listener.protocol}"
        )
    return Answer(kind="closed", check="protocol", why=message, fix=f"use {requested}://")


def _shown(request: RequestSpec) -> str:
    return f"the server name {request.sni}" if request.sni else "a handshake without a server name"


def _match(request: RequestSpec, hostname: str) -> str:
    if request.scheme != "tls":
        return "every datagram" if request.scheme == "udp" else "every connection"
    return "any server name" if hostname == "*" else f"server name {hostname}"


def _was_requested(request: RequestSpec) -> ExplainedRequest:
    return ExplainedRequest(
        method=request.method,
        url=request.url(),
        port=request.port,
        host=request.name(),
        path="",
        source=request.source,
        client=request.source,
        sni=request.sni,
    )


def _stop(
    served: Served,
    request: RequestSpec,
    found: Answer,
    listener: ir.Listener | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    return Explanation(
        request=_was_requested(request),
        answers=(found,),
        listener=_listener(served, listener) if listener is not None else None,
        notes=(*notes, *(list_known(served) if found.check in ("port", "listener") else ())),
        table=served.version,
    )


def _listener(served: Served, listener: ir.Listener) -> ListenerPart:
    return ListenerPart(
        name=listener.name,
        port=listener.port,
        addresses=listener.addresses,
        protocol=listener.protocol,
        hostname=listener.hostname,
        place=served.origin.listener(listener.name),
    )
