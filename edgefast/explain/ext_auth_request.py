"""Ext auth request: the check that an authorization service would receive, as text.

In: ir.ExtAuth, the head of the request. Out: lines: the check request and the effect of its
response. Names of headers are as servers may read them. The twin of core/policy/authservice.pyx and
authcall.pyx. Must never: send it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from edgefast import ir
from edgefast.explain.client import fold_name
from edgefast.explain.duration import write_time
from edgefast.explain.head import Head

#: Headers of framing, of one connection and of the proxy, which no service is shown.
_NEVER_SHOWN = frozenset((
    "host", "connection", "content-length", "transfer-encoding", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect",
    "http2-settings", "via", "x-request-id", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-uri",
    "x-forwarded-method",
))  # fmt: skip
#: What a service of gRPC is shown all the same: to it they are no framing.
_CHECKED = frozenset(("content-length", "expect"))
#: ... and which none sets.
NEVER_SET = frozenset((
    "host", "connection", "content-length", "content-type", "transfer-encoding", "keep-alive", "proxy-connection", "te", "trailer",
    "upgrade", "expect", "http2-settings", "via", "date", "server", "x-request-id", "x-forwarded-for", "x-forwarded-proto",
))  # fmt: skip
#: Headers of a check that describe the request (extAuth.http.originalRequest: XOriginal).
_ORIGINAL = frozenset(
    ("x-original-url", "x-original-method", "x-original-uri", "x-real-ip", "x-scheme")
    + ("x-auth-request-redirect",)
)
#: What tells all questions apart.
_OF_ALL = ("method", "host", "path")
_VARIABLE = re.compile(r"\{([A-Za-z]+)\}")
#: As a value in a query, beside letters and digits.
_UNESCAPED = frozenset(
    b"-_.~!*'()@$,|`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)
#: What a service of gRPC is asked with.
_CALL = "envoy.service.auth.v3.Authorization/Check"


def describe_question(requested: ir.ExtAuth, head: Head) -> tuple[str, ...]:
    """Return the lines."""
    target = head.path if head.query is None else head.path + b"?" + head.query
    if requested.grpc:
        return (
            f"is called: {_CALL} of {_text(head.method)} {_text(target)}, host: {_text(head.authority)}",
            *_name_shown(requested, head),
            *_describe_outcomes(requested),
        )
    path = (
        _expand(requested.path_template, head)
        or requested.path_override
        or f"{requested.path.rstrip('/')}{_text(target)}"
    )
    method, host = requested.method or _text(head.method), requested.host or _text(head.authority)
    return (
        f"gets {method} {path}, host: {host}",
        *_name_shown(requested, head),
        *_describe_outcomes(requested),
    )


def _expand(template: str, head: Head) -> str:
    """Return the path of a check whose path has variables, without the value of {scheme}; as core/policy/check_path.pyx writes it."""
    target = b"/" if head.target == b"" else head.target
    values = {
        "authority": head.authority,
        "escapedTarget": b"".join(
            bytes((one,)) if one in _UNESCAPED else b"%%%02X" % one for one in target
        ),
        "host": head.host_sent.lower(),
        "method": head.method,
        "path": head.path,
        "query": head.query or b"",
        "target": target,
    }
    made = _VARIABLE.sub(
        lambda found: values.get(found[1], found[0].encode()).decode("latin-1"), template
    )
    return "".join(one if " " < one <= "~" and one != "#" else f"%{ord(one):02X}" for one in made)


def _name_shown(requested: ir.ExtAuth, head: Head) -> Iterator[str]:
    names = (one.name.decode("latin-1").lower() for one in head.lines)
    there = dict.fromkeys(one for one in names if _is_shown(requested, one))
    if there:
        yield f"with {', '.join(there)}"
    if requested.fixed:  # values may be secrets of the service
        yield f"and {', '.join(name for name, _ in requested.fixed)} with fixed values"
    if requested.body:
        yield f"and at most {requested.body} bytes of the body"


def _is_shown(requested: ir.ExtAuth, name: str) -> bool:
    if name.startswith("x-edge-"):
        return False
    if requested.grpc:
        return fold_name(name) not in _NEVER_SHOWN - _CHECKED and (
            not requested.headers or name in requested.headers
        )
    if name in dict(requested.fixed) or (requested.original and name in _ORIGINAL):
        return False
    if requested.all_headers:
        return fold_name(name) not in _NEVER_SHOWN
    of_body = ("content-type", "content-encoding") if requested.body else ()
    return name.replace("_", "-") not in _NEVER_SHOWN and (
        name == "authorization" or name in requested.headers or name in of_body
    )


def _describe_outcomes(requested: ir.ExtAuth) -> Iterator[str]:
    failed = "the request passes" if requested.fail_open else f"{requested.status_on_error}"
    if requested.grpc:
        yield "lets the request pass with status OK; any other answer goes to the client"
        yield "may set and remove headers of the request; other headers stay as the client sent them"
        yield f"no answer in {write_time(requested.timeout)}, or no gRPC answer with grpc-status 0: {failed}"
        yield from _describe_cache(requested)
        return
    statuses = _describe_statuses(requested.statuses)
    if requested.denied is None:
        yield f"lets the request pass with {statuses}; any other answer goes to the client"
    else:
        yield f"lets the request pass with {statuses} and denies it with {_describe_statuses(requested.denied)}; any other answer is an error"
    if requested.to_denied is not None:
        yield f"the client of a denied request gets {', '.join(requested.to_denied) or 'no header'} of its answer"
    if requested.to_client:
        on = "" if requested.to_client_always else " of success and redirects"
        yield f"responses{on} get {', '.join(requested.to_client)} of its answer"
    if requested.sign_in:
        yield f"401 becomes a redirect to {requested.sign_in.partition('?')[0]}"
    if requested.to_backend:
        yield f"the backend gets {', '.join(requested.to_backend)} of its answer, and never from the client"
    yield f"no answer in {write_time(requested.timeout)}, or {'another' if requested.denied is not None else 'a 5xx'} answer: {failed}"
    yield from _describe_cache(requested)


def _describe_statuses(statuses: Sequence[int]) -> str:
    """Return statuses; runs of more than two as a range."""
    runs: list[list[int]] = []
    for one in sorted(statuses):
        if runs and runs[-1][-1] + 1 == one:
            runs[-1].append(one)
        else:
            runs.append([one])
    return ", ".join(
        f"{one[0]}-{one[-1]}" if len(one) > 2 else ", ".join(map(str, one)) for one in runs
    )


def _describe_cache(requested: ir.ExtAuth) -> Iterator[str]:
    if requested.cache is not None:
        keys = requested.cache.key_headers
        named = dict.fromkeys((*_OF_ALL, "authorization", *(keys or ())))
        equal = "everything that it gets is" if keys is None else ", ".join(named) + " are"
        yield f"its answers are cached for {write_time(requested.cache.ttl)} while {equal} the same"
        if requested.body:
            yield "except answers to requests with a body"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
