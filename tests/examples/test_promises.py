"""Each curl line in the comment of an example gives the status, the service and the fields that stand behind it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.running import EXAMPLES, Example, curl, get, leave_the_hour, read_promises
from wire.harness.gateway import Gateway

pytestmark = pytest.mark.wire

NAMES = sorted(path.name for path in EXAMPLES.glob("*.yaml"))


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Example]:
    """The example of the test, in a gateway that serves all examples one after the other."""
    name = request.param
    more: tuple[Path, ...] = ()
    if name == "tls.yaml":
        more = (tmp_path / "certificates.yaml",)
        made = ["shop-cert=shop.example.com", "api-cert=api.example.com"]
        script = [sys.executable, str(EXAMPLES / "make_cert.py"), *made]
        more[0].write_bytes(subprocess.run(script, check=True, capture_output=True).stdout)
    if name == "tracing.yaml":  # the exporter keeps its connection to a collector that has ended
        with Example(name, tmp_path, more) as example:
            yield example
        return
    if name == "ingress.yaml":  # the ports of Ingresses are options
        ports = ("--ingress-http", "8080", "--ingress-https", "8443")
        with Example(name, tmp_path, options=ports) as example:
            yield example
        return
    gateway = Gateway([])
    gateway.text_log = True
    with gateway, Example(name, tmp_path, more, gateway) as example:
        yield example


@pytest.mark.parametrize("run", NAMES, indirect=True)
def test_promises(run: Example) -> None:
    assert run.promises, f"{run.file.name} has no curl line in its comment"
    if run.file.name == "ratelimit.yaml":
        leave_the_hour()
    for promise in run.promises:
        status, headers, body = curl(promise.command)
        shown = f"{promise.command}\n{status} {headers}\n{body.decode(errors='replace')}\n{run.log}"
        assert status == promise.status, shown
        told = json.loads(body) if promise.service or body.startswith(b"{") else {}
        if promise.service:
            assert told["service"] == promise.service, shown
        for name, value in promise.fields:
            seen = told.get("headers", {})  # by the backend
            found = told[name] if name in told else headers.get(name, seen.get(name, ""))
            assert found == value, shown


def test_every_curl_line_is_a_promise() -> None:
    for name in NAMES:
        text = (EXAMPLES / name).read_text()
        lines = [line for line in text.splitlines() if line.startswith("#   curl ")]
        assert len(lines) == len(read_promises(text)), f"{name}: a curl line without its outcome"


def test_quickstart_shows_the_headers_that_the_gateway_adds(tmp_path: Path) -> None:
    """As its reader runs it: in a separate process, with the origins."""
    with Example("quickstart.yaml", tmp_path) as run:
        check_quickstart(run)


def check_quickstart(run: Example) -> None:
    status, headers, body = curl(f"curl http://localhost:{run.ports[8080]}/api")
    seen = json.loads(body)["headers"]
    assert status == 200
    assert seen["x-forwarded-proto"] == "http"
    assert seen["x-edge-expected-rq-timeout-ms"] == "15000"
    assert {"x-forwarded-for", "x-request-id"} <= seen.keys()
    assert headers["server"] == "edgefast"
    assert int(headers["x-edge-upstream-service-time"]) >= 0


@pytest.mark.parametrize("run", ["canary.yaml"], indirect=True)
def test_canary_gets_one_of_ten(run: Example) -> None:
    services = [json.loads(get(run.ports[8080], "/")[1])["service"] for _ in range(200)]
    assert services.count("web-canary") == pytest.approx(20, abs=2)
    assert services.count("web") == 200 - services.count("web-canary")


@pytest.mark.parametrize("run", ["mirroring.yaml"], indirect=True)
def test_mirror_gets_all_half_or_none(run: Example) -> None:
    for path, times in (("/all/a", 20), ("/half/a", 40), ("/none", 20)):
        for _ in range(times):
            status, body = get(run.ports[8080], path)
            assert (status, json.loads(body)["service"]) == (200, "web")
    seen = _wait_for_mirrors(run, "/all/a", 20)
    assert seen.count("/all/a") == 20
    # Half of 40: a fair coin leaves this range once in 10 million runs, all or none never get into it.
    assert 5 <= seen.count("/half/a") <= 35
    assert seen.count("/none") == 0


def _wait_for_mirrors(run: Example, path: str, count: int) -> list[str]:
    end = time.monotonic() + 30
    while True:
        seen = [item["path"] for item in json.loads(get(run.ports[3002], "/seen")[1])]
        if seen.count(path) >= count or time.monotonic() > end:
            return seen
        time.sleep(0.02)


@pytest.mark.parametrize("run", ["header-routing.yaml"], indirect=True)
def test_headers_are_changed_on_the_way_in(run: Example) -> None:
    command = f"curl http://localhost:{run.ports[8080]}/ -H 'x-debug: 1' -H 'x-tenant: mine' -H 'x-seen-by: me'"
    seen = json.loads(curl(command)[2])["headers"]
    assert seen["x-tenant"] == "public"
    assert seen["x-seen-by"].replace(" ", "") == "me,edge"
    assert "x-debug" not in seen


@pytest.mark.parametrize("run", ["backends.yaml"], indirect=True)
def test_all_endpoints_of_a_backend_are_used(run: Example) -> None:
    endpoints = {json.loads(get(run.ports[8080], "/")[1])["endpoint"] for _ in range(60)}
    assert endpoints == {f"127.0.0.1:{run.ports[3001]}", f"127.0.0.1:{run.ports[3002]}"}


@pytest.mark.parametrize("run", ["cors.yaml"], indirect=True)
def test_a_preflight_never_reaches_the_backend(run: Example) -> None:
    _, headers, _ = curl(
        f"curl http://localhost:{run.ports[8080]}/ -X OPTIONS -H 'origin: https://app.example.com' "
        "-H 'access-control-request-method: PUT' -H 'access-control-request-headers: x-token'"
    )
    assert headers["access-control-max-age"] == "600"
    assert headers["access-control-allow-credentials"] == "true"
    assert "PUT" in headers["access-control-allow-methods"]
    assert json.loads(get(run.ports[3001], "/seen")[1]) == []
