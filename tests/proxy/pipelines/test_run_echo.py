"""`edgefast run --backend --echo`: Services without endpoints are served, also one that a reload adds."""

from __future__ import annotations

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def test_services_without_endpoints_are_served() -> None:
    port = free_port()
    front = make.gateway("front", [make.listener(port)])
    web = [
        make.route(
            name,
            [make.rule(name, matches=[make.path(f"/{name}")])],
            parent="front",
        )
        for name in ("web", "own", "new")
    ]
    objects = [front, *web, *make.service("web", []), *make.service("own", [])]
    with RecordingOrigin() as origin:
        arguments = ("--echo", "--backend", f"default/own=127.0.0.1:{origin.port}")
        with Gateway(objects, arguments=arguments) as gateway:
            address = ("127.0.0.1", port)
            status, page = gateway.get(address, "/web/a?b", "POST")
            assert status == 200
            assert page.startswith(
                b"service: default/web\nmethod: POST\npath: /web/a?b\nheaders:\n  "
            )
            assert gateway.get(address, "/own")[0] == 200
            assert [one.target for one in origin.take().messages] == [b"/own"]
            assert gateway.get(address, "/new")[0] == 500
            gateway.apply([*objects, *make.service("new", [])])
            assert b"service: default/new\n" in gateway.get(address, "/new")[1]
