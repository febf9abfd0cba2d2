"""Filters from YAML to the backend and the client. Their rules: core/exchange/test_filters."""

from __future__ import annotations

import json
from typing import Any

from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import shared


def edit(kind: str, name: str) -> make.Object:
    """A RequestHeaderModifier or ResponseHeaderModifier that sets a header."""
    return {"type": kind, kind[0].lower() + kind[1:]: {"set": [{"name": name, "value": "1"}]}}


def rule(path: str, *filters: make.Object, **fields: Any) -> make.Object:
    return {"matches": [make.path(path)], "filters": list(filters), **fields}


def test_filters_of_all_kinds() -> None:
    """Edits, a rewrite and CORS reach the backend and the client; a redirect is answered by the proxy."""
    to = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}
    page = "https://a.test"
    filters = [
        edit("RequestHeaderModifier", "X-Asked"),
        edit("ResponseHeaderModifier", "X-Answered"),
        {"type": "URLRewrite", "urlRewrite": {"hostname": "new.test", "path": to}},
        {"type": "CORS", "cors": {"allowOrigins": [page], "allowMethods": ["PUT"], "maxAge": 600}},
    ]
    redirect = {"type": "RequestRedirect", "requestRedirect": {"path": to, "statusCode": 301}}
    with RecordingOrigin(echo("one")) as origin:
        objects = [
            make.route(
                "all",
                [
                    rule("/old", *filters, backendRefs=[make.backend_ref("one")]),
                    rule("/r", redirect),
                ],
            ),
            *make.service("one", [("127.0.0.1", origin.port)]),
        ]
        with shared(objects) as site:
            got = site.ask("GET", "/old/x?q", headers=[("Origin", page)])
            seen = json.loads(got.body)
            headers = dict(seen["headers"])
            assert seen["target"] == "/new/x?q"
            assert (headers["x-asked"], headers["host"]) == ("1", "new.test")
            assert got.value("x-answered") == "1"
            assert got.value("access-control-allow-origin") == page
            asked = [("Origin", page), ("Access-Control-Request-Method", "PUT")]
            preflight = site.ask("OPTIONS", "/old", headers=asked)
            assert (preflight.status, preflight.body) == (204, b"")
            assert preflight.value("access-control-max-age") == "600"
            got = site.ask("GET", "/r/x", "[::1]:9999")
            assert (got.status, got.value("location")) == (301, f"http://[::1]:{site.port}/new/x")
