"""Location template: the Location of a redirect from parts of the request, as core/route/location_template.pyx writes it.

In: a redirect with a template, a request. Out: the Location, "" where there is none. Must never: differ from the engine.
"""

from __future__ import annotations

import re

from edgefast import ir
from edgefast.api.model.regex import search_bytes
from edgefast.explain.head import Head

__all__ = ["expand_location"]

_PART = re.compile(r"\{([A-Za-z]+)\}|\\([0-9])")
_LONGEST = 8192
_UNESCAPED = frozenset(b"-_.~ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


def expand_location(redirect: ir.Redirect, head: Head, *, https: bool) -> str:
    """Return the Location of a request."""
    path = head.path if head.path.startswith(b"/") else b"/"
    groups: tuple[bytes, ...] = ()
    if redirect.pattern:
        found_groups = search_bytes(redirect.pattern, path)
        if found_groups is None:
            return ""
        groups = found_groups
    target = b"/" if head.target in (b"", b"*") else head.target
    values = {
        "authority": head.authority,
        "escapedTarget": _escape(target),
        "host": head.host_sent.lower(),
        "path": path,
        "query": head.query or b"",
        "scheme": b"https" if https else b"http",
        "target": target,
    }

    def replace(found: re.Match[str]) -> str:
        if found[1] is not None:
            return values[found[1]].decode("latin-1")
        at = int(found[2])
        return groups[at].decode("latin-1") if at < len(groups) else ""

    made = _PART.sub(replace, redirect.template)
    if redirect.template.startswith("/") and made[1:2] in ("/", "\\"):
        return ""
    if len(made) > _LONGEST or any(not 32 < ord(char) < 127 for char in made):
        return ""
    if head.query and not redirect.drop_query:
        made += ("&" if "?" in made else "?") + head.query.decode("latin-1")
    return made


def _escape(text: bytes) -> bytes:
    return b"".join(bytes((one,)) if one in _UNESCAPED else b"%%%02X" % one for one in text)
