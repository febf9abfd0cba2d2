"""Log format parser: templates of access log lines, with the operators of Envoy's access log format.

In: the text of a template, such as `"%REQ(:METHOD)% %REQ(X-A?X-B):10%" %RESPONSE_CODE%`.
Out: pieces for the engine, and every mistake with a hint; one mistake refuses the whole template.
Source: https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage;
docs/guides/access-log.md lists the operators and their values in edgefast.
Must never: put a line break or another control character into a line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from edgefast import ir
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word

#: Operator -> what stands in its brackets. The engine knows the same (tests/core/test_logprogram.py).
OPERATORS: dict[str, Literal["", "request", "response", "time", "grpc"]] = {
    "REQ": "request",
    "RESP": "response",
    "START_TIME": "time",
    "EMIT_TIME": "time",
    "GRPC_STATUS": "grpc",
    **dict.fromkeys(
        (
            "RESPONSE_CODE",
            "RESPONSE_CODE_DETAILS",
            "RESPONSE_FLAGS",
            "RESPONSE_FLAGS_LONG",
            "GRPC_STATUS_NUMBER",
            "DURATION",
            "RESPONSE_DURATION",
            "RESPONSE_TX_DURATION",
            "BYTES_RECEIVED",
            "BYTES_SENT",
            "PROTOCOL",
            "ROUTE_NAME",
            "STREAM_ID",
            "TRACE_ID",
            "HOSTNAME",
            "UPSTREAM_HOST",
            "UPSTREAM_CLUSTER",
            "UPSTREAM_CLUSTER_RAW",
            "UPSTREAM_PROTOCOL",
            "UPSTREAM_REMOTE_ADDRESS",
            "UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
            "UPSTREAM_REMOTE_PORT",
            "UPSTREAM_LOCAL_ADDRESS",
            "UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
            "UPSTREAM_LOCAL_PORT",
            "UPSTREAM_REQUEST_ATTEMPT_COUNT",
            "UPSTREAM_TRANSPORT_FAILURE_REASON",
            "UPSTREAM_TLS_FAILURE_REASON",
            "CONNECTION_TERMINATION_DETAILS",
            "DOWNSTREAM_REMOTE_ADDRESS",
            "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
            "DOWNSTREAM_REMOTE_PORT",
            "DOWNSTREAM_DIRECT_REMOTE_ADDRESS",
            "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT",
            "DOWNSTREAM_DIRECT_REMOTE_PORT",
            "DOWNSTREAM_LOCAL_ADDRESS",
            "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
            "DOWNSTREAM_LOCAL_PORT",
            "REQUESTED_SERVER_NAME",
            "DOWNSTREAM_TLS_VERSION",
            "DOWNSTREAM_TLS_CIPHER",
            "DOWNSTREAM_TLS_GROUP",
            "DOWNSTREAM_TLS_RESUMED",
        ),
        "",
    ),
}
#: Names that are no headers on the wire, per side.
PSEUDO = {
    "request": (":authority", ":method", ":path", ":scheme"),
    "response": (":status",),
}
#: How a status of gRPC is written.
GRPC_FORMS = ("CAMEL_STRING", "SNAKE_STRING", "NUMBER")
#: Characters of a value at most, whatever `:N` says.
MAX_LIMIT = 4096
#: What strftime gives in UTC, and %1f to %9f: fractions of a second.
TIME_CONVERSIONS = frozenset("aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ")
#: In place of what Envoy would have sent, where a template names no other header.
_OURS = {"x-envoy-upstream-service-time": "x-edge-upstream-service-time"}
_NO_SUCH = re.compile(
    r"TRAILER|DYNAMIC_METADATA|CLUSTER_METADATA|UPSTREAM_METADATA|METADATA|FILTER_STATE|"
    r"UPSTREAM_FILTER_STATE|ENVIRONMENT|CEL|VIRTUAL_CLUSTER_NAME|"
    r"FILTER_CHAIN_NAME|CONNECTION_ID|COMMON_DURATION|REQUEST_DURATION|REQUEST_TX_DURATION|"
    r"ROUNDTRIP_DURATION|(DOWNSTREAM|UPSTREAM)_(TLS|PEER|LOCAL_(SUBJECT|URI_SAN|DNS_SAN))_?\w*|"
    r"(DOWNSTREAM|UPSTREAM)_(WIRE|HEADER)_BYTES_\w+|(REQUEST|RESPONSE)_HEADERS?_BYTES|"
    r"QUERY_PARAMS?|PATH|UPSTREAM_HOST_NAME(_WITHOUT_PORT)?|START_TIME_LOCAL|"
    r"EMIT_TIME_LOCAL|UNIQUE_ID|DOWNSTREAM_TRANSPORT_FAILURE_REASON|\w+_PROPERTY"
)

_OPERATOR = re.compile(r"%([A-Za-z][A-Za-z0-9_]*)(?:\(([^)]*)\))?(?::([0-9]*))?%")
_TIME = re.compile(r"%(?:([1-9]?)(f)|(.)|\Z)", re.DOTALL)
_HEADER = re.compile(r"[A-Za-z0-9!#$&'*+\-.^_\x60|~]{1,256}")


class Mistake(msgspec.Struct, frozen=True):
    """One thing that is wrong with a template: a Problem without its place."""

    reason: Word
    message: str
    hint: str = ""


@functools.lru_cache(maxsize=256)
def parse_template(text: str) -> tuple[tuple[ir.LogPiece, ...], tuple[Mistake, ...]]:
    """Return the pieces of a template and its mistakes; pieces are of use without mistakes only."""
    pieces: list[ir.LogPiece] = []
    mistakes: list[Mistake] = []
    text = text.rstrip("\r\n")
    literal = ""
    at = 0
    while at < len(text):
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            literal += text[at:end]
            at = end
        elif text.startswith("%%", at):
            literal += "%"
            at += 2
        elif found := _OPERATOR.match(text, at):
            if literal:
                pieces.append(ir.LogPiece(text=literal))
                literal = ""
            one = _parse_operator(*found.groups())
            if isinstance(one, Mistake):
                mistakes.append(one)
            else:
                pieces.append(one)
            at = found.end()
        else:
            message = f"{_shown(text[at : at + 32])} is not an operator"
            mistakes.append(Mistake("Invalid", message, "write %% for a percent sign"))
            break
    if literal:
        pieces.append(ir.LogPiece(text=literal))
    if any(one < " " or one == "\x7f" for one in text):
        mistakes.append(
            Mistake("Invalid", "a line must not contain line breaks or control characters")
        )
    return tuple(pieces), tuple(mistakes)


def _parse_operator(name: str, inside: str | None, limit: str | None) -> ir.LogPiece | Mistake:
    kind = OPERATORS.get(name)
    if kind is None:
        if _NO_SUCH.fullmatch(name):
            return Mistake(
                "NotSupported", f"%{name}% is an operator of Envoy that edgefast does not support"
            )
        hint = did_you_mean(name, OPERATORS) or "see edgefast docs access-log"
        return Mistake("NotSupported", f"%{_cut(name)}% is not an operator", hint)
    if limit is not None and kind not in ("request", "response"):
        return Mistake("Invalid", f"%{name}% does not support a length (only REQ and RESP do)")
    if kind == "time":
        message = _check_time(inside or "")
        return message or ir.LogPiece(operator=name, text=inside or "")
    if kind == "grpc":
        form = inside or GRPC_FORMS[0]
        if form in GRPC_FORMS:
            return ir.LogPiece(operator=name, text=form)
        text = f"{supported_text(_cut(form), GRPC_FORMS)} in %{name}%"
        return Mistake("NotSupported", text, did_you_mean(form, GRPC_FORMS))
    if not kind:
        if inside is not None:
            return Mistake("Invalid", f"%{name}% does not support parameters in brackets")
        return ir.LogPiece(operator=name)
    most = MAX_LIMIT if limit is None else int(limit[:8] or 0)
    if not 1 <= most <= MAX_LIMIT:
        return Mistake("Invalid", f'length "{_cut(limit or "")}" of %{name}% (1 to {MAX_LIMIT})')
    first, _, other = (inside or "").partition("?")
    for one in (first, other) if "?" in (inside or "") else (first,):
        if message := _check_header(name, kind, one):
            return message
    return ir.LogPiece(
        operator=name,
        text=first.lower(),
        other=other.lower() or _OURS.get(first.lower(), ""),
        limit=0 if limit is None else most,
    )


def _check_header(name: str, kind: str, header: str) -> Mistake | None:
    if header.startswith(":"):
        if header.lower() in PSEUDO[kind]:
            return None
        words = [word.upper() for word in PSEUDO[kind]]
        hint = did_you_mean(header, words)
        return Mistake("NotSupported", f"{supported_text(_cut(header), words)} in %{name}%", hint)
    if not _HEADER.fullmatch(header):
        message = f'"{_cut(header)}" in %{name}% is not a header name'
        return Mistake("Invalid", message, f"write %{name}(X-NAME)%")
    return None


def _check_time(form: str) -> Mistake | None:
    for word in _wrong_conversions(form):
        message = f'"{_cut(word)}" in a form of time'
        return Mistake("NotSupported", message, "see edgefast docs access-log")
    return None


def _wrong_conversions(form: str) -> Iterator[str]:
    for found in _TIME.finditer(form):
        _, fraction, letter = found.groups()
        if not fraction and (letter is None or letter not in TIME_CONVERSIONS | {"%"}):
            yield found.group()


def _cut(text: str) -> str:
    return text if len(text) <= 64 else text[:64] + "..."


def _shown(text: str) -> str:
    return f'"{_cut(text)}"'
