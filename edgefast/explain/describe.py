"""Describe: rules, filters and circumstances as text.

In: the IR. Out: parts of an explanation that need no request. Must never: print key material or
credentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from edgefast import ir
from edgefast.diagnostics.redact import show
from edgefast.explain.authentication import describe_proof, is_proof
from edgefast.explain.backend import COUNTED, find_backend
from edgefast.explain.bandwidth import describe_bandwidth
from edgefast.explain.duration import write_time
from edgefast.explain.encoding import describe_compression
from edgefast.explain.explanation import RulePart, SettingPart
from edgefast.explain.fault import describe_fault
from edgefast.explain.match_failure import describe_match
from edgefast.explain.override import describe_overrides
from edgefast.explain.rejected_listeners import RejectedListener
from edgefast.explain.served_fleet import Served
from edgefast.explain.session_persistence import describe_session
from edgefast.explain.source_location import Origin
from edgefast.explain.traffic import COUNTS, Setting, settle_traffic
from edgefast.table import Hit
from edgefast.translate.match.hostname import narrower

_KNOWN = 3  # problems of a proxy that are told
_EMPTY = {"regex": '""'}
_SETTINGS = {
    "request_timeout": "request",
    "idle_timeout": "idle",
    "send_timeout": "send",
    "connect_timeout": "connect",
    "retry_timeout": "retries",
}
_OF_STORE = "EdgeGateway rateLimit.backend: "
#: Reasons of problems that keep limits from counting.
UNCOUNTED = ("NotCounted", "EvictingStore")


def describe_rule(origin: Origin, hit: Hit) -> RulePart:
    """Return the rule of a hit."""
    return RulePart(
        route=hit.rule.route,
        index=hit.rule.index,
        name=hit.rule.name,
        virtual_host=hit.virtual_host.rpartition("/")[2],
        match=describe_match(hit.match),
        place=origin.match(hit.rule, hit.match),
    )


def list_filters(rule: ir.Rule) -> tuple[str, ...]:
    """Return what a rule's filters do; those of its backendRefs are in the heads."""
    found: list[str] = []
    for name, ops in (("request", rule.request_headers), ("response", rule.response_headers)):
        found += _list_ops(f"{name} header", ops)
    if rule.redirect is not None:
        found.append(f"redirect with {rule.redirect.status}")
    if rule.rewrite is not None:
        found += [f"rewrite host to {rule.rewrite.hostname}"] if rule.rewrite.hostname else []
        if rule.rewrite.path is not None:
            path = rule.rewrite.path
            what = {"full": "path", "prefix": "prefix", "regex": f"every {path.pattern}"}[path.kind]
            found.append(f"rewrite {what} to {path.value or _EMPTY.get(path.kind, '/')}")
    if rule.response_rewrite is not None:
        found += _list_response_rewrites(rule.response_rewrite)
    if rule.direct is not None:
        kind = f", {rule.direct.content_type}" if rule.direct.content_type else ""
        size = len(rule.direct.body)
        found.append(f"answer {rule.direct.status} with {size} bytes{kind}")
    if rule.ext_auth is not None:
        found.append(f"ask {_describe_asked(rule.ext_auth)} for authorization")
    if rule.cors is not None:
        found.append(f"CORS for {', '.join(rule.cors.allow_origins) or 'no origin'}")
    return tuple(found)


def _list_response_rewrites(one: ir.ResponseRewrite) -> list[str]:
    lists = (
        ("Location", one.locations),
        ("Domain of cookies", one.cookie_domains),
        ("Path of cookies", one.cookie_paths),
    )
    kinds = {"prefix": "prefix", "exact": "value", "regex": "every"}
    return [
        f"rewrite {name} in responses: {kinds[each.kind]} {each.pattern} to {each.value or _EMPTY['regex']}"
        for name, rewrites in lists
        for each in rewrites
    ]


def _describe_asked(requested: ir.ExtAuth) -> str:
    names = " or ".join(one.cluster for one in requested.backends)
    return f"{names} (gRPC)" if requested.grpc else names


def _list_ops(what: str, ops: ir.HeaderOps | None) -> list[str]:
    if ops is None:
        return []
    return [
        *(f"remove {what} {name}" for name in ops.remove),
        *(f"set {what} {name}: {show(name, value)}" for name, value in ops.set),
        *(f"add {what} {name}: {show(name, value)}" for name, value in ops.add),
        *(f"add {what} {name}: {show(name, value)} on success" for name, value in ops.on_success),
    ]


def list_settings(settings: Mapping[str, Setting]) -> tuple[SettingPart, ...]:
    """Return the settings of policies that are in force; what only the route says is told with the timeouts."""
    return tuple(
        SettingPart(name=one.field, value=one.value, unit=one.unit, cut_by=one.cut_by)
        for one in settings.values()
        if one.unit or one.cut_by
    )


def describe_unit(unit: ir.PolicyUnit) -> str:
    """Return what a unit of a policy says, in words."""
    if unit.status:
        return f"answers {unit.status}: {unit.reason}"
    if unit.reason:  # of the version before
        plain = msgspec.structs.replace(unit, reason="")
        return f"{describe_unit(plain)} ({unit.reason})"
    if unit.authorization is not None:
        count, default = (
            len(unit.authorization.rules),
            "Allow" if unit.authorization.allow else "Deny",
        )
        return f"{count} rule{'' if count == 1 else 's'}, else {default}"
    if is_proof(unit):
        return describe_proof(unit)
    if unit.ext_auth is not None:
        return f"asks {_describe_asked(unit.ext_auth)}" + (
            ", passes when it fails" if unit.ext_auth.fail_open else ""
        )
    message = [
        " ".join(write_setting(one.field, one.value)) for one in settle_traffic([unit], 0).values()
    ]
    if unit.traffic is not None and unit.traffic.fault is not None:
        message.append(f"injected fault: {describe_fault(unit.traffic.fault)}")
    if unit.traffic is not None and unit.traffic.override is not None:
        message.append(describe_overrides(unit.traffic.override))
    if unit.traffic is not None and unit.traffic.compression is not None:
        message.append(describe_compression(unit.traffic.compression))
    if unit.traffic is not None and unit.traffic.bandwidth is not None:
        message.append(describe_bandwidth(unit.traffic.bandwidth))
    message += [one.text() for one in find_backend([unit])]
    if unit.traffic is not None and unit.traffic.session is not None:
        message.append(describe_session(unit.traffic.session))
    return ", ".join(message) or "has no settings"


def write_setting(field: str, value: int) -> tuple[str, str]:
    """Return a setting of ir.Traffic in words."""
    if field == "body_size":
        return "request body", f"{value} bytes" if value else "of any size"
    if field in COUNTS or (field in COUNTED and value):
        return COUNTED[field], f"{value} at most"
    if field in COUNTED:
        return COUNTED[field], "any number"
    return _SETTINGS[field], write_time(value) if value else "without end"


def list_dark(listener: ir.Listener, dark: RejectedListener | None) -> tuple[str, ...]:
    """Return that a nearer listener than the one that has the request is not served, if that is so."""
    if dark is None or narrower(dark.hostname, listener.hostname) == listener.hostname:
        return ()
    return (
        f"listener {dark.name} ({dark.hostname}) would receive the request but is not served: "
        f"{dark.said}",
    )


def list_known(served: Served) -> tuple[str, ...]:
    """Return the first problems that a running proxy knows: one may be why nothing takes a request."""
    if served.live is None or served.origin.translation is not None:
        return ()
    reported = served.live.problems
    notes = [f"reported by the proxy: {one}" for one in reported[:_KNOWN]]
    if len(reported) > _KNOWN:
        notes.append(f"and {len(reported) - _KNOWN} more problems: edgefast status lists them")
    return tuple(notes)


def list_uncounted(texts: Iterable[str], limits: Iterable[str]) -> Iterator[str]:
    """Yield what keeps a rule's limits ("namespace/name#0") from counting: their store's troubles, and their own."""
    owner = [
        f"RateLimitFilter {name} spec.global.rules[{number}]:"
        for name, _, number in (one.partition("#") for one in limits)
    ]
    if owner:
        for text in texts:
            if text.startswith((_OF_STORE, *owner)):
                yield f"its limits: {text}"


def _describe_client_rule(rule: ir.ClientRule) -> str:
    verb = "must" if rule.mode == "required" else "can"
    instead = f"are redirected to {rule.error_page}" if rule.error_page else "get 400"
    text = f"clients {verb} present a certificate of {rule.ca}; others {instead}"
    if rule.mode == "optional":
        text = f"clients can present a certificate of {rule.ca}; those with another one {instead}"
    if rule.mode == "any_issuer":
        text = "clients can present a certificate of any issuer"
    if rule.subject:
        text += f"; a subject without {rule.subject} gets 403"
    return text


def list_http10_notes(http: ir.HttpSettings, *, has_host: bool) -> Iterator[str]:
    """Yield what differs for a request in HTTP/1.0 that is served."""
    yield "HTTP/1.0: the answer has no chunks, trailers or 1xx; a body without a length ends with the connection"
    if not has_host:
        yield f"the request has no Host; edgefast uses http10.defaultHost of EdgeProxy spec.http: {http.http10_host}"


def list_notes(served: Served, listener: ir.Listener, rule: ir.Rule | None) -> tuple[str, ...]:
    """Return what else may decide: client certificates, the PROXY protocol, counters that are not known."""
    notes = []
    if listener.tls is not None and listener.tls.client_ca:
        less = "should" if listener.tls.client_insecure_fallback else "must"
        notes.append(f"clients {less} present a certificate of {listener.tls.client_ca}")
    if listener.tls is not None and listener.tls.client_rule is not None:
        notes.append(_describe_client_rule(listener.tls.client_rule))
    if listener.http.client_address.proxy_protocol == "required":
        notes.append("connections must begin with a PROXY protocol header")
    if rule is not None and any(one.kind == "Window" for one in rule.rate_limits):
        if served.live is None:
            notes.append("only a running proxy has rate-limit counters (--admin)")
        elif served.live.rows is None:
            notes.append(f"counters are unknown: {served.live.why_no_rows}")
        elif served.live.more_rows:
            notes.append("the proxy has more counters than it listed")
        if served.live is not None:
            names = (one.name for one in rule.rate_limits)
            notes += list_uncounted(served.live.uncounted, names)
    live = served.live
    if live is not None and live.silent == live.workers > 0:
        notes.append("no worker answered, so endpoints are those of the table")
    elif live is not None and live.silent:
        who = f"{live.silent} of {live.workers} workers"
        notes.append(f"{who} did not answer, so endpoints are as the other workers report them")
    left_out = [one for one in served.shards.problems if rule is None or rule.route in one.text()]
    notes += [one.text() for one in left_out[:3]]
    return tuple(notes)


def describe_tls(tls: ir.UpstreamTls | None) -> str:
    """Return the name that a backend is asked for with TLS, "" without TLS."""
    if tls is None:
        return ""
    return f"{tls.sni} (its certificate is not verified)" if tls.insecure else tls.sni
