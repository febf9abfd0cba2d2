"""The correctness probe before every measurement: does this proxy really do the work?

In: a running proxy. Out: nothing, or `ProbeFailed` naming the first thing that is wrong: status,
body bytes, a header that the origin or the client must have seen, a request that no route owns.
Must never accept "nearly": a proxy that adds fewer headers would win for the wrong reason.
"""

import http.client
import re

from bench import http2_client
from bench.http2_client import Answer
from bench.peers.peer import Running, connect, echo

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
LONG_BODY = 10 << 20
POST_BODY = 10 << 10
ORIGIN_MESSAGE = b"\0\0\0\0\x10" + bytes(16)
UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
#: Sozu's.
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
# Envoy says x-envoy- where the others were told to say x-edge-.
SEEN_BY_ORIGIN = {
    r"x-forwarded-for": r"\S+",
    r"x-forwarded-proto": r"https?",
    r"x-request-id": f"{UUID.pattern}|{ULID.pattern}",
    r"x-(edge|envoy)-(internal|external-address)": r"\S+",
    r"x-(edge|envoy)-expected-rq-timeout-ms": r"15000",
}
SEEN_BY_CLIENT = {
    r"x-(edge|envoy)-upstream-service-time": r"\S+",
    r"server": r"\S+",
}


class ProbeFailed(Exception):
    """The proxy answered, but not as it must; the text says what was wrong."""


def check_proxy(running: Running) -> None:
    """Probe first, middle and last route, both body directions, and what no route owns."""
    if running.setup.scenario.grpc:
        _check_call(running)
        return
    if running.setup.scenario.stream:
        _check_stream(running)
        return
    last = running.setup.scenario.routes - 1
    for index in sorted({0, last // 2, last}):
        _check_route(running, index)
    _check_bodies(running)
    if running.peer.routes:
        _check_unmatched(running)


def _ask(running: Running, method: str, path: str, host: str, body: bytes | None = None) -> Answer:
    if running.setup.scenario.http2:
        try:
            return http2_client.ask(running.setup.port, method, path, host, body=body)
        except OSError as error:
            raise ProbeFailed(f"{method} {path} for {host}: {error!r}") from error
    client = None
    try:
        client = connect(running.setup, host, timeout=15)
        client.request(method, path, body=body, headers={"Host": host})
        response = client.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())
    except (OSError, http.client.HTTPException) as error:
        raise ProbeFailed(f"{method} {path} for {host}: {error!r}") from error
    finally:
        if client is not None:
            client.close()


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ProbeFailed(what)


def _require_headers(headers: dict[str, str], wanted: dict[str, str], where: str) -> None:
    for name, value in wanted.items():
        found = any(re.fullmatch(name, n) and re.fullmatch(value, v) for n, v in headers.items())
        _require(found, f"no header {name}: {value} at the {where}; there are {sorted(headers)}")


def _check_route(running: Running, index: int) -> None:
    scenario = running.setup.scenario
    route = scenario.make_route(index)
    plain = _ask(running, "GET", route.prefix, route.host)
    _require(plain.status == 200, f"route {index}: status {plain.status}")
    _require(plain.body == ALPHABET * 2, f"route {index}: not the origin's 128 bytes")
    _require_headers(plain.headers, SEEN_BY_CLIENT, "client")
    echo = _ask(running, "GET", f"{route.prefix}?echo", route.host)
    line, *lines = echo.body.decode("latin-1").split("\r\n")
    seen = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    _require(line == f"GET {route.prefix}?echo HTTP/1.1", f"request line became {line!r}")
    _require(seen.get("host") == route.host, f"host became {seen.get('host')!r}")
    _require_headers(seen, SEEN_BY_ORIGIN, "origin")
    _require(seen["x-forwarded-proto"] == scenario.scheme, "wrong x-forwarded-proto")


def _check_call(running: Running) -> None:
    """A unary call, its trailers, what the origin sees of it, and one that no route owns."""
    route = running.setup.scenario.make_route(0)

    def call(path: str, host: str = route.host) -> Answer:
        try:
            return http2_client.call(running.setup.port, path, host)
        except OSError as error:
            raise ProbeFailed(f"call of {path} for {host}: {error!r}") from error

    answer = call(route.prefix)
    _require(answer.status == 200, f"call: status {answer.status}")
    _require(answer.trailers.get("grpc-status") == "0", f"call: trailers {answer.trailers}")
    _require(answer.body == ORIGIN_MESSAGE, f"call: not the origin's message: {answer.body!r}")
    _require_headers(answer.headers, SEEN_BY_CLIENT, "client")
    lines = call(f"{route.prefix}?echo").body.decode("latin-1").split("\r\n")[1:]
    seen = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    _require(seen.get("host") == route.host, f"host became {seen.get('host')!r}")
    wanted = {name: value for name, value in SEEN_BY_ORIGIN.items() if "timeout" not in name}
    _require_headers(seen, wanted, "origin")
    if running.peer.routes:
        other = call(route.prefix, "nobody.example.org")
        unimplemented = other.headers.get("grpc-status") == "12"
        _require(other.status == 404 or unimplemented, f"of nobody's host: {other}")


def _check_stream(running: Running) -> None:
    """The backend's own answers, whole, and nobody else's name; datagrams of several sizes."""
    route = running.setup.scenario.make_route(0)
    if running.setup.scenario.stream == "udp":
        for size in (1, 64, 1400):
            try:
                answer = echo(running.setup, ALPHABET[:1] * size)
            except OSError as error:
                raise ProbeFailed(f"datagram of {size} bytes: {error!r}") from error
            _require(answer == ALPHABET[:1] * size, f"datagram of {size} bytes: {answer!r}")
        return
    plain = _ask(running, "GET", route.prefix, route.host)
    _require(plain.status == 200 and plain.body == ALPHABET * 2, "not the origin's 128 bytes")
    _check_bodies(running)
    if running.setup.scenario.stream == "tls":
        try:
            other = _ask(running, "GET", route.prefix, "nobody.example.org")
        except ProbeFailed:
            return
        raise ProbeFailed(f"the connection of nobody's name was answered: {other.status}")


def _check_bodies(running: Running) -> None:
    route = running.setup.scenario.make_route(0)
    posted = _ask(running, "POST", route.prefix, route.host, b"x" * POST_BODY)
    _require(posted.status == 200 and posted.body == ALPHABET * 2, "POST was not answered whole")
    long = _ask(running, "GET", f"{route.prefix}/bytes/{LONG_BODY}", route.host)
    _require(long.status == 200, f"long body: status {long.status}")
    _require(long.body == ALPHABET * (LONG_BODY // len(ALPHABET)), "long body: wrong bytes")


def _check_unmatched(running: Running) -> None:
    route = running.setup.scenario.make_route(0)
    for path, host in ((route.prefix, "nobody.example.org"), ("/nothing", route.host)):
        answer = _ask(running, "GET", path, host)
        _require(answer.status == 404, f"{host}{path}: status {answer.status}, not 404")
