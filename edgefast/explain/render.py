"""Render: an explanation as text for a terminal.

In: an `Explanation`. Out: lines without colour and without control characters, with the content of
the JSON.
Must never: add a fact of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.diagnostics.problem import ask_about
from edgefast.explain.backend import COUNTED
from edgefast.explain.duration import write_time
from edgefast.explain.explanation import (
    Answer,
    BackendPart,
    Candidate,
    ExplainedRequest,
    Explanation,
    LimitPart,
    ListenerPart,
    Place,
    SettingPart,
    UnitPart,
)
from edgefast.explain.request_spec import STREAMS
from edgefast.explain.traffic import COUNTS

_INDENT = 14
_REASONS = {
    200: "OK", 204: "No Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
    401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 413: "Content Too Large",
    414: "URI Too Long", 417: "Expectation Failed", 421: "Misdirected Request",
    426: "Upgrade Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
}  # fmt: skip
_SETTINGS = {
    "body_size": "request body", "request_timeout": "request", "idle_timeout": "idle", "send_timeout": "send",
    "connect_timeout": "connect", "retry_timeout": "retries",
}  # fmt: skip


def render_explanation(one: Explanation) -> list[str]:
    """Return the lines."""
    return [escape_text(line).rstrip() for line in _lines(one)]


def _lines(one: Explanation) -> Iterator[str]:
    requested = one.request
    version = " HTTP/1.0" if requested.http10 else ""
    yield requested.url if is_stream(requested) else f"{requested.method} {requested.url}{version}"
    for name, value in requested.headers:
        yield f"  {name}: {value}"
    yield ""
    for answer in one.answers:
        yield from _answer(answer, alone=len(one.answers) == 1)
    yield ""
    if requested.source:
        client = (
            f", client {requested.client}" if requested.client not in ("", requested.source) else ""
        )
        sni = f", TLS name {requested.sni}" if requested.sni else ""
        yield _row("from", f"{requested.source}{client}{sni}")
    if one.listener is not None and not is_stream(requested) and not _is_plain(requested):
        yield _row("matched as", f"host {requested.host}, path {requested.path}")
    if one.listener is not None:
        host = "any host" if one.listener.hostname == "*" else one.listener.hostname
        yield _row(
            "listener",
            f"{one.listener.name} (port {one.listener.port}{_at(one.listener)}, {one.listener.protocol}, {host})",
        )
        yield from _place(one.listener.place)
    if one.virtual_hosts:
        yield _row("hostnames", ", then ".join(one.virtual_hosts))
    if one.rule is not None:
        numbered = f"{one.rule.route} rule {one.rule.name or one.rule.index}"
        yield _row("rule", f"{numbered}: {one.rule.match}")
        yield from _place(one.rule.place)
    yield from _rows("filters", one.filters)
    for at, backend in enumerate(one.backends):
        seen = {other.head for other in one.backends[:at]}
        yield from _backend(backend, again=backend.head in seen)
    yield from _rows("mirrors", one.mirrors)
    for at, unit in enumerate(one.policies):
        yield from _unit("policies" if at == 0 else "", unit)
    yield from _rows("traffic", tuple(map(_setting, one.traffic)))
    yield from _rows("limits", tuple(map(_limit, one.limits)))
    yield from _times(one)
    for at, candidate in enumerate(one.candidates):
        yield from _candidate("not" if at == 0 else "", candidate)
    if one.more_candidates:
        yield _row("", f"and {one.more_candidates} more (--most)")
    yield from _rows("note", one.notes)
    if one.table:
        yield _row("table", one.table)


def is_stream(requested: ExplainedRequest) -> bool:
    """Tell whether it was no request that was asked for."""
    return requested.url.partition("://")[0] in STREAMS


def _is_plain(requested: ExplainedRequest) -> bool:
    """Tell whether host and path are matched as they stand in the URL."""
    authority, slash, rest = requested.url.partition("://")[2].partition("/")
    path = slash + rest.partition("?")[0]
    return authority.partition(":")[0] == requested.host and (path or "/") == requested.path


def _answer(one: Answer, *, alone: bool) -> Iterator[str]:
    share = "" if alone else f"{one.share:g} %: "
    match one.kind:
        case "backend":
            why = f": {one.why}" if one.why else ""
            yield f"{share}goes to {one.backend}{_was_requested(one)}{why}"
        case "closed":
            yield f"{share}no answer: {one.why}"
        case _:
            reason = _REASONS.get(one.status, "")
            message = f"{one.status}{f' {reason}' if reason else ''}"
            if one.grpc_status:
                message = f"grpc-status {one.grpc_status} (in HTTP: {message})"
            yield f"{share}{message}{_was_requested(one)}: {one.why} ({one.check})"
    if one.location:
        yield f"  location: {one.location}"
    if one.fix:
        yield f"  {one.fix}"
    if one.reasons:
        yield f"  more about it: {ask_about(one.reasons)}"


def _backend(one: BackendPart, *, again: bool) -> Iterator[str]:
    answered = f"answered with {one.status}" if one.status else "refused"
    name = one.name or f"{answered}: {one.reason}"
    yield _row("backend", f"{one.share:g} % {name} (weight {one.weight})")
    yield from _place(one.place)
    endpoints = []
    for endpoint in one.endpoints:
        used = " in use" if endpoint.failures else " healthy"
        if endpoint.ill:
            used = " failing a health check, which affects rules with this check"
        state = {None: "", True: used, False: f" ejected: {endpoint.workers}"}[endpoint.healthy]
        if endpoint.draining:
            state = f"{state} draining, used only for its sessions"
        zone = f" in {endpoint.zone}" if endpoint.zone else ""
        active = f", {endpoint.active} active" if endpoint.active else ""
        count = endpoint.failures
        last = "request failed" if count == 1 else f"{count} requests failed in a row"
        failed = f", its last {last}" if count else ""
        endpoints.append(f"{endpoint.address}{zone}{state}{failed}{active}")
    kind = "terminating endpoints" if one.fallback else "endpoints"
    if one.name:
        yield _row("", f"{kind} {', '.join(endpoints) or 'none'}")
    if one.chosen:
        owner = "session names" if one.by_session else "key finds"
        yield _row("", f"its {owner} {one.chosen}, while all are healthy")
    yield from _rows("  treated", one.treated)
    if one.tls:
        yield _row("", f"TLS, for {one.tls}")
    yield from _rows("  sees", ("the same",) if again and one.head else one.head)


def _was_requested(one: Answer) -> str:
    return f", if {' and '.join(one.asks)} lets it pass" if one.asks else ""


def _unit(label: str, one: UnitPart) -> Iterator[str]:
    message = {"not_asked": "not asked", "lost": "has no effect"}.get(one.verdict, one.verdict)
    why = one.why.removeprefix("asks ") if one.verdict == "asks" else one.why
    joint = " " if one.verdict == "asks" else ": "
    yield _row(label, f"{one.name} {message}{joint if why else ''}{why}")
    yield from _rows("", tuple(f"  {line}" for line in one.about))
    yield from _place(one.place)


def _setting(one: SettingPart) -> str:
    if one.name == "body_size":
        value = f"{one.value} bytes" if one.value else "any"
    elif one.name in COUNTED:
        value = f"{one.value} at most" if one.value or one.name in COUNTS else "any number"
    else:
        value = write_time(one.value)
    message = f"{_SETTINGS.get(one.name) or COUNTED[one.name]} {value} ({one.unit or 'the route'}"
    return f"{message}, cut by {one.cut_by})" if one.cut_by else f"{message})"


def _limit(one: LimitPart) -> str:
    values = "".join(f" {name}={value}" for name, value in one.values.items())
    if one.kind == "Parallel":
        message = f"{one.name}: {one.requests} in progress{values}"
    else:
        message = f"{one.name}: {one.requests} in {write_time(one.unit * 1000)}{values}"
    if one.kind == "Bucket":
        message += f", burst {one.burst}"
    if one.kind != "Window":
        message += f", refused with {one.status or 429}"
    if not one.counts:
        return f"{message}, not counted: {one.why_not}"
    if one.shadow:
        message += ", shadow"
    if one.used is not None:
        left = "" if one.remaining is None else f", {one.remaining} left"
        reset = "" if one.reset is None else f" for {one.reset} s"
        message += f", {one.used} used{left}{reset}"
    elif one.remaining == 0:
        message += ", refuses all requests"
    return message


def _times(one: Explanation) -> Iterator[str]:
    times = one.timeouts
    if times is not None:
        default = " to the head of the answer (default)" if times.default else ""
        message = (
            "" if is_stream(one.request) else f"request {write_time(times.request)}{default}, "
        )
        if times.backend_request:
            message += f"each try {write_time(times.backend_request)}, "
        message += f"connect {write_time(times.connect)}, idle {write_time(times.stream_idle)}"
        if times.send:
            message += f", send {write_time(times.send)}"
        yield _row("timeouts", message)
    if one.retry is not None:
        codes = f" on {', '.join(map(str, one.retry.codes))}" if one.retry.codes else ""
        yield _row(
            "retries", f"{one.retry.attempts}{codes}, backoff {write_time(one.retry.backoff)}"
        )


def _candidate(label: str, one: Candidate) -> Iterator[str]:
    rule = "" if one.rule is None else f" rule {one.name or one.rule}"
    match = f" ({one.match})" if one.match else ""
    yield _row(label, f"{one.route}{rule}{match}: {one.reason}")
    yield from _place(one.place)


def _place(place: Place) -> Iterator[str]:
    message = " ".join(part for part in (place.source, place.object, place.path) if part)
    if message:
        yield _row("", f"  {message}")


def _rows(label: str, values: tuple[str, ...]) -> Iterator[str]:
    for at, value in enumerate(values):
        yield _row(label if at == 0 else "", value)


def _row(label: str, value: str) -> str:
    return f"{label:<{_INDENT}}{value}"


def escape_text(text: str) -> str:
    """Escape what would steer a terminal; names and values come from others."""
    if text.isprintable():
        return text
    return "".join(
        one
        if one.isprintable()
        else one.encode("utf-8", "surrogateescape")
        .decode("latin-1")
        .encode("unicode_escape")
        .decode()
        for one in text
    )


def _at(listener: ListenerPart) -> str:
    """Name the addresses of a listener that does not have all."""
    return f" of {', '.join(listener.addresses)}" if listener.addresses else ""
