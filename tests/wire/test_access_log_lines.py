"""Access log lines as an EdgeProxy asks for them: text and JSON of a real proxy, changed while it serves, and nothing that breaks out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.site import Site

#: As people paste it from Envoy Gateway's manual.
PASTED = (
    '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% '
    '%BYTES_RECEIVED% %BYTES_SENT% %DURATION% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" '
    '"%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"\n'
)
LINE = re.compile(
    r'\[[-0-9TZ:.]{24}\] "(\w+) (\S+) HTTP/1\.1" (\d{3}) (\S+) \d+ \d+ \d+ "127\.0\.0\.1" "((?:[^"\\]|\\.)*)" "[^"]*" "[^"]*" "[^"]*"'
)


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


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


@pytest.fixture(scope="module")
def text_site(origin: RecordingOrigin) -> Iterator[Site]:
    with make_site(origin, {"template": PASTED}) as running:
        yield running


def test_a_pasted_line(text_site: Site) -> None:
    text_site.ask("GET", "/pasted?q=1", headers=[("User-Agent", "test/1")])
    text_site.ask("GET", "/pasted-none", "b")
    (served,) = lines_about(text_site, "/pasted?")
    (missed,) = lines_about(text_site, "/pasted-none")
    for line, expected in (
        (served, ("GET", "/pasted?q=1", "200", "-", "test/1")),
        (missed, ("GET", "/pasted-none", "404", "NR", "-")),
    ):
        found = LINE.fullmatch(line)
        assert found and found.groups() == expected, line


HOSTILE = [
    b'"', b"\\", b"\xff\xfe", b"%0a%0d", b"\t", b'" "" "" "x" 200', b'\\"', b"\xe2\x80\xa8", b"%REQ(:METHOD)%", b"%%", b"\\n", b"\\x0a",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_bytes_stay_inside_their_string(number: int, text_site: Site) -> None:
    mark = f"/hostile-{number}"
    head = b"GET %b HTTP/1.1\r\nHost: a\r\nUser-Agent: x%by\r\n\r\n"
    with Client(("127.0.0.1", text_site.port)) as client:
        client.expect("GET")
        client.send(head % (mark.encode(), HOSTILE[number]))
        assert client.read_response().status == 200
    (line,) = lines_about(text_site, mark)
    found = LINE.fullmatch(line)
    assert found, line
    assert line.isascii() and line.isprintable()
    back = re.sub(
        rb"\\(x[0-9a-f]{2}|.)",
        lambda one: bytes([int(one[1][1:], 16)]) if len(one[1]) == 3 else one[1],
        found[5].encode(),
    )
    assert back == b"x" + HOSTILE[number] + b"y"


def test_messages_that_are_no_requests_have_their_line(text_site: Site) -> None:
    before = text_site.access_log.count("\n")
    with Client(("127.0.0.1", text_site.port)) as client:
        client.expect("GET")
        client.send(b'GET /"\n"200 HTTP/1.1\r\n\r\n')
        assert client.read_response().status == 400
    text_site.wait_until(lambda: text_site.access_log.count("\n") > before, "a line")
    assert re.fullmatch(
        r'\[[-0-9TZ:.]{24}\] "- - -" 400 DPE - - - "-" "-" "-" "-" "-"',
        text_site.access_log.splitlines()[-1],
    )


def test_a_thousand_requests_a_thousand_lines(text_site: Site) -> None:
    with text_site.client() as client:
        for number in range(1000):
            client.request("GET", f"/counted/{number}")
    lines = lines_about(text_site, "/counted/", 1000)
    assert sorted(int(LINE.fullmatch(line)[2].split("/")[2]) for line in lines) == list(range(1000))  # type: ignore[index]


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
