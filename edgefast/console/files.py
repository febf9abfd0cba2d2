"""Files: the page itself, read once, with the headers that keep a browser from doing anything else with it.

In: the folder `static` beside this module. Out: replies by path. Everything the page needs is here; the policy forbids
every other origin, inline code and inline styles, and turning text into markup (trusted types). Must never: follow a path
that somebody asked for.
"""

from __future__ import annotations

from pathlib import Path

from edgefast.daemon.httpserver import Reply

PREFIX = "/console/"
_FOLDER = Path(__file__).with_name("static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)


def read_files() -> dict[str, Reply]:
    """Return a reply for every file, by path; the page is at the prefix itself."""
    found = {}
    for file in sorted(_FOLDER.iterdir()):
        type_ = _TYPES.get(file.suffix)
        if type_ is not None:
            name = "" if file.name == "index.html" else file.name
            found[PREFIX + name] = Reply(200, file.read_bytes(), type_, HEADERS)
    return found
