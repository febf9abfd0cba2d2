"""Page files: the static files of the page, read once, with security headers.

In: the folder `static` beside this module.
Out: replies by path. The folder contains everything that the page needs. The
Content-Security-Policy forbids other origins, inline code and inline styles, and the conversion of
text to markup (trusted types).
Must never: open a path from a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edgefast.console.host_check import is_loopback
from edgefast.httpd.server import Handler, Reply, Request

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


def page_routes() -> Mapping[tuple[str, str], Handler]:
    """Return the routes of the page and its files; its path without the last slash and `/` lead to it."""
    home = Reply(302, b"", headers=(*HEADERS, ("location", PREFIX)))
    found = {("GET", path): _answer_with(reply) for path, reply in read_files().items()}
    found[("GET", "/")] = found[("GET", PREFIX.rstrip("/"))] = _answer_with(home)
    return found


def _answer_with(reply: Reply) -> Handler:
    async def handle(request: Request) -> Reply:
        return refuse_host(request) or reply

    return handle


def refuse_host(request: Request) -> Reply | None:
    """Refuse a request that was not sent to a loopback name: another name may come from an attacker's DNS."""
    if is_loopback(request.host):
        return None
    message = b"refused: the console is at localhost, 127.0.0.1 or [::1] only\n"
    return Reply(421, message, headers=HEADERS)
