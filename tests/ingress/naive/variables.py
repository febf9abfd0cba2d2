"""Variables: what nginx puts in place of them."""

from __future__ import annotations

import re
from urllib.parse import quote

from ingress.message import Request
from ingress.naive.client import name_of_host


def expand(text: str, request: Request) -> str:
    """Variables in auth-url, auth-signin, redirects and snippets: `$host`, `$http_host`, `$scheme`, `$request_method`, `$request_uri`,
    `$escaped_request_uri`, `$remote_addr`."""
    values = {
        "host": name_of_host(request.host),
        "http_host": request.host,
        "scheme": request.scheme,
        "request_method": request.method,
        "request_uri": request.target,
        "escaped_request_uri": component(request.target),
        "remote_addr": request.peer,
    }
    return re.sub(r"\$([a-z_]+)", lambda found: values[found[1]], text)


def component(text: str) -> str:
    """As `set_escape_uri` of nginx' module set-misc 0.33: unlike encodeURIComponent it leaves `@`, `$`, `,`, `|` and the backquote."""
    return quote(text.encode("latin-1"), safe="-_.~!*'()@$,|`")
