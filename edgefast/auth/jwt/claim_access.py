"""Claim access: paths of claims in a token, and their use by policies and backends.

In: claims of a verified token, paths such as "realm_access.roles".
Out: values; whether a token satisfies an AccessToken; header lines. A path follows objects. If that
finds nothing, the whole path is the name of a claim that contains dots
("https://example.com/roles").
Must never: accept a value of another type as text, or let a value end a header line.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any

from edgefast.ir.credentials import AccessClaim, AccessToken

__all__ = ["find_claim", "has_access", "header_lines", "scopes_of"]

_NO_FIELD = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110 5.5


def find_claim(claims: dict[str, Any], path: str) -> Any:
    """Return a claim's value; None: it is not there, or null."""
    found: Any = claims
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            return claims.get(path)
        found = found[name]
    return found


def scopes_of(claims: dict[str, Any]) -> frozenset[str]:
    """Return what a token is for: claim "scope" (RFC 8693 4.2), else "scp"; text with spaces or a list."""
    found = claims["scope"] if "scope" in claims else claims.get("scp")
    if isinstance(found, str):
        return frozenset(found.split(" ")) - {""}
    if isinstance(found, list):
        return frozenset(one for one in found if isinstance(one, str))
    return frozenset()


def has_access(access: AccessToken, provider: str, claims: dict[str, Any]) -> bool:
    """Tell whether a good token says all that is asked for."""
    if provider != access.provider:
        return False
    if access.scopes and not scopes_of(claims).issuperset(access.scopes):
        return False
    return all(_has(one, claims) for one in access.claims)


def _has(requested: AccessClaim, claims: dict[str, Any]) -> bool:
    found = find_claim(claims, requested.name)
    if requested.array:
        return isinstance(found, list) and any(
            isinstance(one, str) and one in requested.values for one in found
        )
    return isinstance(found, str) and found in requested.values


def header_lines(wanted: Iterable[tuple[str, str]], claims: dict[str, Any]) -> bytes:
    """Return "name: value" lines of claims, (header, path) each; none of a claim that is not there or cannot be in a line."""
    lines = []
    for header, path in wanted:
        text = _header_text(find_claim(claims, path))
        if text is not None and _NO_FIELD.search(text) is None:
            lines.append(f"{header}: {text}\r\n".encode())
    return b"".join(lines)


def _header_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        return str(int(value) if whole else value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(text.encode()).decode()
