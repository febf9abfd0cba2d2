"""Layer 4 diff: connections and datagrams with another backend, from one table to another.

In: a pair of tables. Out: a `Change` for each listener and hostname that differs, with an example
that `edgefast explain` takes.
Must never: distinguish what a client cannot, such as where a route was written.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast.explain.changes import Change, Example, Kind, Side
from edgefast.explain.connection_policies import list_sources
from edgefast.explain.explanation import Answer, Explanation
from edgefast.explain.fleet_pair import Pair, make_host
from edgefast.explain.layer4 import explain_stream, find_stream_route
from edgefast.explain.made_names import is_made_route
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served, first_of

__all__ = ["compare_streams", "stream_example"]

_Place = tuple[str, int, str, str]  # scheme, port, address ("": all), hostname


def compare_streams(pair: Pair) -> Iterator[Change]:
    """Ask both tables about each place that one of them has, give what differs."""
    places = sorted({place for side in pair.sides() for place in _places(side)})
    for scheme, port, address, hostname in places:
        name = make_host(hostname, {one[3] for one in places if one[1] == port})
        where = f"{scheme.upper()} port {port}" + (f" of {address}" if address else "")
        where += f" for {hostname}" if scheme == "tls" else ""
        plain = _ask(scheme, port, name, address)
        told: dict[str, None] = {}
        for source in (plain.source, *_sources(pair, plain)):
            request = msgspec.structs.replace(plain, source=source)
            before, after = (explain_stream(side, request) for side in pair.sides())
            pair.examples += 1
            for one in (*before.answers, *after.answers):
                if one.backend:
                    pair.by_cluster.setdefault(one.backend, request)
            found = _classify(before, after)
            if found is None or found[0] in told:
                continue
            kind, what = found
            told[kind] = None
            shown = source if source != plain.source else ""
            yield Change(
                kind=kind,
                breaks=kind in ("lost", "refused"),
                opens=kind == "opened",
                text=f"{where}{f' from {shown}' if shown else ''}: {what}",
                example=stream_example(scheme, port, name, address, shown),
                before=_side(before),
                after=_side(after),
                requests=1,
            )


def stream_example(
    scheme: str, port: int, name: str, address: str = "", source: str = ""
) -> Example:
    """Return what to ask `edgefast explain`; `source` "": of this machine."""
    url = _ask(scheme, port, name).url()
    return Example(method="", url=url, address=address, source=source)


def _sources(pair: Pair, request: RequestSpec) -> list[str]:
    """Return addresses of clients about which the policies of a place can differ."""
    routes = ((side, find_stream_route(side, request)) for side in pair.sides())
    units = [one for side, route in routes if route for one in side.units(route.policies)]
    return list_sources(units)


def _ask(scheme: str, port: int, name: str, address: str = "") -> RequestSpec:
    named = scheme == "tls"
    return RequestSpec(
        method="CONNECT",
        scheme=scheme,
        port=port,
        host=name if named and port == 443 else f"{name}:{port}",
        sni=name if named else "",
        address=address,
    )


def _places(side: Served) -> Iterator[_Place]:
    for one in side.fleet.listeners:
        if one.protocol not in ("HTTP", "HTTPS"):
            for hostname in {one.hostname, *side.streams.get(one.name, ())}:
                at = first_of(one) if side.addresses(one.port) else ""
                yield one.protocol.lower(), one.port, at, hostname


def _classify(before: Explanation, after: Explanation) -> tuple[Kind, str] | None:
    had, has = (any(one.backend for one in side.answers) for side in (before, after))
    if has and _is_refused(before):
        return "opened", "access granted: it goes to a backend, and a policy denied it before"
    if had and _is_refused(after):
        return "refused", "access denied: a policy refuses it now"
    if had != has:
        return ("lost", "goes to no backend any more") if had else ("gained", "goes to a backend")
    if _gist(before) != _gist(after):
        return "answer", "goes to other backends, or with other weights"
    routes = (_route(before), _route(after))
    if routes[0] != routes[1] and not any(is_made_route(one) for one in routes):
        return "owner", "matches another route"
    return None


def _is_refused(one: Explanation) -> bool:
    return any(answer.check in ("policy_invalid", "authorization") for answer in one.answers)


def _gist(one: Explanation) -> tuple[object, ...]:
    shares = tuple((part.name, part.share, part.tls) for part in one.backends)
    reported = tuple(note for note in one.notes if note.startswith(("PROXY protocol", "TLS is")))
    return (
        shares,
        tuple((answer.kind, answer.check, answer.share) for answer in one.answers),
        reported,
    )


def _route(one: Explanation) -> str:
    return one.rule.route if one.rule is not None else ""


def _side(one: Explanation) -> Side:
    alone = len(one.answers) == 1
    message = ", ".join(_message(answer, alone=alone) for answer in one.answers)
    source = one.rule.place.source if one.rule is not None else ""
    return Side(rule=_route(one), answer=message, source=source)


def _message(one: Answer, *, alone: bool) -> str:
    share = "" if alone else f"{one.share:g} % "
    return share + (one.backend or "refused")
