"""Deciding check: which check decides the response, in the order of core/exchange/exchange.pyx (`begin`).

In: the scanned request, the listeners of its port, the rule that the matcher found.
Out: `Answer`s, one for each share of the rule's traffic with a different response. Each has the check's name, its result and what would
change it.
Must never: know more than the proxy knows at that moment; the matcher chose the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from edgefast import ir
from edgefast._csrc import lib
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain.backend import COUNTED
from edgefast.explain.backend_policy import (
    answer_by_backend_policy,
    settle_backend_policy,
    treating,
)
from edgefast.explain.explanation import Answer, LimitPart
from edgefast.explain.fault import find_fault
from edgefast.explain.forwarded import merge_rewrites, replace_path, rewrite_path
from edgefast.explain.head import Head, Refusal
from edgefast.explain.location_template import expand_location
from edgefast.explain.match_failure import cut
from edgefast.explain.override import replace_answers
from edgefast.explain.policy_checks import PolicyChecks, answer_broken
from edgefast.explain.rejected_listeners import RejectedListener
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.explain.traffic import (
    LISTENER,
    Setting,
    body_limit,
    bound_body,
    find_shut,
    own_timeouts,
    settle_traffic,
)
from edgefast.table.match import find_listener

_FIXES = {
    "head": "send a request that HTTP allows (edgefast docs http1)",
    "path": "send a path without it",
    "path_parameters": "send a path without it, or set pathParameters of EdgeProxy spec.http",
    "escaped_slashes": "send a path without escaped slashes, or set escapedSlashes of EdgeProxy spec.http",
}


def answer_refusal(refusal: Refusal) -> Answer:
    """Answer a head that is not sound."""
    return Answer(
        kind="redirect" if refusal.location else "status",
        check=refusal.check,
        status=refusal.status,
        why=refusal.why,
        fix=refusal.fix or _FIXES[refusal.check],
        location=refusal.location,
    )


def answer_closed_port(
    served: Served,
    port: int,
    dark: RejectedListener | None = None,
    *,
    transport: ir.Transport = "TCP",
    address: str = "",
) -> Answer:
    """Nothing listens there; `dark` is the listener that would."""
    why = f"no listener on {'UDP ' if transport == 'UDP' else ''}port {port}"
    there = served.addresses(port)
    if address and there:
        why += f" of {address}"
    if dark is not None:
        why = f"{why}: listener {dark.name} is not served, {dark.said}"
        return Answer(
            kind="closed",
            check="port",
            why=why,
            fix=dark.fix,
            reasons=dark.reasons,
        )
    ports = sorted(
        {one.port for one in served.fleet.listeners if ir.transport_of(one) == transport}
    )
    listed = " or ".join(map(str, ports))
    if there and port in ports:
        listed = f"{port} of {' or '.join(sorted(there))}"
    return Answer(
        kind="closed",
        check="port",
        why=why,
        fix=f"use port {listed}" if ports else "no Gateway has a served listener",
    )


def answer_protocol(scheme: str, port: int, protocol: str) -> Answer:
    """The client's protocol is not the port's."""
    return Answer(
        kind="closed",
        check="protocol",
        why=f"port {port} serves {protocol}, not {scheme.upper()}",
        fix=f"use {protocol.lower()}://",
    )


def answer_passed(there: Sequence[ir.Listener], request: RequestSpec) -> Answer | None:
    """What comes is passed on unread, request or not; None where it is read."""
    if not there:
        return None
    owner = find_listener(there, request.port, request.sni) if request.scheme == "https" else None
    owner = owner or there[0]
    if owner.protocol not in ("TLS", "TCP"):
        return None
    if owner.protocol == "TLS" and request.scheme != "https":
        return answer_protocol(request.scheme, request.port, "TLS")
    what = f"listener {owner.name} forwards all connections without parsing HTTP"
    word = owner.protocol.lower()
    return Answer(kind="closed", check="protocol", why=what, fix=f"use {word}://")


def answer_misdirected(sni: str, named: ir.Listener, host: str, owner: ir.Listener) -> Answer:
    """The connection was made for a host of another listener."""
    return Answer(
        kind="status",
        check="sni",
        status=421,
        why=f"the TLS server name {sni} belongs to listener {named.name}, and host {host} to "
        f"{owner.name}",
        fix="use a connection with the host as TLS server name",
    )


def answer_no_listener(
    host: str, listeners: Sequence[ir.Listener], dark: RejectedListener | None = None
) -> Answer:
    """No listener of the port has the host; `dark` is the one that would."""
    names = ", ".join(dict.fromkeys(one.hostname for one in listeners))
    why = f"no listener of port {listeners[0].port} has {host} (they have {names})"
    fix = "add a listener with the hostname, or use one of theirs"
    if dark is not None:
        why += f": listener {dark.name} is not served, {dark.said}"
        fix = dark.fix
    return Answer(
        kind="status",
        check="listener",
        status=404,
        why=why,
        fix=fix,
        reasons=dark.reasons if dark is not None else (),
    )


def ends_handshake(listener: ir.Listener) -> bool:
    """Tell whether a listener has nothing to show: it only keeps its place."""
    return listener.tls is not None and not listener.tls.certificates


def answer_handshake(listener: ir.Listener, dark: RejectedListener | None = None) -> Answer:
    """The TLS handshake ends (unrecognized_name): the listener of the name is closed."""
    why = f"the TLS handshake is refused: listener {listener.name} is closed"
    if dark is None or dark.name != listener.name:
        return Answer(kind="closed", check="sni", why=why)
    why = f"{why}, {dark.said}"
    return Answer(kind="closed", check="sni", why=why, fix=dark.fix, reasons=dark.reasons)


def answer_closed_listener(dark: RejectedListener) -> Answer:
    """The listener has the request, and no rule of it is served."""
    return Answer(
        kind="status",
        check="listener",
        status=404,
        why=f"listener {dark.name} is closed, {dark.said}",
        fix=dark.fix,
        reasons=dark.reasons,
    )


def answer_no_rule(nearest: str, reasons: tuple[str, ...] = ()) -> Answer:
    """No rule takes it; `reasons` keep the nearest one out."""
    return Answer(
        kind="status",
        check="rule",
        status=404,
        why="no rule matches the request",
        fix=f"the nearest is {nearest}" if nearest else "attach a route with the hostname and path",
        reasons=reasons,
    )


def answer_rule(
    served: Served,
    listener: ir.Listener,
    head: Head,
    rule: ir.Rule,
    prefix_len: int,
    limits: Sequence[LimitPart],
    checks: PolicyChecks,
    behind: Head,
    *,
    https: bool,
) -> tuple[Answer, ...]:
    """Return what the rule's shares answer, the most frequent first; how to correct mistakes is up to `advise`.

    head: the request as received. behind: the request after its policies. https: the scheme of its client.
    """
    if rule.status:
        why = rule.reason or "the rule is not valid"
        return (
            Answer(
                kind="status",
                check="rule_invalid",
                status=rule.status,
                why=why,
                reasons=name_reasons(why),
            ),
        )
    announced = (
        0 if head.web_text else head.content_length
    )  # what Base64 says is known when it is read
    units = served.units(rule.traffic)
    broken = next((one for one in units if one.status or one.traffic is None), None)
    if broken is not None:
        return (answer_broken(broken),)
    settings = bound_body(listener.http, settle_traffic(units, rule.ceilings, own_timeouts(rule)))
    most = body_limit(listener.http, settings)
    if most and announced > most:
        why = f"{head.content_length} bytes of body, at most {most}"
        of = "bodySize of EdgeProxy spec.http"
        if (owner := settings.get("body_size")) and owner.cut_by != LISTENER:
            of = f"requestBuffer.limit of {owner.cut_by or owner.unit}"
        fix = f"send a smaller body, or raise {of}"
        large = Answer(kind="status", check="body_size", status=413, why=why, fix=fix)
        return replace_answers((large,), units, grpc=head.grpc)
    total = sum(one.weight for one in rule.backends)
    shares: list[tuple[ir.BackendRef | None, float]] = [
        (one, 100.0 * one.weight / total) for one in rule.backends if one.weight
    ]
    found: dict[Answer, float] = {}
    limited = _answer_limits(served, limits)
    early = _answer_limits(served, [one for one in limits if one.early])
    fault = find_fault(units) if checks.answer is None else None
    struck = fault.share(grpc=head.grpc) if fault is not None else 0.0
    for share, percent in shares if rule.backends else [(None, 100.0)]:
        if (closed := answer_by_backend_policy(served, share)) is not None:
            found[closed] = found.get(closed, 0.0) + percent
            continue
        one = _answer_share(
            served,
            listener,
            head,
            rule,
            share,
            prefix_len,
            early or checks.answer or limited,
            behind,
            find_shut(settle_backend_policy(*treating(served, rule, share))),
            https=https,
        )
        parts = [(one, percent)]
        if fault is not None and struck and one.check != "cors":
            refused = fault.answer(grpc=head.grpc)
            parts = [(refused, percent * struck), (one, percent * (1 - struck))]
        for each, part in parts:
            if checks.asks and not each.asks and each.check != "cors":
                each = msgspec.structs.replace(each, asks=checks.asks)
            if part:
                found[each] = found.get(each, 0.0) + part
    if not found:
        why = "the weights of all backendRefs are 0"
        return (Answer(kind="status", check="rule_invalid", status=500, why=why),)
    answers = [msgspec.structs.replace(one, share=round(found[one], 2)) for one in found]
    answers.sort(key=lambda one: -one.share)
    return replace_answers(answers, units, grpc=head.grpc)


def _answer_share(
    served: Served,
    listener: ir.Listener,
    head: Head,
    rule: ir.Rule,
    share: ir.BackendRef | None,
    prefix_len: int,
    stopped: Answer | None,
    behind: Head,
    closed: Setting | None,
    *,
    https: bool,
) -> Answer:
    cors = (share.cors if share else None) or rule.cors
    if cors is not None and is_preflight(head):
        return Answer(
            kind="status", check="cors", status=204, why="the CORS filter answers preflights"
        )
    if stopped is not None:
        return stopped
    redirect = (share.redirect if share else None) or rule.redirect
    if redirect is not None:
        location = write_location(redirect, listener, behind, prefix_len, https=https)
        if not location:
            why = (
                "the expression of an HTTPRouteFilter does not match, or its Location is not valid"
            )
            fix = "change redirect.location of the filter"
            return Answer(kind="status", check="redirect", status=500, why=why, fix=fix)
        return Answer(
            kind="redirect",
            check="redirect",
            status=redirect.status,
            why="a RequestRedirect filter",
            location=location,
        )
    if rule.direct is not None:
        why = "an HTTPRouteFilter answers"
        return Answer(kind="status", check="direct", status=rule.direct.status, why=why)
    if share is None or not share.cluster:
        status, reason = (share.status, share.reason) if share else (500, "")
        why = reason or "the backendRef is not valid"
        return Answer(
            kind="status",
            check="backend_invalid",
            status=status,
            why=why,
            reasons=name_reasons(why),
        )
    rewrite = merge_rewrites(rule.rewrite, share.rewrite)
    by = rewrite.path if rewrite is not None else None
    if by is not None and by.kind == "regex" and head.path.startswith(b"/"):
        if rewrite_path(head.path, by) is None:
            why = f"an HTTPRouteFilter rewrites {cut(head.path.decode())} to an invalid path"
            fix = "change the filter: the path must begin with /, have at most 8 KiB, and have no //, dot segments, space, ? or #"
            return Answer(kind="status", check="rewrite", status=500, why=why, fix=fix)
    if closed is not None:
        what = f"{COUNTED[closed.field]} of {share.cluster}"
        why = f"{closed.cut_by or closed.unit} allows no {what}"
        fix = "raise the number in circuitBreaker; 0 refuses everything"
        return Answer(kind="status", check="circuit_breaker", status=503, why=why, fix=fix)
    endpoints, _ = served.endpoints(share.cluster)
    if not endpoints:
        why = f"{share.cluster} has no endpoints"
        fix = "add ready endpoints to the backend (EndpointSlices, or the endpoints of a Backend)"
        return Answer(
            kind="status",
            check="endpoints",
            status=503,
            why=why,
            fix=fix,
            reasons=("EndpointsNotFound",),
        )
    why = fix = ""
    if all(one.failing for one in endpoints):
        why = "the last request to each of its endpoints failed; expect 503 or 504"
        fix = "check that the backend listens on these addresses; `flags` of the access log give the cause"
    return Answer(kind="backend", check="forwarded", backend=share.cluster, why=why, fix=fix)


def _answer_limits(served: Served, limits: Iterable[LimitPart]) -> Answer | None:
    """Return the answer of a limit that is at its end; None: they let the request pass, as far as is known."""
    counting = [one for one in limits if one.counts]
    full = next((one for one in counting if one.remaining == 0 and not one.shadow), None)
    if full is not None:
        until = f", for {full.reset} s more" if full.reset is not None else ""
        field = "maxParallelRequests" if full.kind == "Parallel" else "limit.requests"
        size = f"in {full.unit} s" if full.unit else "in progress"
        why = f"limit {full.name} is exhausted ({full.requests} {size}{until})"
        fix = (
            f"wait, or raise {field}"
            if full.requests
            else f"its {field} is 0, which refuses all requests"
        )
        return Answer(kind="status", check="limit", status=full.status or 429, why=why, fix=fix)
    if (
        any(one.kind == "Window" for one in counting)
        and served.live is not None
        and served.live.refusing
    ):
        why = "the counter store does not answer, and rateLimit.failClosed is set"
        fix = "restore the counter store; `edgefast dump` shows its state"
        return Answer(kind="status", check="limit_store", status=500, why=why, fix=fix)
    return None


def is_preflight(head: Head) -> bool:
    """Tell whether a CORS filter would take the request for a preflight (Fetch standard)."""
    ids = {one.id for one in head.lines}
    requested = {lib.EF_H_ORIGIN, lib.EF_H_ACCESS_CONTROL_REQUEST_METHOD}
    return head.is_options and requested <= ids


def write_location(
    redirect: ir.Redirect, listener: ir.Listener, head: Head, prefix_len: int, *, https: bool
) -> str:
    """Return the Location of a redirect (HTTPRequestRedirectFilter), as core/route/rule.pyx writes it, "" without one."""
    if redirect.template:
        return expand_location(redirect, head, https=https)
    scheme = redirect.scheme or ("https" if https else "http")
    defaults = {"http": 80, "https": 443}
    port = redirect.port or defaults.get(redirect.scheme) or listener.port
    if not redirect.port and not redirect.scheme and https != (listener.protocol == "HTTPS"):
        port = defaults[scheme]  # the client's port is that of the proxy before this one
    name = redirect.hostname.encode() or head.host_sent
    if defaults.get(scheme) != port or redirect.write_port:
        name += b":%d" % port
    path = head.path if head.path.startswith(b"/") else b"/"
    if redirect.path is not None:
        path = replace_path(path, prefix_len, redirect.path)
    query = b"?" + head.query if head.query and not redirect.drop_query else b""
    target = path + query
    if redirect.trim_slash:
        target = target.removesuffix(b"/")
    if redirect.relative and target.startswith(b"/") and not target.startswith(b"//"):
        return target.decode("utf-8", "surrogateescape")
    return b"".join((scheme.encode(), b"://", name, target)).decode("utf-8", "surrogateescape")
