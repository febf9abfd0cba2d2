"""Seconds to the first answer, for each way to get a gateway: `python -m bench.first_answer [--rounds N] [--clone]`.

In: the wheel of `make wheels` in dist/; programs of other gateways, which are looked for in PATH and in ~/go/bin. Out: a table of
seconds to install, and from the start of the program to the first 200 through it. Must never: count the download of a program, or
leave a process behind.

A proxy of one origin is what each row starts: the least that answers. `edgefast demo` also has TLS, policies and the console.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: A clone compiles for minutes on a slow machine.
DEADLINE = 900.0
_LINE = re.compile(r"http://[^ :/]+:(\d+)/")


class NotHere(Exception):
    """A way that this machine does not have; the text says why."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to a first answer."""

    name: str
    #: Prepares a folder; the seconds of it are the first column.
    install: Callable[[Path], None]
    #: The command, for a folder, a free port and the port of the origin. It reports its own port if it does not use the free one.
    command: Callable[[Path, int, int], list[str]]
    reports_port: bool = False


def main(arguments: list[str] | None = None) -> int:
    """Measure all ways in turn, several rounds."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_answer", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clone", action="store_true", help="also a clone with make run, once")
    options = parser.parse_args(arguments)
    found: dict[str, list[tuple[float, float]]] = {}
    missing: dict[str, str] = {}
    with _origin() as origin:
        for _ in range(options.rounds):
            for way in WAYS:
                try:
                    found.setdefault(way.name, []).append(_measure(way, origin))
                except NotHere as error:
                    missing[way.name] = str(error)
        if options.clone:
            found[CLONE.name] = [_measure(CLONE, origin)]
    print(f"{'way':<44} {'install s':>10} {'start s':>8}")
    for name, times in found.items():
        if times:
            install, start = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{name:<44} {install:>10.1f} {start:>8.2f}")
    for name, reason in missing.items():
        print(f"{name:<44} not here: {reason}")
    return 0


def _measure(way: Way, origin: int) -> tuple[float, float]:
    """Seconds to install, and to the first answer."""
    with tempfile.TemporaryDirectory(prefix="edgefast-first-") as name:
        folder, port = Path(name), _free_port()
        began = time.monotonic()
        way.install(folder)
        installed = time.monotonic()
        log = folder / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                way.command(folder, port, origin),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**os.environ, "XDG_DATA_HOME": name, "HOME": name},
                start_new_session=True,
            )
        try:
            while not _answers(_read_port(log) if way.reports_port else port):
                if process.poll() is not None or time.monotonic() - installed > DEADLINE:
                    raise NotHere(log.read_text(errors="replace").strip()[-200:])
                time.sleep(0.005)
            return installed - began, time.monotonic() - installed
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            process.wait(30)


def _answers(port: int) -> bool:
    if not port:
        return False
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _read_port(log: Path) -> int:
    found = _LINE.search(log.read_text(errors="replace"))
    return int(found[1]) if found else 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def _origin() -> Iterator[int]:
    """A server that answers 200."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Write nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def _find_wheel() -> Path:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = sorted((ROOT / "dist").glob(f"edgefast-*-{tag}-{tag}-manylinux*.whl"))
    if not wheels:
        raise NotHere("dist/ has no wheel for this Python; run make wheels")
    return wheels[-1]


def _install_wheel(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    pip = [str(folder / "env/bin/pip"), "install", "--quiet", "--only-binary=:all:"]
    subprocess.run([*pip, str(_find_wheel())], check=True, stdin=subprocess.DEVNULL)


def _install_clone(folder: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], check=True)


def _find(name: str) -> str:
    path = os.pathsep.join((os.environ["PATH"], str(Path.home() / "go/bin")))
    program = shutil.which(name, path=path)
    if program is None:
        raise NotHere(f"{name} is not in PATH")
    return program


def _run_edgefast(folder: Path, port: int, origin: int) -> list[str]:
    to = ["--to", f"http://127.0.0.1:{origin}", "--listen", f"127.0.0.1:{port}"]
    return [str(folder / "env/bin/edgefast"), "run", *to, "--workers", "1"]


def _run_caddy(folder: Path, port: int, origin: int) -> list[str]:
    """It redirects to HTTPS without `http://` in --from."""
    return [_find("caddy"), "reverse-proxy", "--from", f"http://localhost:{port}", "--to", f"127.0.0.1:{origin}"]  # fmt: skip


def _run_nginx(folder: Path, port: int, origin: int) -> list[str]:
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; server {{ listen 127.0.0.1:{port};"
        f" location / {{ proxy_pass http://127.0.0.1:{origin}; }} }} }}\n"
    )
    return [_find("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")]


def _run_traefik(folder: Path, port: int, origin: int) -> list[str]:
    (folder / "routes.yaml").write_text(
        "http:\n  routers: {all: {rule: 'PathPrefix(`/`)', service: web}}\n"
        f"  services: {{web: {{loadBalancer: {{servers: [{{url: 'http://127.0.0.1:{origin}'}}]}}}}}}\n"
    )
    options = [f"--entrypoints.web.address=127.0.0.1:{port}"]
    return [_find("traefik"), *options, f"--providers.file.filename={folder}/routes.yaml"]


def _nothing(folder: Path) -> None:
    """The program is there already."""


WAYS = (
    Way(
        "edgefast: a wheel, edgefast demo",
        _install_wheel,
        lambda folder, port, origin: [str(folder / "env/bin/edgefast"), "demo"],
        reports_port=True,
    ),
    Way("edgefast: a wheel, edgefast run --to", _install_wheel, _run_edgefast),
    Way("caddy reverse-proxy, the program is there", _nothing, _run_caddy),
    Way("nginx, the program is there", _nothing, _run_nginx),
    Way("traefik with a file, the program is there", _nothing, _run_traefik),
)
CLONE = Way(
    "edgefast: a clone, make run",
    _install_clone,
    lambda folder, port, origin: ["make", "-C", str(folder / "clone"), "run"],
    reports_port=True,
)

if __name__ == "__main__":
    sys.exit(main())
