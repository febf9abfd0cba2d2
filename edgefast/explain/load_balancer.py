"""Load balancer: how a rule's policies choose the endpoint of a request, and the result of its hash key.

In: a rule's traffic units in their order: overrides, the highest first, then the most specific one;
a request's head as sent to the backend.
Out: text; an address, chosen by the C code that serves. The twin of core/traffic/hashpolicy.pyx; a
test compares both.
Must never: name an endpoint if a worker could choose another while all are healthy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote_to_bytes

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.explain.duration import write_time
from edgefast.explain.head import Head
from edgefast.explain.served_fleet import render_endpoint
from edgefast.explain.traffic import find_first
from edgefast.explain.zones import describe_zones

__all__ = ["HIDDEN", "choose_endpoint", "describe_balancer", "find_balancer", "read_cookies"]

_WORDS = {
    "least_request": "endpoint with the fewest requests in flight",
    "round_robin": "endpoints in turn",
    "random": "random endpoint",
}
_KINDS = {
    "source": "the client's address",
    "host": "host",
    "target": "request URI",
    "path": "path",
    "query": "query",
    "header": "header",
    "cookie": "cookie",
    "param": "parameter",
}
#: Flags of lines that go no further.
HIDDEN = lib.EF_SPAN_HOP | lib.EF_SPAN_NOMINATED


def find_balancer(units: Sequence[ir.PolicyUnit]) -> tuple[ir.LoadBalancer, str] | None:
    """Return what is in force, and whose it is."""
    return find_first(units, lambda one: one.load_balancer)


def describe_balancer(one: ir.LoadBalancer) -> str:
    """Return by what requests get their endpoints."""
    slowly = f", new ones slowly for {write_time(one.slow_start)}" if one.slow_start else ""
    zones = f", {describe_zones(one.zones)}" if one.zones is not None else ""
    return (
        f"{_WORDS[one.type]}{slowly}{zones}"
        if one.hash is None
        else f"endpoints by {_describe_key(one.hash)}"
    )


def _describe_key(one: ir.HashPolicy) -> str:
    if one.parts:
        return ", ".join(f"{_KINDS[each.kind]} {each.name}".rstrip() for each in one.parts)
    if one.source:
        return "the client's address"
    if one.cookie is not None:
        given = one.cookie.ttl is not None
        return f"cookie {one.cookie.name}" + (", which edgefast sets" if given else "")
    if one.headers:
        return f"header{'s' if len(one.headers) > 1 else ''} {', '.join(one.headers)}"
    return f"parameter{'s' if len(one.params) > 1 else ''} {', '.join(one.params)}"


def choose_endpoint(
    one: ir.LoadBalancer, cluster: ir.Cluster, head: Head, client: str, http: ir.HttpSettings
) -> str:
    """Return the address that a request has when all endpoints are well, "" where that is not known: it has no key, or names stand for them."""
    known = cluster.endpoints or cluster.fallback
    if one.hash is None or not known or any(each.hostname for each in known):
        return ""
    key = read_key(one.hash, head, client, http)
    if key is None:
        return ""
    # Of one address that is there twice the first counts.
    places = {render_endpoint(each): each.weight for each in reversed(known)}
    texts = [text.encode() for text in places]
    load = ffi.new("ef_endpoint_load[]", len(texts))
    for at, weight in enumerate(places.values()):
        load[at].weight = weight
    ids = ffi.new("uint64_t[]", [lib.ef_pick_key(text, len(text)) for text in texts])
    found = lib.ef_pick_hashed(load, ids, len(texts), 0, 1, lib.ef_pick_key(key, len(key)))
    return texts[int(found)].decode()


def read_key(one: ir.HashPolicy, head: Head, client: str, http: ir.HttpSettings) -> bytes | None:
    """Return what is hashed; None: the request has nothing of it."""
    if one.parts:
        values = [_read_part(each, head, client, http) for each in one.parts]
        return (
            b"\0".join(each or b"" for each in values)
            if any(each is not None for each in values)
            else None
        )
    if one.source:
        return client.encode()
    if one.cookie is not None:
        return next(
            (value for value in read_cookies(head, one.cookie.name.encode()) if value), None
        )
    found = list(_in_headers(one, head, http) if one.headers else _in_params(one, head))
    return b"\0".join(found) if found else None


def _read_part(one: ir.HashPart, head: Head, client: str, http: ir.HttpSettings) -> bytes | None:
    plain = {
        "source": client.encode(),
        "host": head.host.encode(),
        "target": head.target,
        "path": head.target.partition(b"?")[0],
        "query": head.query,
    }
    if one.kind in plain:
        return plain[one.kind]
    if one.kind == "cookie":
        return next((value for value in read_cookies(head, one.name.encode()) if value), None)
    if one.kind == "header":
        found = list(_in_headers(ir.HashPolicy(headers=(one.name,)), head, http))
    else:
        found = list(_in_params(ir.HashPolicy(params=(one.name,)), head))
    return b"\0".join(found) if found else None


def _in_headers(one: ir.HashPolicy, head: Head, http: ir.HttpSettings) -> Iterator[bytes]:
    hidden = HIDDEN | (lib.EF_SPAN_UNDERSCORE if http.underscores == "Drop" else 0)
    lines = [line for line in head.lines if not line.flags & hidden]
    if not any(line.name.lower().decode("latin-1") in one.headers for line in lines):
        return
    for name in one.headers:
        for line in lines:
            if line.name.lower() == name.encode():
                yield line.value
        yield b""


def read_cookies(head: Head, name: bytes) -> Iterator[bytes]:
    """Give the values of the cookies of a name, in their order."""
    for line in head.lines:
        for piece in line.value.split(b";") if line.name.lower() == b"cookie" else ():
            key, equals, value = piece.strip(b" \t").partition(b"=")
            if equals and key.rstrip(b" \t") == name:
                yield value.lstrip(b" \t")


def _in_params(one: ir.HashPolicy, head: Head) -> Iterator[bytes]:
    found: dict[bytes, bytes] = {}
    for pair in (head.query or b"").split(b"&") if head.query is not None else ():
        name, _, value = pair.partition(b"=")
        name = unquote_to_bytes(name)
        if name.decode("latin-1") in one.params and name not in found:
            found[name] = unquote_to_bytes(value)
    for wanted in one.params if found else ():
        yield found.get(wanted.encode(), b"")
