"""nghttpd as a backend: bodies of any size both ways, trailers, windows and frames of sizes that it was told, over clear text and TLS."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.ports import free_port
from wire.harness.programs import ALONE
from wire.harness.site import Site
from wire.http2.asking import PROTOCOLS, ask
from wire.http2.programs import installed

SIZES = (0, 1, 16_383, 16_384, 65_535, 65_536, 1_000_003)
INSIDE = "inside.test"
TRAILER = "x-behind: here"
#: name -> how it is started.
KINDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "narrow": ("--window-bits=10", "--connection-window-bits=14", "--padding=100"),
    "wide": ("--window-bits=24", "--connection-window-bits=24", "--encoder-header-table-size=0"),
    "few": ("--max-concurrent-streams=1", "--early-response"),
    "tls": (),
}


@contextmanager
def nghttpd(folder: Path, port: int, options: Sequence[str]) -> Iterator[None]:
    """One of them, listening."""
    program = installed("nghttpd", "nghttp2-server")
    command = [program, "--address=127.0.0.1", f"--htdocs={folder}", "--echo-upload"]
    command += ["--trailer", TRAILER, *options]
    with open(folder / f"log-{port}", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=ALONE)
    try:
        end = time.monotonic() + 30
        while True:
            assert process.poll() is None and time.monotonic() < end, command
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("nghttpd")
    (folder / "file").write_bytes(b"0123456789" * 50_000)
    authority = Authority()
    pair = authority.issue([INSIDE])
    for name, data in (("key", pair.key), ("cert", pair.certificate)):
        (folder / name).write_bytes(data)
    objects = [
        make.config_map("ca", {"ca.crt": authority.pem.decode()}),
        make.tls_policy("tls", INSIDE),
    ]
    rules = []
    with ExitStack() as stack:
        for name, options in KINDS.items():
            port = free_port()
            ends = ["--no-tls", str(port)]
            if name == "tls":
                ends = [str(port), str(folder / "key"), str(folder / "cert")]
            stack.enter_context(nghttpd(folder, port, [*options, *ends]))
            speaks = "kubernetes.io/h2c" if name != "tls" else ""
            objects += make.service(name, [("127.0.0.1", port)], app_protocol=speaks)
            shorter = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}
            rewrite = {"type": "URLRewrite", "urlRewrite": {"path": shorter}}
            rules.append(make.rule(name, matches=[make.path(f"/{name}")], filters=[rewrite]))
        with Site([*objects, make.route("all", rules)]) as running:
            yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_bodies(site: Site, kind: str, protocol: str) -> None:
    for size in SIZES if kind != "narrow" else SIZES[:-1]:
        body = bytes(range(256)) * (size // 256) + bytes(size % 256)
        got = ask(site.port, protocol, f"/{kind}/file", body)
        assert (got.status, len(got.body), got.body == body) == (200, size, True), size
        # Trailers go where they can: behind a body without a length.
        if size and (protocol == "h2" or b"content-length" not in got.fields):
            assert got.trailers.get(b"x-behind") == b"here", (size, got)


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
@pytest.mark.parametrize("kind", KINDS)
def test_files(site: Site, kind: str, protocol: str) -> None:
    got = ask(site.port, protocol, f"/{kind}/file")
    assert (got.status, got.body) == (200, b"0123456789" * 50_000)
    assert ask(site.port, protocol, f"/{kind}/none").status == 404


def test_they_were_spoken_to_in_http2(site: Site) -> None:
    assert site.metric("edgefast_upstream_http2_connections_total") >= len(KINDS)
