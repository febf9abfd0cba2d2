"""What the proxy adds, replaces and takes away on both sides (spec 4; measured answers of the established data plane)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import pytest

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
OWN_ID = "0b5f3a52-9a4e-4d5b-8d2e-0c5d3e3a9f11"


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    with RecordingOrigin() as running:
        yield running


@pytest.fixture(scope="module")
def site(origin: RecordingOrigin) -> Iterator[Site]:
    rules = [
        make.rule("origin", matches=[make.path("/three")], timeouts={"request": "3s"}),
        make.rule("origin", matches=[make.path("/none")], timeouts={"request": "0s"}),
        make.rule("origin"),
    ]
    objects = [
        make.route("all", rules, hostnames=["a", "*.b.test"]),
        *make.service("origin", [("127.0.0.1", origin.port)]),
    ]
    with Site(objects) as running:
        yield running


def backend_saw(site: Site, origin: RecordingOrigin, target: str = "/", **sent: str) -> Message:
    """Send one GET with headers (underscores stand for dashes) and return what the backend got."""
    origin.take()
    headers = [(name.replace("_", "-"), value) for name, value in sent.items()]
    assert site.ask("GET", target, headers=headers).status == 200
    origin.turn()
    (message,) = origin.take().messages
    return message


def one(message: Message, name: str) -> str | None:
    """A header's only value as text."""
    value = message.value(name.encode())
    return None if value is None else value.decode()


def test_plain_request_from_an_internal_client(site: Site, origin: RecordingOrigin) -> None:
    """All the headers a backend is promised, once each."""
    message = backend_saw(site, origin)
    assert one(message, "host") == "a"
    assert one(message, "x-forwarded-for") == "127.0.0.1"
    assert one(message, "x-forwarded-proto") == "http"
    assert UUID4.fullmatch(one(message, "x-request-id") or "")
    assert one(message, "x-edge-internal") == "true"
    assert one(message, "x-edge-external-address") is None
    assert one(message, "x-edge-expected-rq-timeout-ms") == "15000"
    assert one(message, "via") is None


def test_request_that_came_through_another_proxy(site: Site, origin: RecordingOrigin) -> None:
    """With x-forwarded-for the client is external: its own claims are replaced."""
    message = backend_saw(
        site, origin, x_forwarded_for="8.8.8.8", x_request_id=OWN_ID, x_edge_internal="true",
        x_edge_expected_rq_timeout_ms="1", x_forwarded_proto="https",
        x_edge_external_address="6.6.6.6",
    )  # fmt: skip
    assert (one(message, "x-forwarded-for") or "").replace(" ", "") == "8.8.8.8,127.0.0.1"
    assert one(message, "x-forwarded-proto") == "http"
    assert one(message, "x-request-id") != OWN_ID
    assert UUID4.fullmatch(one(message, "x-request-id") or "")
    assert one(message, "x-edge-internal") is None
    assert one(message, "x-edge-external-address") == "127.0.0.1"
    assert one(message, "x-edge-expected-rq-timeout-ms") == "15000"


def test_request_id_of_an_internal_client_is_kept(site: Site, origin: RecordingOrigin) -> None:
    """Internal callers may correlate."""
    assert one(backend_saw(site, origin, x_request_id=OWN_ID), "x-request-id") == OWN_ID


def test_request_ids_differ(site: Site, origin: RecordingOrigin) -> None:
    """Also on one connection."""
    origin.take()
    with site.client() as client:
        for _ in range(50):
            client.request("GET", "/")
    origin.turn()
    seen = {one(message, "x-request-id") for message in origin.take().messages}
    assert len(seen) == 50


def test_claims_of_an_internal_client_are_removed(site: Site, origin: RecordingOrigin) -> None:
    """x-edge-internal and x-edge-external-address never come from outside."""
    message = backend_saw(site, origin, x_edge_internal="false", x_edge_external_address="1.2.3.4")
    assert one(message, "x-edge-internal") == "true"
    assert one(message, "x-edge-external-address") is None


def test_several_forwarded_for_lines_are_one_list(site: Site, origin: RecordingOrigin) -> None:
    """The peer stands last, the rest in the order it came."""
    origin.take()
    headers = [("X-Forwarded-For", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]
    site.ask("GET", "/", headers=headers)
    origin.turn()
    (message,) = origin.take().messages
    joined = b",".join(message.values(b"x-forwarded-for")).replace(b" ", b"")
    assert joined == b"1.1.1.1,2.2.2.2,3.3.3.3,127.0.0.1"


@pytest.mark.parametrize(("target", "value"), [("/three", "3000"), ("/none", None), ("/", "15000")])
def test_expected_timeout_is_the_routes(
    target: str, value: str | None, site: Site, origin: RecordingOrigin
) -> None:
    """Absent when the timeout is switched off."""
    assert one(backend_saw(site, origin, target), "x-edge-expected-rq-timeout-ms") == value


@pytest.mark.parametrize("host", ["a:8080", "A", "x.y.b.test", "X.b.test:1"])
def test_host_reaches_the_backend_as_it_came(
    host: str, site: Site, origin: RecordingOrigin
) -> None:
    """Matching ignores port and case, forwarding does not touch them."""
    origin.take()
    assert site.ask("GET", "/", host).status == 200
    origin.turn()
    (message,) = origin.take().messages
    assert one(message, "host") == host


def test_end_to_end_headers_pass_both_ways(site: Site, origin: RecordingOrigin) -> None:
    """Unknown headers, cookies, authorization, conditional and range headers are nobody's business."""
    sent = {
        "accept": "*/*", "accept_encoding": "gzip, br", "authorization": "Bearer x",
        "cookie": "a=b; c=d", "range": "bytes=0-1", "if_none_match": '"x"', "user_agent": "t/1",
        "x_any": "1", "max_forwards": "3",
        "content_type": "text/plain", "proxy_authorization": "Basic eDp5", "dnt": "1",
    }  # fmt: skip
    message = backend_saw(site, origin, **sent)
    for name, value in sent.items():
        assert one(message, name.replace("_", "-")) == value


def test_answer_of_the_backend(site: Site, origin: RecordingOrigin) -> None:
    """server names the proxy, date is added, the upstream's time is told, all else passes."""
    headers = [("server", "backend/1"), ("x-any", "1"), ("set-cookie", "a"), ("set-cookie", "b"),
               ("www-authenticate", "Basic"), ("content-encoding", "gzip"), ("vary", "*")]  # fmt: skip
    with origin.answering(lambda message: response(b"x", 401, headers)):
        answer = site.ask()
    assert answer.status == 401 and answer.body == b"x"
    assert answer.value("server") == "edgefast"
    assert re.fullmatch(r"\d+", answer.value("x-edge-upstream-service-time") or "")
    assert parsedate_to_datetime(answer.value("date") or "")
    assert answer.values("set-cookie") == ["a", "b"]
    assert answer.value("x-any") == "1" and answer.value("vary") == "*"
    assert answer.value("www-authenticate") == "Basic"


def test_date_of_the_backend_is_kept(site: Site, origin: RecordingOrigin) -> None:
    """A second Date would be wrong, a replaced one would spoil caches."""
    date = "Sun, 06 Nov 1994 08:49:37 GMT"
    with origin.answering(lambda message: response(b"", 200, [("date", date)])):
        assert site.ask().values("date") == [date]


def test_own_answers_have_no_upstream_time(site: Site) -> None:
    """Only proxied answers tell it."""
    answer = site.ask(host="nobody")
    assert answer.status == 404
    assert answer.value("x-edge-upstream-service-time") is None
    assert answer.value("server") == "edgefast"
