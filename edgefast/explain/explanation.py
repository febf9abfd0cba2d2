"""Explanation: the answer to "why did this request get that response", as plain values.

In: nothing. Out: the structs that `explain` fills; their encoding is the documented JSON
(docs/guides/explain.md). Fields are only ever added. Empty ones are left out, except those that
every explanation has.
Must never: hold an object of the table; a reader of the JSON has no Python.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["backend", "redirect", "status", "closed"]


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that all parts share."""


class Place(Value, frozen=True, kw_only=True):
    """Where something was written."""

    object: str = ""  # "HTTPRoute default/shop"
    path: str = ""  # "spec.rules[1].matches[0]"
    source: str = ""  # "shop.yaml:12", "generation 3"; "": not known


class ExplainedRequest(Value, frozen=True, kw_only=True):
    """The request as it was explained."""

    method: str
    url: str
    port: int
    host: str  # as it is matched
    path: str  # normalised
    headers: tuple[tuple[str, str], ...] = ()
    source: str = ""  # the connection's other end
    client: str = ""  # whose request it is: limits and logs believe this one
    sni: str = ""
    http10: bool = False  # in HTTP/1.0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the client gets, and which check decided it; all fields are always there."""

    kind: Kind
    check: str  # docs/guides/explain.md lists them
    status: int = 0  # 0: the backend's
    share: float = 100.0  # percent of such requests
    why: str = ""
    fix: str = ""  # what would give another answer
    grpc_status: str = ""  # of a call of gRPC: what it is told in place of `status`; "": it is none, or the backend says
    location: str = ""  # of a redirect
    backend: str = ""  # the cluster's name
    # Clusters of authorisation services that are asked before; `status` 0: each of them has to let the request pass.
    asks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()  # those that `edgefast problem` has a page about


class ListenerPart(Value, frozen=True, kw_only=True):
    """The listener that owns the request."""

    name: str  # "default/edge/http"
    port: int
    protocol: str
    hostname: str
    addresses: tuple[str, ...] = ()  # that its port is bound at; empty: all
    place: Place = Place()


class RulePart(Value, frozen=True, kw_only=True):
    """The rule that takes it."""

    route: str  # "default/shop"
    index: int
    name: str = ""
    virtual_host: str = ""  # the hostname of the route that led to it
    match: str = ""  # in words
    place: Place = Place()


class EndpointPart(Value, frozen=True, kw_only=True):
    """One address."""

    address: str
    zone: str = ""  # that it is in; "": nobody says
    healthy: bool | None = None  # None: nobody was asked
    workers: str = ""  # "1 of 2 ejected it"
    draining: bool = False  # it gets requests of its sessions alone
    ill: bool = False  # it fails a health check: rules with that check leave it out
    failing: bool = False  # no worker is well with it: it is ejected, or the last request failed
    failures: int = 0  # in a row, summed over workers; 0 where a worker's last request did not fail
    active: int | None = None


class BackendPart(Value, frozen=True, kw_only=True):
    """One share of the rule's traffic."""

    name: str  # the cluster's; "": none, its requests are answered
    weight: int
    share: float  # percent
    status: int = 0  # not 0: what its requests are answered with
    reason: str = ""
    fallback: bool = False  # the endpoints are terminating ones; no others are left
    tls: str = ""  # the name that the backend's certificate must have
    endpoints: tuple[EndpointPart, ...] = ()
    chosen: str = ""  # of them, while all are well: the one that the request's key finds; "": none, or it is not known
    by_session: bool = False  # the request's session names that one
    head: tuple[str, ...] = ()  # the request head as this backend would see it
    treated: tuple[
        str, ...
    ] = ()  # how, in words, each with whose it is, where policies of its own say something
    place: Place = Place()


class LimitPart(Value, frozen=True, kw_only=True):
    """One rate limit that the request counts in, or why it does not."""

    name: str  # "default/filter#0"
    requests: int
    unit: int  # seconds
    counts: bool
    why_not: str = ""
    values: dict[str, str] = {}  # of distinct headers; "sourceCIDR": the client's address
    shadow: bool = False
    kind: Literal["Window", "Bucket", "Parallel"] = "Window"
    burst: int = 0  # of a Bucket
    status: int = 0  # of a refusal; 0: 429
    early: bool = False  # counted before authentication
    used: int | None = None  # None: nobody was asked, or there is no counter yet
    remaining: int | None = None
    reset: int | None = None  # seconds


Verdict = Literal["passes", "refuses", "asks", "broken", "not_asked", "lost"]


class UnitPart(Value, frozen=True, kw_only=True):
    """One unit of a policy that holds for the rule, or that lost to another."""

    name: str  # "security/default/edge#authorization"; of the rule's own filter "ExternalAuth"
    verdict: Verdict
    why: str = ""  # which rule of an authorization decided, who is asked, to whom it lost
    about: tuple[str, ...] = ()  # what it says, in words
    place: Place = Place()


class SettingPart(Value, frozen=True, kw_only=True):
    """A setting of policies that is in force."""

    name: str  # "body_size", "request_timeout", "max_connections", ... (a field of ir.Traffic)
    value: int  # bytes or milliseconds, 0: without end; or a count
    unit: str = ""  # whose it is; "": the route's own
    cut_by: str = (
        ""  # an override, or the EdgeProxy, that allows no more where the unit asks for more
    )


class RetryPart(Value, frozen=True, kw_only=True):
    """Retries after a failed try."""

    attempts: int
    codes: tuple[int, ...] = ()
    backoff: int = 25  # milliseconds


class TimeoutPart(Value, frozen=True, kw_only=True):
    """Milliseconds; 0: none."""

    request: int  # until the answer is complete (or its head is there, when `default`)
    backend_request: int = 0
    connect: int = 0
    stream_idle: int = 0
    send: int = 0  # the backend takes nothing
    default: bool = False  # nobody has set one


class Candidate(Value, frozen=True, kw_only=True):
    """A rule that was near, and the one reason why it lost."""

    route: str
    rule: int | None = None
    name: str = ""
    reason: str
    code: str  # "hostname", "path", "method", "header", "query", "shadowed", "listener", "not_accepted"
    virtual_host: str = ""
    match: str = ""
    place: Place = Place()


class Explanation(Value, frozen=True, kw_only=True):
    """Everything."""

    request: ExplainedRequest
    answers: tuple[Answer, ...]  # the most frequent first
    listener: ListenerPart | None = None
    virtual_hosts: tuple[str, ...] = ()  # hostnames that were tried, in order
    rule: RulePart | None = None
    backends: tuple[BackendPart, ...] = ()
    mirrors: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()  # in words
    policies: tuple[
        UnitPart, ...
    ] = ()  # in the order in which they are asked; then those that lost
    traffic: tuple[SettingPart, ...] = ()
    limits: tuple[LimitPart, ...] = ()
    timeouts: TimeoutPart | None = None
    retry: RetryPart | None = None
    candidates: tuple[Candidate, ...] = ()
    more_candidates: int = 0
    notes: tuple[str, ...] = ()
    table: str = ""  # the version of the table; "": of files
