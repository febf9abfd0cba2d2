"""To backends: the request headers that a backend, an error page's Service or an authentication service sees."""

from __future__ import annotations

import re

from ingress.message import RANDOM, Request
from ingress.naive.client import Client
from ingress.naive.objects import Objects

Sent = tuple[tuple[str, str], ...]

#: Hop-by-hop and framing headers, which no comparison looks at.
IGNORED = frozenset(
    "connection keep-alive te trailer upgrade expect content-length transfer-encoding".split()
)


def passed_headers(request: Request, replaced: dict[str, str]) -> Sent:
    """The client's headers, without those that are replaced; a replacement "" removes. Names with other characters than letters,
    digits and `-` are dropped."""
    kept = [
        (name.lower(), value)
        for name, value in request.headers
        if name.lower() not in replaced
        and name.lower() not in IGNORED
        and re.fullmatch(r"[A-Za-z0-9-]+", name)
    ]
    return tuple(sorted([*kept, *((name, value) for name, value in replaced.items() if value)]))


def backend_headers(
    request: Request, client: Client, objects: Objects, changed: dict[str, str]
) -> Sent:
    """Host, X-Request-ID, X-Real-IP, X-Forwarded-For (overwritten by the peer unless use-forwarded-headers), -Host (with port),
    -Port, -Proto, -Scheme, X-Scheme, X-Original-Forwarded-For, X-Original-Forwarded-Host (what the client sent in
    X-Forwarded-For, -Host); X-Request-ID of the client is kept; `Proxy` removed. `changed`: what the location adds."""
    chain = ", ".join(value for name, value in request.headers if name.lower() == "x-forwarded-for")
    full = objects.setting("use-forwarded-headers") == "true" and (
        objects.setting("compute-full-forwarded-for") == "true"
    )
    replaced = {
        "host": client.host,
        "x-request-id": request.value("x-request-id") or RANDOM,
        "x-real-ip": client.address,
        "x-forwarded-for": _full(chain, request) if full else client.address,
        "x-forwarded-host": client.host,
        "x-forwarded-port": client.port,
        "x-forwarded-proto": client.scheme,
        "x-forwarded-scheme": client.scheme,
        "x-scheme": client.scheme,
        "x-original-forwarded-for": chain,
        "x-original-forwarded-host": request.value("x-forwarded-host"),
        "proxy": "",
    }
    if objects.setting("proxy-add-original-uri-header") == "true":
        replaced["x-original-uri"] = request.target
    return passed_headers(request, {**replaced, **changed})


def _full(chain: str, request: Request) -> str:
    return f"{chain}, {request.peer}" if chain else request.peer


def body_limit(value: str) -> int:
    """Body limit 1 MiB, else 413; 0 has no limit. Bytes."""
    found = re.fullmatch(r"(\d+)([kKmMgG]?)", value.strip())
    if not found:
        return 1 << 20
    number = int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]
    return number or 1 << 62
