"""Cases of the v1.7.0 suite for HTTPRoute, by name, against a controller and its proxies."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from cluster.controller_bench import Bench, wait_for
from cluster.controller_parts import own_address
from cluster.newer import attach, bring_up, grow_older
from cluster.world.apiserver import ApiServer
from wire.harness.ports import free_port

EXACT, WILD = "abc.example.com", "*.example.com"
#: Listener -> its hostname.
LISTENERS = {
    "any": "",
    "exact": EXACT,
    "exact-path": EXACT,
    "exact-header": EXACT,
    "wild": WILD,
    "wild-path": WILD,
    "wild-header": WILD,
}


class Answering:
    """An origin that says its name and the path, and fails as often as a request wants."""

    def __init__(self, name: str) -> None:
        seen: Counter[str] = Counter()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                asked = {key: one[0] for key, one in parse_qs(urlsplit(self.path).query).items()}
                seen[asked.get("id", "")] += 1
                failing = seen[asked.get("id", "")] <= int(asked.get("after", 0))
                time.sleep(float(asked.get("wait" if failing else "delay", 0)))
                body = f"{name} {urlsplit(self.path).path}".encode()
                self.send_response(int(asked["code"]) if failing else 200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A proxy whose timeout is over goes away; nobody has to be told."""

        self.seen = seen
        self._server = Quiet((own_address(), 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def origin() -> Iterator[Answering]:
    made = Answering("one")
    yield made
    made.close()


@pytest.fixture(scope="module")
def bench(newest: ApiServer, origin: Answering) -> Iterator[Bench]:
    second = Answering("two")
    with Bench(newest) as made:
        made.add_class()
        made.ports = bring_up(made, "gw", LISTENERS)
        made.port = made.ports["any"]
        made.add_backend("v1", origin.port)
        made.add_backend("v2", second.port)
        yield made
    second.close()


def to(backend: str, **more: Any) -> dict[str, Any]:
    """Return a rule."""
    return {"backendRefs": [{"name": backend, "port": 80}], **more}


def path(value: str, kind: str = "PathPrefix") -> dict[str, Any]:
    return {"path": {"type": kind, "value": value}}


def answer_of(bench: Bench, listener: str, target: str, host: str, **headers: str) -> Any:
    """Ask with headers; returns status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", bench.ports[listener], timeout=10)
    try:
        connection.request("GET", target, headers={"Host": host, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as error:
        return 0, str(error)
    finally:
        connection.close()


def expect(
    bench: Bench, listener: str, target: str, want: Any, host: str = "a", **headers: str
) -> None:
    """Wait for an answer."""
    wait_for(
        f"{host}{target} at {listener} answers {want}",
        lambda: answer_of(bench, listener, target, host, **headers) == want,
    )


def test_rule_order(bench: Bench) -> None:
    """HTTPRouteRuleOrder: of rules with equal matches the first has the request, also if it can only answer 500."""
    version = {"name": "x-version", "value": "one"}
    color = {"name": "x-color", "value": "blue"}
    at = path("/rule-order", "Exact")
    spec = attach(
        "gw",
        "any",
        to("v1", matches=[{**at, "headers": [version, color]}]),
        to("v2", matches=[{**at, "headers": [color, version]}]),
    )
    bench.apply("HTTPRoute", "rule-order", spec)
    same = [path("/rule-order-invalid", "Exact")]
    broken = attach("gw", "any", to("nonexistent", matches=same), to("v2", matches=same))
    bench.apply("HTTPRoute", "rule-order-invalid", broken)
    both = {"x-color": "blue", "x-version": "one"}
    expect(bench, "any", "/rule-order", (200, "one /rule-order"), **both)
    expect(bench, "any", "/rule-order-invalid", (500, ""))
    bench.expect_condition("HTTPRoute", "rule-order", "ResolvedRefs", "True")
    bench.expect_condition(
        "HTTPRoute", "rule-order-invalid", "ResolvedRefs", "False", "BackendNotFound"
    )


def test_backend_url_rewrite(bench: Bench) -> None:
    """HTTPRouteBackendURLRewrite."""

    def rewrite(kind: str, field: str, value: str) -> list[Any]:
        one = {"type": "URLRewrite", "urlRewrite": {"path": {"type": kind, field: value}}}
        return [{"name": "v1", "port": 80, "filters": [one]}]

    full = rewrite("ReplaceFullPath", "replaceFullPath", "/rewritten-full")
    prefix = rewrite("ReplacePrefixMatch", "replacePrefixMatch", "/rewritten-prefix")
    spec = attach(
        "gw",
        "any",
        {"matches": [path("/full")], "backendRefs": full},
        {"matches": [path("/prefix")], "backendRefs": prefix},
    )
    bench.apply("HTTPRoute", "backend-url-rewrite", spec)
    expect(bench, "any", "/full/original", (200, "one /rewritten-full"))
    expect(bench, "any", "/prefix/original", (200, "one /rewritten-prefix/original"))


def test_retry_connection_error(bench: Bench) -> None:
    """HTTPRouteRetryConnectionError: an endpoint where nobody listens costs nobody an answer; `attempts: 0` tries once."""
    for name, attempts in (("once", 0), ("many", 100)):
        bench.add_backend(f"half-{name}", free_port(), bench.add_origin(name).port)
        rule = to(f"half-{name}", matches=[path(f"/{name}")], retry={"attempts": attempts})
        bench.apply("HTTPRoute", f"retry-{name}", attach("gw", "any", rule))
    # Endpoints take turns, and the broken one is left alone after five failures in a row.
    seen: set[int] = set()

    def both() -> bool:
        seen.add(answer_of(bench, "any", "/once", "a")[0])
        return {200, 503} <= seen

    wait_for("some requests fail that are tried once", both)
    expect(bench, "any", "/many", (200, "many"))
    answers = [answer_of(bench, "any", "/many", "a") for _ in range(20)]
    assert set(answers) == {(200, "many")}


#: Three times what the suite has: other programs use this machine, too.
RETRIES = {
    "request": ({"request": "1500ms"}, 5),
    "backend": ({"backendRequest": "1500ms", "request": "15s"}, 3),
}


@pytest.mark.parametrize(
    ("route", "query", "status", "tries"),
    [
        ("request", "after=1", 200, 2),
        ("request", "after=2&wait=0.9", 504, 2),
        ("request", "after=0&delay=3", 504, 1),
        ("backend", "after=2&wait=0.1&delay=0.1", 200, 3),
        ("backend", "after=0&delay=3", 504, 1),
        ("backend", "after=9", 500, 4),
    ],
)
def test_retry_with_timeouts(
    bench: Bench, origin: Answering, route: str, query: str, status: int, tries: int
) -> None:
    """HTTPRouteRetryWithRequestTimeout and HTTPRouteRetryWithBackendTimeout: retries while the timeouts permit."""
    timeouts, attempts = RETRIES[route]
    rule = to(
        "v1",
        matches=[path(f"/retry-{route}")],
        retry={"codes": [500], "attempts": attempts, "backoff": "10ms"},
        timeouts=timeouts,
    )
    bench.apply("HTTPRoute", f"retries-{route}", attach("gw", "any", rule))
    expect(bench, "any", f"/retry-{route}", (200, f"one /retry-{route}"))
    key = f"{route}-{status}-{tries}"
    target = f"/retry-{route}?code=500&id={key}&{query}"
    assert answer_of(bench, "any", target, "a")[0] == status
    wait_for("all tries have come", lambda: origin.seen[key] >= tries)
    assert origin.seen[key] == tries


HEADER_A = [{"name": "Header-A", "value": "A"}]
HEADER_B = [{"name": "Header-B", "value": "B"}]
LONGER = path("/path/prefix")


def test_multiple_routes_attachment_same_hostname_intersection(bench: Bench) -> None:
    """HTTPRouteMultipleRoutesAttachmentSameHostnameIntersection: the names that routes have decide, not what they share with the listener's."""
    older = {"exact": WILD, "wild": "*.com"}
    newer = {"exact": EXACT, "wild": WILD}
    made = []
    for listener, hostname in older.items():
        at = {"": [], "-path": [LONGER], "-header": [{**LONGER, "headers": HEADER_B}]}
        for suffix, matches in at.items():
            rule = to("v1", **({"matches": matches} if matches else {}))
            spec = attach("gw", f"{listener}{suffix}", rule, hostname=hostname)
            made.append(bench.apply("HTTPRoute", f"older-{listener}{suffix}", spec))
    grow_older(*made)
    for listener, hostname in newer.items():
        at = {"": [], "-path": [path("/path")], "-header": [{**path("/path"), "headers": HEADER_A}]}
        for suffix, matches in at.items():
            rule = to("v2", **({"matches": matches} if matches else {}))
            spec = attach("gw", f"{listener}{suffix}", rule, hostname=hostname)
            bench.apply("HTTPRoute", f"newer-{listener}{suffix}", spec)
    target = "/path/prefix/longer"
    for listener in older:
        expect(bench, listener, "/", (200, "two /"), EXACT)
        expect(bench, f"{listener}-path", target, (200, f"two {target}"), EXACT)
        both, only = {"Header-A": "A", "Header-B": "B"}, {"Header-B": "B"}
        expect(bench, f"{listener}-header", target, (200, f"two {target}"), EXACT, **both)
        expect(bench, f"{listener}-header", target, (200, f"one {target}"), EXACT, **only)
        for name in (f"older-{listener}", f"newer-{listener}"):
            bench.expect_condition("HTTPRoute", name, "Accepted", "True")
