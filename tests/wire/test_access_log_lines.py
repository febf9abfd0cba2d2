"""Access log lines of an EdgeProxy, changed while it serves. Templates and escaping: core/telemetry/test_logprogram and test_logvalues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site


def objects(origin: RecordingOrigin) -> list[make.Object]:
    return [
        make.route("all", [make.rule("origin")], ["a"]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
    ]


def make_site(origin: RecordingOrigin, log: Mapping[str, Any]) -> Site:
    site = Site(objects(origin), settings={"accessLog": log})
    site.text_log = "template" in log
    return site


def lines_about(site: Site, mark: str, count: int = 1) -> list[str]:
    found: list[str] = []

    def enough() -> bool:
        text = site.access_log
        found[:] = [line for line in text[: text.rfind("\n") + 1].splitlines() if mark in line]
        return len(found) >= count

    site.wait_until(enough, f"{count} lines about {mark}")
    return found


def test_lines_change_while_it_serves(origin: RecordingOrigin) -> None:
    """Text, then JSON, then errors only, then a template with a slip: the default line, and a problem."""
    with make_site(origin, {"template": "text %REQ(:PATH)%"}) as site, site.client() as client:

        def use(log: Mapping[str, Any]) -> None:
            site._proxy = [make.edge_proxy("web", accessLog=log)]
            site.apply(site.with_gateway(objects(origin)))

        client.request("GET", "/one")
        assert lines_about(site, "/one") == ["text /one"]
        use({"json": {"code": "%RESPONSE_CODE%", "what": "%REQ(:METHOD)% %REQ(:PATH)%"}})
        client.request("GET", "/two")
        assert lines_about(site, "/two") == ['{"code":200,"what":"GET /two"}']
        use({"fields": ["path", "status"], "filter": {"minStatus": 404}})
        client.request("GET", "/three")
        site.ask("GET", "/four", "b")
        assert lines_about(site, "/four") == ['{"path":"/four","status":404}']
        use({"template": "%RESPONSE_COD%"})
        client.request("GET", "/five")
        (line,) = lines_about(site, "/five")
        assert json.loads(line)["route"] == "default/all"
        site.wait_until(lambda: "did you mean RESPONSE_CODE?" in site.log, "the problem")
        assert "/three" not in site.access_log
