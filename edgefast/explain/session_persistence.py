"""Session persistence: the effective session persistence of a rule, its policy, and the endpoint that a request's session names.

In: a rule, its traffic units in their order; a request's head. Out: text; an address. The twin of
core/traffic/sessionpolicy.pyx; a test compares both.
Must never: name an endpoint if a worker could choose another while all are healthy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from edgefast import ir
from edgefast._csrc import lib
from edgefast.explain.duration import write_time
from edgefast.explain.head import Head
from edgefast.explain.load_balancer import HIDDEN, read_cookies
from edgefast.explain.served_fleet import render_endpoint

__all__ = [
    "describe_session",
    "find_own_session",
    "find_session",
    "name_endpoint",
    "describe_sessions",
]

#: Values of a session's own name that are looked at, in all their parts; enums of sessionpolicy.pyx.
_SIZE, _LOOKS, _SKEW = 41, 16, 60_000
_TOKEN = re.compile(rb"1([0-9a-f]{16})([0-9a-f]{12})([0-9a-f]{12})")


def find_session(
    rule: ir.Rule, units: Sequence[ir.PolicyUnit]
) -> tuple[ir.SessionPersistence, str] | None:
    """Return what is in force, with its name, and whose it is; None: nothing is."""
    own = rule.session
    for unit in units if own is None else units[: rule.ceilings]:
        if unit.traffic is not None and unit.traffic.session is not None:
            return _named(unit.traffic.session, rule), unit.name
    return None if own is None else (_named(own, rule), "the route")


def find_own_session(
    share: ir.BackendRef, rule: ir.Rule, units: Sequence[ir.PolicyUnit]
) -> ir.SessionPersistence | None:
    """Return what a backend says itself, where no Override says anything; None: the rule's is in force."""
    heard = (one.traffic for one in units[: rule.ceilings])
    bound = any(one is not None and one.session is not None for one in heard)
    return None if bound else share.session


def describe_sessions(
    rule: ir.Rule, units: Sequence[ir.PolicyUnit], kept: tuple[ir.SessionPersistence, str] | None
) -> Iterator[str]:
    """Give what keeps clients with their endpoints, and whose each is."""
    own = {one.cluster: find_own_session(one, rule, units) for one in rule.backends if one.cluster}
    if kept is not None and (not own or None in own.values()):
        yield f"{kept[1]}: {describe_session(kept[0])}"
    for cluster, session in own.items():
        if session is not None:
            owner = "/".join(cluster.split("/")[1:3])
            yield f"XBackend {owner.partition('@')[0]}: {describe_session(session)}"


def _named(one: ir.SessionPersistence, rule: ir.Rule) -> ir.SessionPersistence:
    name = one.name or ir.name_session(rule.route, rule.name or rule.index)
    return msgspec.structs.replace(one, name=name)


def describe_session(one: ir.SessionPersistence) -> str:
    """Return what keeps clients with their endpoints."""
    what = "header" if one.header else "cookie"
    named = f"{what} {one.name}" if one.name else f"a {what} of the rule's own"
    times = [write_time(one.absolute)] if one.absolute else []
    times += [f"until a client is idle for {write_time(one.idle)}"] if one.idle else []
    lasting = f", for {', '.join(times)}" if one.absolute else f", {times[0]}" if times else ""
    if one.first:
        lasting += ", before weights"
    if one.stays:
        lasting += ", also after failures"
    return f"clients stay with their endpoint by {named}{_describe_cookie(one)}{lasting}"


def _describe_cookie(one: ir.SessionPersistence) -> str:
    """Return the attributes of a cookie that differ from the defaults, "" without any."""
    same_site = {"none_if_supported": "None if supported"}.get(one.same_site, one.same_site.title())
    parts = [f"Domain={one.domain}"] if one.domain else []
    parts += ["Secure"] if one.secure else []
    parts += [f"SameSite={same_site}"] if one.same_site not in ("strict", "unset") else []
    parts += ["no SameSite"] if one.same_site == "unset" else []
    return f" ({', '.join(parts)})" if parts and not one.header else ""


def name_endpoint(
    one: ir.SessionPersistence, cluster: ir.Cluster, head: Head, http: ir.HttpSettings, now: float
) -> str:
    """Return the address that the request's session names, "" where it names none. now: Unix seconds; 0: no session is over."""
    draining = cluster.fallback if cluster.endpoints else ()
    known = (*(cluster.endpoints or cluster.fallback), *draining)
    places = {
        _identify(cluster.name, text): text
        for text in (render_endpoint(each) for each in reversed(known) if not each.hostname)
    }
    for identity, *times in _read(one, head, http):
        limits = zip(times, (one.absolute, one.idle), strict=True)
        holds = not now or all(_holds(until, most, int(now * 1000)) for until, most in limits)
        if holds and identity in places:
            return places[identity]
    return ""


def _identify(cluster: str, text: str) -> int:
    named = b"session/1\0%b\0%b" % (cluster.encode(), text.encode())
    return int(lib.ef_pick_key(named, len(named))) or 1


def _holds(until: int, most: int, now: int) -> bool:
    if until == 0:
        return most == 0
    return now < until and (most == 0 or until <= now + most + _SKEW)


def _read(
    one: ir.SessionPersistence, head: Head, http: ir.HttpSettings
) -> Iterator[tuple[int, int, int]]:
    left = _LOOKS
    for value in _values(one, head, http):
        if left == 0:
            return
        if (len(value) + 1) % (_SIZE + 1) or not value:
            left -= 1
            continue
        for at in range(0, len(value), _SIZE + 1):
            if left == 0 or (at and value[at - 1 : at] != b"."):
                break
            left -= 1
            found = _TOKEN.fullmatch(value[at : at + _SIZE])
            if found is not None:
                identity, until, idle = (int(part, 16) for part in found.groups())
                yield identity, until, idle


def _values(one: ir.SessionPersistence, head: Head, http: ir.HttpSettings) -> Iterator[bytes]:
    if not one.header:
        yield from read_cookies(head, one.name.encode())
        return
    hidden = HIDDEN | (lib.EF_SPAN_UNDERSCORE if http.underscores == "Drop" else 0)
    for line in head.lines:
        if not line.flags & hidden and line.name.lower() == one.name.encode():
            yield line.value
