"""Path: checks a path that a user writes and normalises it to the form of requests.

In: the value of a path match, rewrite or redirect. Out: its normal form, or what is wrong with it.
Requests are normalised before matching (RFC 3986 6.2.2: escapes of unreserved characters decoded,
others in upper-case hex). A value that is not normalised would never match.
Must never: let a space, a control character, "?" or "#" through; values end up in request lines.
"""

from __future__ import annotations

import re

from edgefast.api.validation.httproute import check_literal

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Most segments of a prefix: EF_MAX_SEGMENTS - 1 in csrc/limits.h, probes per request path.
MAX_SEGMENTS = 63


def check_path(value: str) -> str:
    """Return what is wrong with a literal path, "" when it is fit to match or to send.

    That is what the API says of paths, asked of the normal form as well: an escape hides nothing.
    """
    wrong = check_literal(value) or check_literal(normalize_path(value))
    if not wrong and "%5C" in normalize_path(value):
        wrong = (
            "must not contain %5C"  # requests with an escaped backslash are refused or redirected
        )
    return wrong


def check_segments(prefix: str) -> str:
    """Return what is wrong with the length of a prefix, "" when the data plane can look it up."""
    if strip_slash(prefix).count("/") > MAX_SEGMENTS:
        return f"must have at most {MAX_SEGMENTS} segments"
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
