"""Explain: explain(), why a request gets its response.

In: the served table, a request. Out: an `Explanation`: the checks in the order of the proxy, up to the one that decides. The code that
serves (csrc through `table.Matcher`) scans the head, normalises the path and finds the rule. Tests compare the rest with an engine: heads
after filters, limits, reasons of losers.
Must never: do I/O, or run while the same thread serves requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from edgefast import ir
from edgefast.diagnostics.reasons.mentions import name_reasons
from edgefast.explain import deciding_check as answers
from edgefast.explain.ambiguous_path import find_ambiguity
from edgefast.explain.backend import describe_units
from edgefast.explain.backend_policy import describe_backend_policy, settle_rule, units_at_backends
from edgefast.explain.bandwidth import describe_bandwidth, find_bandwidth
from edgefast.explain.candidates import find_candidates
from edgefast.explain.client import Client, drop_untrusted, find_client
from edgefast.explain.describe import (
    describe_rule,
    describe_tls,
    list_dark,
    list_filters,
    list_http10_notes,
    list_known,
    list_notes,
    list_settings,
)
from edgefast.explain.encoding import describe_compression, find_compression
from edgefast.explain.explanation import (
    Answer,
    BackendPart,
    Candidate,
    ExplainedRequest,
    Explanation,
    ListenerPart,
    RetryPart,
    TimeoutPart,
)
from edgefast.explain.fault import describe_fault, find_fault
from edgefast.explain.forwarded import hide_head, to_http2, write_head
from edgefast.explain.grpc_status import name_statuses, note_call
from edgefast.explain.head import Head, Refusal, scan_head
from edgefast.explain.layer4 import explain_stream
from edgefast.explain.listener_filters import evaluate_listener_filters
from edgefast.explain.load_balancer import choose_endpoint, find_balancer
from edgefast.explain.override import describe_overrides, find_overrides
from edgefast.explain.policy_checks import PolicyChecks, evaluate_policies, knows_behind, see_behind
from edgefast.explain.rate_limits import evaluate_limits
from edgefast.explain.rejected_listeners import find_rejected_listeners
from edgefast.explain.request_spec import STREAMS, RequestSpec
from edgefast.explain.root_cause import advise
from edgefast.explain.served_fleet import Served
from edgefast.explain.session_persistence import (
    describe_sessions,
    find_own_session,
    find_session,
    name_endpoint,
)
from edgefast.explain.skipped_health_checks import list_skipped_checks
from edgefast.explain.traffic import Setting
from edgefast.explain.zones import list_zones
from edgefast.table import Hit
from edgefast.table.match import Call, find_listener, order_hostnames

MOST = 10  # candidates
_HITS = 1000  # rules that match one request


def explain(served: Served, spec: RequestSpec, *, most: int = MOST) -> Explanation:
    """Explain a request; `most` is how many candidates are told."""
    if spec.scheme in STREAMS:
        return explain_stream(served, spec)
    found = _explain_request(served, spec, most)
    if not spec.http10 or found.listener is None:
        return found
    http = served.listeners(spec.port, spec.address)[0].http
    return msgspec.structs.replace(
        found, notes=(*found.notes, *list_http10_notes(http, has_host=spec.has_host))
    )


def _explain_request(served: Served, spec: RequestSpec, most: int) -> Explanation:
    listeners = served.listeners(spec.port, spec.address)
    if passed := answers.answer_passed(served.all_listeners(spec.port, address=spec.address), spec):
        return _stop(served, spec, passed)
    if not listeners:
        dark = find_rejected_listeners(served, spec.port, spec.name())
        return _stop(
            served, spec, answers.answer_closed_port(served, spec.port, dark, address=spec.address)
        )
    tls = listeners[0].protocol == "HTTPS"
    if tls != (spec.scheme == "https"):
        wrong = answers.answer_protocol(spec.scheme, spec.port, listeners[0].protocol)
        return _stop(served, spec, wrong)
    head = scan_head(spec.head(), listeners[0].http, tls=tls, source=spec.source)
    if isinstance(head, Refusal):
        return _stop(served, spec, answers.answer_refusal(head), grpc=head.grpc)
    listener = find_listener(listeners, spec.port, head.host)
    named = find_listener(listeners, spec.port, spec.sni) if tls and spec.sni else None
    if named is not None and listener is not None and named is not listener:
        refused = answers.answer_misdirected(spec.sni, named, head.host, listener)
        return _stop(served, spec, refused, head, listener)
    dark = find_rejected_listeners(served, spec.port, head.host)
    if named is not None and answers.ends_handshake(named):
        return _stop(served, spec, answers.answer_handshake(named, dark), head, listener)
    if listener is None:
        return _stop(served, spec, answers.answer_no_listener(head.host, listeners, dark), head)
    client = find_client(
        head,
        spec.source,
        listener.http.client_address,
        tls=tls,
        port=listener.port,
        rule=listener.tls,
    )
    counted = drop_untrusted(head, client, listener.http.forwarded)
    before = evaluate_listener_filters(served, listener, counted)
    if before.answer is not None:
        return Explanation(
            request=_was_requested(spec, head, client),
            answers=name_statuses([before.answer], grpc=head.grpc),
            listener=_listener(served, listener),
            policies=before.parts,
            notes=(*list_dark(listener, dark), *list_notes(served, listener, None)),
            table=served.version,
        )
    head = before.head
    request = head.request()
    hits = list(islice(served.matcher.matches(listener.name, head.host, request), _HITS))
    near, more = find_candidates(served, listener, head.host, request, hits, most)
    notes = (*list_dark(listener, dark), *before.notes())
    ambiguous = find_ambiguity(served, listener, head, hits[0]) if hits else None
    if hits and ambiguous is None:
        found = _explain_rule(served, spec, head, listener, client, hits, near, more)
        if not notes and not before.parts:
            return found
        return msgspec.structs.replace(
            found,
            answers=before.settle(found.answers),
            policies=(*before.parts, *found.policies),
            notes=(*notes, *found.notes),
        )
    nearest = _name(near[0]) if near else ""
    kept_out = near[0].reason if near and near[0].code in ("not_accepted", "refused") else ""
    return Explanation(
        request=_was_requested(spec, head, client),
        answers=before.settle(
            name_statuses(
                [
                    ambiguous
                    if ambiguous is not None
                    else answers.answer_closed_listener(dark)
                    if dark is not None and dark.name == listener.name
                    else answers.answer_no_rule(nearest, name_reasons(kept_out))
                ],
                grpc=head.grpc,
            )
        ),
        listener=_listener(served, listener),
        policies=before.parts,
        virtual_hosts=_tried(served, listener, head.host, None),
        candidates=near,
        more_candidates=more,
        notes=(*notes, *list_known(served), *list_notes(served, listener, None)),
        table=served.version,
    )


def _explain_rule(
    served: Served,
    request: RequestSpec,
    head: Head,
    listener: ir.Listener,
    client: Client,
    hits: Sequence[Hit],
    near: tuple[Candidate, ...],
    more: int,
) -> Explanation:
    hit = hits[0]
    rule, http = hit.rule, listener.http
    seen = (
        head
        if rule.status
        else see_behind(served, rule, head, request.now, client.address, request.sni)
    )  # by all that comes after
    limits = evaluate_limits(rule, Call(seen.request()), client, served.live)
    checks = (
        PolicyChecks()
        if rule.status
        else evaluate_policies(
            served,
            rule,
            head,
            client.address,
            sni=request.sni,
            https=client.https,
            now=request.now,
        )
    )
    found = answers.answer_rule(
        served, listener, head, rule, hit.prefix_len, limits, checks, seen, https=client.https
    )
    units = served.units(rule.traffic)
    fault = None if rule.status else find_fault(units)
    overrides, owner = ((), "") if rule.status else find_overrides(units)
    encoded = None if rule.status else find_compression(units)
    limited = None if rule.status else find_bandwidth(units)
    of_backends = () if rule.status else units_at_backends(rule, units)
    balanced = find_balancer(of_backends)
    kept = None if rule.status else find_session(rule, units)
    keyed = balanced is not None or any(one.treatment is not None for one in rule.backends)
    by = None
    if not rule.status and keyed and knows_behind(served, rule, head, request.now):
        by = balanced[0] if balanced is not None else ir.LoadBalancer()
    settings = settle_rule(rule, units, http)
    hostname = hit.virtual_host.rpartition("/")[2]
    return Explanation(
        request=_was_requested(request, head, client),
        answers=name_statuses(advise(served.origin, rule, found), grpc=head.grpc),
        listener=_listener(served, listener),
        virtual_hosts=_tried(served, listener, head.host, hostname),
        rule=describe_rule(served.origin, hit),
        backends=()
        if rule.status
        else _backends(
            served,
            seen,
            listener,
            client,
            hit,
            settings,
            by,
            (kept[0] if kept else None, request.now),
        ),
        mirrors=tuple(
            f"{one.cluster} ({one.numerator} of {one.denominator})" for one in rule.mirrors
        ),
        filters=list_filters(rule),
        policies=checks.parts,
        traffic=() if rule.status else list_settings(settings),
        limits=limits,
        timeouts=None if rule.status else _timeouts(rule, http, settings),
        retry=None
        if rule.retry is None
        else RetryPart(
            attempts=rule.retry.attempts, codes=rule.retry.codes, backoff=rule.retry.backoff
        ),
        candidates=near,
        more_candidates=more,
        notes=(
            *list_notes(served, listener, rule),
            *(f"{one.name}: {one.reason}" for one in units if one.reason and not one.status),
            *((f"{fault.unit}: injected fault: {describe_fault(fault.fault)}",) if fault else ()),
            *((f"{owner}: {describe_overrides(overrides)}",) if overrides else ()),
            *((f"{encoded[1]}: {describe_compression(encoded[0])}",) if encoded else ()),
            *((f"{limited[1]}: {describe_bandwidth(limited[0])}",) if limited else ()),
            *describe_units(of_backends),
            *(() if rule.status else list_skipped_checks(served, rule)),
            *list_zones(
                rule,
                [served.clusters.get(one.cluster) for one in rule.backends],
                balanced[0] if balanced else None,
                served.live,
            ),
            *(() if rule.status else describe_sessions(rule, units, kept)),
            *(note_call(http.grpc, web=bool(head.web)) if head.grpc else ()),
        ),
        table=served.version,
    )


def _backends(
    served: Served,
    head: Head,
    listener: ir.Listener,
    client: Client,
    hit: Hit,
    settings: Mapping[str, Setting],
    by: ir.LoadBalancer | None,
    kept: tuple[ir.SessionPersistence | None, float],
) -> tuple[BackendPart, ...]:
    rule, parts = hit.rule, []
    total = sum(one.weight for one in rule.backends) or 1
    timeout = settings["request_timeout"].value if "request_timeout" in settings else None
    for at, share in enumerate(rule.backends):
        cluster = served.clusters.get(share.cluster)
        endpoints, fallback = served.endpoints(share.cluster) if share.cluster else ((), False)
        sent = share.cluster and not (share.redirect or rule.redirect or rule.direct)
        lines: tuple[str, ...] = ()
        chosen, by_session = "", False
        if sent:
            if cluster is not None:
                session, now = kept
                session = find_own_session(share, rule, served.units(rule.traffic)) or session
                if session is not None:
                    chosen = name_endpoint(session, cluster, head, listener.http, now)
                    by_session = bool(chosen)
                way = _way_of(served, share, by)
                chosen = chosen or choose_endpoint(
                    way, cluster, head, client.address, listener.http
                )
            lines = write_head(
                head, rule, share, hit.prefix_len, client, listener.http, timeout=timeout
            )
            lines = hide_head(lines, rule, share)
            if cluster is not None and cluster.protocol == "h2":
                lines = to_http2(lines, head)
        parts.append(
            BackendPart(
                name=share.cluster,
                weight=share.weight,
                share=round(100.0 * share.weight / total, 2),
                status=0 if share.cluster else share.status,
                reason=share.reason,
                fallback=fallback,
                tls=describe_tls(cluster.tls) if cluster is not None else "",
                endpoints=endpoints,
                chosen=chosen,
                by_session=by_session,
                head=lines,
                treated=describe_backend_policy(served, share),
                place=served.origin.backend(rule, at),
            )
        )
    return tuple(parts)


def _way_of(served: Served, share: ir.BackendRef, by: ir.LoadBalancer | None) -> ir.LoadBalancer:
    """Return by what a share's endpoint is chosen; `by`: as the rule says it, None: what a request has on its way to it is not known."""
    if share.treatment is None or by is None:
        return by or ir.LoadBalancer()
    balanced = find_balancer(served.units(share.treatment.traffic))
    return balanced[0] if balanced is not None else ir.LoadBalancer()


def _timeouts(rule: ir.Rule, http: ir.HttpSettings, settings: Mapping[str, Setting]) -> TimeoutPart:
    own, idle, send, connect = (
        settings[name].value if name in settings else None
        for name in ("request_timeout", "idle_timeout", "send_timeout", "connect_timeout")
    )
    if own is None and rule.timeouts is not None:
        own = rule.timeouts.request
    single = rule.timeouts.backend_request if rule.timeouts is not None else None
    return TimeoutPart(
        request=http.route_timeout if own is None else own,
        backend_request=single or 0,
        connect=http.connect_timeout if connect is None else connect,
        stream_idle=http.stream_idle_timeout if idle is None else idle,
        send=send or 0,
        default=own is None,
    )


def _stop(
    served: Served,
    request: RequestSpec,
    found: Answer,
    head: Head | None = None,
    listener: ir.Listener | None = None,
    *,
    grpc: bool = False,
) -> Explanation:
    """Explain a request that meets no rule."""
    grpc = grpc or (head is not None and head.grpc)
    return Explanation(
        request=_was_requested(request, head, None),
        answers=name_statuses([found], grpc=grpc),
        listener=_listener(served, listener) if listener is not None else None,
        notes=list_known(served) if found.check in ("port", "listener") else (),
        table=served.version,
    )


def _was_requested(
    request: RequestSpec, head: Head | None, client: Client | None
) -> ExplainedRequest:
    return ExplainedRequest(
        method=request.method,
        url=request.url(),
        port=request.port,
        host=head.host if head is not None else request.host,
        path=head.path.decode() if head is not None else request.target.partition("?")[0],
        headers=request.headers,
        source=request.source,
        client=client.address if client is not None else "",
        sni=request.sni,
        http10=request.http10,
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


def _tried(served: Served, listener: ir.Listener, host: str, last: str | None) -> tuple[str, ...]:
    """Return the hostnames that the request has met, in order, up to the one that took it."""
    there = served.hosts.get(listener.name, {})
    found = []
    for name in order_hostnames(host):
        if name in there:
            found.append(name)
        if name == last:
            break
    return tuple(found)


def _name(one: Candidate) -> str:
    rule = "" if one.rule is None else f" rule {one.name or one.rule}"
    return f"{one.route}{rule}: {one.reason}"
