"""The scripts of bench/wrk: real wrk sends what each script promises, and prints a line of figures that adds up."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "bench" / "wrk"

pytestmark = [pytest.mark.wire, pytest.mark.timeout(60)]


class Origin(ThreadingHTTPServer):
    """Answers 200, and 429 below /limited to all but the first request of a user; keeps some requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.seen: list[tuple[str, str, dict[str, str], int]] = []
        self.users: set[str] = set()
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Origin

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def _answer(self) -> None:
        size = self._read_body()
        status = 200
        with self.server.lock:
            if len(self.server.seen) < 200:
                headers = {name.lower(): value for name, value in self.headers.items()}
                self.server.seen.append((self.command, self.path, headers, size))
            user = self.headers.get("x-user", "")
            if self.path.startswith("/limited"):
                status = 429 if user in self.server.users else 200
                self.server.users.add(user)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if self.close_connection:
            self.send_header("Connection", "close")  # wrk expects it
        self.end_headers()

    do_GET = do_POST = _answer  # noqa: N815

    def _read_body(self) -> int:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        total = 0
        while size := int(self.rfile.readline(), 16):
            total += len(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return total

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def origin() -> Iterator[Origin]:
    server = Origin()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run_wrk(script: str, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("wrk")
    assert program, "wrk is missing: make test installs it"
    command = [program, "-t1", "-c2", "-d1s", "-s", str(FOLDER / script), url]
    return subprocess.run(
        [*command, "--", *options] if options else command,
        capture_output=True,
        text=True,
        timeout=30,
    )


def figures(script: str, url: str, *options: str) -> dict[str, float]:
    """The numbers of the line of figures; no connection failed."""
    done = run_wrk(script, url, *options)
    (line,) = re.findall(r"^figures: test=(.*)$", done.stdout, re.M)
    name, *fields = line.split()
    assert name == script.removesuffix(".lua")
    found = {key: float(value) for key, _, value in (one.partition("=") for one in fields)}
    assert found["failed"] == 0, done.stdout
    assert found["requests"] > 0
    assert found["p50_ms"] <= found["p99_ms"] <= found["p999_ms"] <= found["max_ms"]
    return found


def test_get(origin: Origin) -> None:
    assert figures("get.lua", f"{origin.url}/one", "host=a.example")["errors"] == 0
    assert {(method, path, one["host"]) for method, path, one, _ in origin.seen} == {
        ("GET", "/one", "a.example")
    }
    assert origin.connections <= 3  # wrk tries one before


def test_routes(origin: Origin) -> None:
    found = figures("routes.lua", origin.url, "routes=5", "path=/p/%d")
    assert found["2xx"] >= found["requests"]  # answers of the last moment are counted here alone
    assert {(path, one["host"]) for _, path, one, _ in origin.seen} <= {
        (f"/p/{path}", f"r{path}.example") for path in range(5)
    }
    assert len({path for _, path, _, _ in origin.seen}) == 5


@pytest.mark.parametrize("chunk", [0, 1000])
def test_post(origin: Origin, chunk: int) -> None:
    assert figures("post.lua", origin.url, "bytes=5000", f"chunk={chunk}")["errors"] == 0
    assert {(method, size) for method, _, _, size in origin.seen} == {("POST", 5000)}
    assert all(("transfer-encoding" in one) == bool(chunk) for _, _, one, _ in origin.seen)


def test_headers(origin: Origin) -> None:
    figures("headers.lua", origin.url, "headers=7", "bytes=9", "cookie=100")
    for _, _, one, _ in origin.seen:
        sent = [value for name, value in one.items() if name.startswith("x-bench-")]
        assert sent == ["v" * 9] * 7
        assert one["cookie"] == "session=" + "c" * 100


def test_rate_limit(origin: Origin) -> None:
    found = figures("ratelimit.lua", f"{origin.url}/limited", "clients=3")
    assert found["2xx"] == 3
    assert found["429"] == found["4xx"] > 0
    assert origin.users == {"client-1", "client-2", "client-3"}


def test_churn(origin: Origin) -> None:
    found = figures("churn.lua", origin.url, "kept=4")
    assert origin.connections == pytest.approx(found["requests"] / 4, rel=0.1, abs=4)


def test_an_unknown_option_ends_the_run(origin: Origin) -> None:
    done = run_wrk("get.lua", origin.url, "hosts=a")
    assert done.returncode == 2
    assert "unknown option: hosts=a" in done.stderr
    assert not origin.seen
