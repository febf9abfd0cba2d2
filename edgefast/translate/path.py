"""Paths that users write: checked, and brought to the form requests have when they are matched.

In: the value of a path match, rewrite or redirect. Out: its normal form, or what is wrong with it.
Requests are normalised before matching (RFC 3986 6.2.2: escapes of unreserved characters decoded,
others in upper-case hex), so a value must be too or it would never match.
Must never: let a space, a control character, "?" or "#" through; values end up in request lines.
"""

from __future__ import annotations

import re

#: RFC 3986 pchar and "/", as in the CRD's rules for Exact and PathPrefix.
_PATH = re.compile(r"/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Most segments of a prefix: EF_MAX_SEGMENTS - 1 in csrc/limits.h, probes per request path.
MAX_SEGMENTS = 63


def check_path(value: str) -> str:
    """Return what is wrong with a literal path, "" when it is fit to match or to send."""
    if not value.startswith("/"):
        return 'must start with "/"'
    if not _PATH.fullmatch(value):
        return "must be a path of RFC 3986: no spaces, no ? or #, % only in escapes like %20"
    plain = normalize_path(value)
    if "//" in plain:
        return 'must not contain "//", which is merged in requests'
    if "%2F" in plain or "%5C" in plain:
        return "must not contain an escaped slash"
    if any(segment in (".", "..") for segment in plain.split("/")):
        return 'must not contain "." or ".." segments, which are resolved in requests'
    return ""


def normalize_path(value: str) -> str:
    """Return the value as the data plane normalises requests (csrc/path.h)."""
    return _ESCAPE.sub(_normalize_escape, value) if "%" in value else value


def strip_slash(value: str) -> str:
    """Return a prefix without its trailing slash; "/" becomes ""."""
    return value[:-1] if value.endswith("/") else value


def _normalize_escape(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if char in _UNRESERVED else found[0].upper()
