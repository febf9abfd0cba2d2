"""The access log under hostile input: one whole line of JSON per request, every client byte escaped, the right facts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.ports import free_port
from wire.harness.site import Site


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    rules = [
        make.rule("refused", matches=[make.path("/refused")]),
        make.rule("origin", name="main"),
    ]
    objects = [
        make.route("all", rules, ["a"]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
        *make.service("refused", [("127.0.0.1", free_port())]),
    ]
    with Site(objects) as running:
        yield running


def lines_about(site: Site, mark: str, count: int = 1) -> list[dict[str, Any]]:
    """Wait for the lines of requests whose path holds the mark."""
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        text = site.access_log
        whole = text[: text.rfind("\n") + 1]
        found[:] = [json.loads(line) for line in whole.splitlines() if mark in line]
        return len(found) >= count

    site.wait_until(enough, f"{count} lines about {mark}")
    assert len(found) == count
    return found


def test_a_served_request(site: Site, origin: RecordingOrigin) -> None:
    """Who, what, where to, how long."""
    origin.take()
    site.ask("POST", "/served?q=1", headers=[("User-Agent", "test/1")], body=b"12345")
    origin.turn()
    (message,) = origin.take().messages
    (line,) = lines_about(site, "/served")
    assert line["client"] == "127.0.0.1" and line["method"] == "POST" and line["host"] == "a"
    assert line["path"].startswith("/served") and line["status"] == 200
    assert line["route"] == "default/all" and line["rule"] in (1, "main")
    assert line["backend"] == "service/default/origin/80"
    assert line["endpoint"] == f"127.0.0.1:{origin.port}"
    assert line["request_id"].encode() == message.value(b"x-request-id")
    assert line["user_agent"] == "test/1"
    assert line["bytes_received"] >= 5 and line["bytes_sent"] > 0
    assert 0 <= line["upstream_ms"] <= line["duration_ms"] + 1


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [("/l-none", "b", 404), ("/refused/l", "a", 503), ("/l%2Fx", "a", 307)],
)
def test_own_answers_are_logged_with_a_reason(
    target: str, host: str, status: int, site: Site
) -> None:
    """The flags say why the proxy answered by itself."""
    site.ask("GET", target, host)
    (line,) = lines_about(site, target)
    assert line["status"] == status
    assert line["flags"] or status == 307


HOSTILE = [
    b'"', b"\\", b"\xff\xfe", b"\xe2\x80\xa8", b"</script>", b"%0a%0d", b"{}", b"\t", b'\\u0000","status":200,"x":"',
    b"\xed\xa0\x80", b"\xc3\x28", b"$(reboot)", b"\x1b".replace(b"\x1b", b"%1b"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_bytes_stay_inside_their_field(number: int, site: Site) -> None:
    """A client cannot forge a field, a line, or break the JSON."""
    mark = f"/hostile-{number}"
    data = b"GET %b HTTP/1.1\r\nHost: a\r\nUser-Agent: x%by\r\n\r\n" % (
        mark.encode(),
        HOSTILE[number],
    )
    with Client(("127.0.0.1", site.port)) as client:
        client.expect("GET")
        client.send(data)
        assert client.read_response().status == 200
    (line,) = lines_about(site, mark)
    assert line["status"] == 200 and line["method"] == "GET"
    assert line["user_agent"].startswith("x") and line["user_agent"].endswith("y")


def test_every_request_has_its_line(site: Site) -> None:
    """A thousand requests, a thousand lines, in whole."""
    with site.client() as client:
        for number in range(1000):
            client.request("GET", f"/counted/{number}")
    lines = lines_about(site, "/counted/", 1000)
    assert {line["path"] for line in lines} == {f"/counted/{number}" for number in range(1000)}
    assert len({line["request_id"] for line in lines}) == 1000


def test_long_values_are_cut(site: Site) -> None:
    """A line stays short whatever a client sends."""
    site.ask("GET", "/cut", headers=[("User-Agent", "z" * 20_000)])
    (line,) = lines_about(site, "/cut")
    assert len(json.dumps(line)) < 4096
