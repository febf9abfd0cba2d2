"""Stream: why a connection or a datagram that is passed on unread goes where it goes.

In: what is served, an ask with the scheme tcp, tls or udp. Out: an `Explanation`: the listener of the port, for TLS the one that
has the server name, the route that has the place, and its shares.
Source: irstream.py; hostnames as for virtual hosts (table/match.py).
Must never: do I/O, or tell of a request what is read only after it was terminated.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.reasons.named import name_reasons
from edgefast.table.match import find_listener, order_hostnames
from edgefast.why.answer import answer_closed_port, answer_handshake, ends_handshake
from edgefast.why.ask import Ask
from edgefast.why.described import list_dark, list_known
from edgefast.why.explanation import (
    Answer,
    Asked,
    BackendPart,
    Explanation,
    ListenerPart,
    RulePart,
    TimeoutPart,
)
from edgefast.why.served import Served
from edgefast.why.unserved import Unserved, find_unserved

__all__ = ["explain_stream"]

#: What a refusal looks like to a client.
_REFUSED = {
    "tcp": "the connection is reset",
    "tls": "the connection is closed",
    "udp": "datagrams are dropped",
}
_PROTOCOLS = {"tcp": ("TCP",), "tls": ("TLS",), "udp": ("UDP",)}


def explain_stream(served: Served, ask: Ask) -> Explanation:
    """Explain what is not a request."""
    transport: ir.Transport = "UDP" if ask.scheme == "udp" else "TCP"
    there = served.all_listeners(ask.port, transport, ask.address)
    dark = find_unserved(served, ask.port, ask.sni, transport=transport)
    if not there:
        return _stop(
            served,
            ask,
            answer_closed_port(served, ask.port, dark, transport=transport, address=ask.address),
        )
    listener = find_listener(there, ask.port, ask.sni)
    if ask.scheme == "tls" and listener is None and any(one.protocol == "TLS" for one in there):
        names = ", ".join(dict.fromkeys(one.hostname for one in there))
        said = f"no listener of port {ask.port} has {_shown(ask)} (they have {names})"
        return _stop(served, ask, _refuse(ask, "listener", said, dark))
    listener = listener or there[0]
    if listener.protocol not in _PROTOCOLS[ask.scheme]:
        return _stop(served, ask, _other_protocol(ask, listener), listener)
    if ends_handshake(listener):
        return _stop(served, ask, answer_handshake(listener, dark), listener)
    routes = served.streams.get(listener.name, {})
    hostname = next((one for one in order_hostnames(ask.sni or "*") if one in routes), None)
    notes = list_dark(listener, dark)
    if hostname is None:
        what = _shown(ask) if ask.scheme == "tls" else f"listener {listener.name}"
        said = f"no route of listener {listener.name} has {what}"
        if ask.scheme != "tls":
            said = f"no route has {what}"
        closed = dark if dark is not None and dark.name == listener.name else None
        found = _refuse(ask, "rule", said, closed)
        if closed is None:
            found = msgspec.structs.replace(
                found, fix=f"attach a {ask.scheme.upper()}Route to the listener"
            )
        return _stop(served, ask, found, listener, notes)
    route = routes[hostname]
    parts = _shares(served, route)
    return Explanation(
        request=_asked(ask),
        answers=_answers(served, ask, route),
        listener=_listener(served, listener),
        virtual_hosts=(hostname,) if ask.scheme == "tls" else (),
        rule=RulePart(
            route=route.route,
            index=route.index,
            name=route.name,
            virtual_host=hostname,
            match=_match(ask, hostname),
            place=served.origin.stream_place(route, f"spec.rules[{route.index}]"),
        ),
        backends=parts,
        timeouts=TimeoutPart(
            request=0,
            connect=listener.stream.connect_timeout,
            stream_idle=listener.stream.session_timeout
            if ask.scheme == "udp"
            else listener.stream.idle_timeout,
        ),
        notes=(*notes, *_notes(listener, route)),
        table=served.version,
    )


def _answers(served: Served, ask: Ask, route: ir.StreamRoute) -> tuple[Answer, ...]:
    total = sum(one.weight for one in route.backends)
    if not total:
        why = route.reason or "the route has no backends"
        return (_refuse(ask, "policy_invalid" if route.policies else "rule_invalid", why),)
    found: dict[Answer, float] = {}
    for share in route.backends:
        if share.weight:
            one = _answer_share(served, ask, share)
            found[one] = found.get(one, 0.0) + 100.0 * share.weight / total
    answers = [msgspec.structs.replace(one, share=round(found[one], 2)) for one in found]
    return tuple(sorted(answers, key=lambda one: -one.share))


def _answer_share(served: Served, ask: Ask, share: ir.StreamBackend) -> Answer:
    if not share.cluster:
        return _refuse(ask, "backend_invalid", share.reason or "the backendRef is not valid")
    endpoints, _ = served.endpoints(share.cluster)
    if not endpoints:
        found = _refuse(ask, "endpoints", f"{share.cluster} has no endpoints")
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


def _refuse(ask: Ask, check: str, said: str, dark: Unserved | None = None) -> Answer:
    why, fix = f"{said}: {_REFUSED[ask.scheme]}", ""
    if dark is not None:
        why, fix = f"{why}; listener {dark.name} is not served, {dark.said}", dark.fix
    return Answer(kind="closed", check=check, why=why, fix=fix, reasons=name_reasons(why))


def _other_protocol(ask: Ask, listener: ir.Listener) -> Answer:
    """The listener that has the port, or the server name, does not pass on what is asked for."""
    words = {"HTTP": "http", "HTTPS": "https"}
    asked = words.get(listener.protocol, listener.protocol.lower())
    said = f"port {ask.port} serves {listener.protocol}, not {ask.scheme.upper()}"
    if ask.sni and listener.hostname != "*":
        said = f"{ask.sni} belongs to listener {listener.name}, which serves {listener.protocol}"
    return Answer(kind="closed", check="protocol", why=said, fix=f"use {asked}://")


def _shown(ask: Ask) -> str:
    return f"the server name {ask.sni}" if ask.sni else "a handshake without a server name"


def _match(ask: Ask, hostname: str) -> str:
    if ask.scheme != "tls":
        return "every datagram" if ask.scheme == "udp" else "every connection"
    return "any server name" if hostname == "*" else f"server name {hostname}"


def _asked(ask: Ask) -> Asked:
    return Asked(
        method=ask.method,
        url=ask.url(),
        port=ask.port,
        host=ask.name(),
        path="",
        source=ask.source,
        client=ask.source,
        sni=ask.sni,
    )


def _stop(
    served: Served,
    ask: Ask,
    found: Answer,
    listener: ir.Listener | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    return Explanation(
        request=_asked(ask),
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
