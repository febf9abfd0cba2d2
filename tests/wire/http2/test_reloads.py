"""Clients that people have, on connections that come to their end while they ask, as everything else changes: nothing is lost.

Connections end after a few requests (GOAWAY, twice), certificates and routes change, a listener of the port goes. What is asserted is
counted by the clients.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port

NAME = "a.test"
REQUESTS = 1500
#: For programs that are not ours: some hang beside a sanitizer's runtime.
ALONE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
GO = """
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool, ServerName: os.Args[3]}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	total, _ := strconv.Atoi(os.Args[4])
	var left, good, other atomic.Int64
	left.Store(int64(total))
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for left.Add(-1) >= 0 {
				request, _ := http.NewRequest("POST", os.Args[2], bytes.NewReader(make([]byte, 3000)))
				request.Host = os.Args[3]
				answer, err := client.Do(request)
				if err != nil {
					fmt.Println(err)
					continue
				}
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != 200 || answer.ProtoMajor != 2 {
					fmt.Println(answer.Proto, answer.StatusCode, err)
					other.Add(1)
					continue
				}
				good.Add(1)
			}
		}()
	}
	all.Wait()
	fmt.Println("good", good.Load())
}
"""


class World(Gateway):
    """One HTTPS and one HTTP port with the same route; connections have few requests."""

    def __init__(self, origin: int) -> None:
        self.authority = Authority()
        self.tls, self.plain, self.changes = free_port(), free_port(), 0
        self._origin = origin
        super().__init__(self.build())

    def build(self) -> list[make.Object]:
        """All objects, as they are after so many changes."""
        pair = self.authority.issue([NAME])
        listeners = [make.listener(self.tls, "tls", NAME, ["pair"])]
        if self.changes % 2:
            listeners.append(make.listener(self.tls, "more", f"more.{NAME}", ["pair"]))
        return [
            make.edge_proxy("few", http2={"maxRequestsPerConnection": 100}),
            make.gateway("web", listeners, "few"),
            make.gateway("plain", [make.listener(self.plain)], "few"),
            make.route("web", [make.rule("origin", matches=[make.path("/")])]),
            make.route("plain", [make.rule("origin")], parent="plain"),
            make.route("more", [make.rule("origin", matches=[make.path(f"/{self.changes}")])]),
            make.tls_secret("pair", pair.certificate, pair.key),
            *make.service("origin", [("127.0.0.1", self._origin)]),
        ]

    def change(self) -> None:
        """Another certificate, another route, a listener more or less."""
        self.changes += 1
        self.apply(self.build())

    def during(self, command: Sequence[str]) -> str:
        """What a program says that runs while everything changes, again and again."""
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ALONE
        )
        try:
            self.change()
            while process.poll() is None and self.changes < 200:
                self.change()
            return process.communicate(timeout=300)[0]
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with RecordingOrigin() as origin, World(origin.port) as running:
        yield running


@pytest.fixture(scope="module")
def trusted(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trusted") / "ca.pem"
    file.write_bytes(world.authority.pem)
    return file


def test_curl(world: World, trusted: Path) -> None:
    """One after the other, over TLS: of several with prior knowledge curl 7.88 fails all but the first, whoever serves them."""
    url = f"https://{NAME}:{world.tls}/[1-{REQUESTS}]"
    command = ["curl", "--silent", "--show-error", "--noproxy", "*", "--http2"]
    command += ["--resolve", f"{NAME}:{world.tls}:127.0.0.1", "--cacert", str(trusted)]
    command += ["--output", "/dev/null", "--write-out", "%{http_code} %{http_version}\\n", url]
    said = world.during(command)
    assert said.split("\n")[:-1] == ["200 2"] * REQUESTS


@pytest.mark.skipif(shutil.which("h2load") is None, reason="nghttp2's clients are not installed")
@pytest.mark.parametrize("tls", [True, False])
def test_h2load(world: World, tls: bool) -> None:
    """It makes as many connections as it is told, and no more: they have to last."""
    port = world.tls if tls else world.plain
    url = f"{'https' if tls else 'http'}://{NAME}:{port}/"
    command = [
        "h2load",
        "-n",
        str(90 * 16),
        "-c",
        "16",
        "-m",
        "10",
        "--connect-to",
        f"127.0.0.1:{port}",
    ]
    said = world.during([*command, url])
    counts = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", said)
    assert counts and counts.groups() == (str(90 * 16), "0", "0", "0"), said


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed here")
@pytest.mark.timeout(600)
def test_go(world: World, trusted: Path, tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(GO)
    program = str(tmp_path / "asks")
    subprocess.run(
        ["go", "build", "-o", program, "main.go"], cwd=tmp_path, check=True, env=ALONE, timeout=500
    )
    url = f"https://127.0.0.1:{world.tls}/"
    said = world.during([program, str(trusted), url, NAME, str(REQUESTS)])
    assert said == f"good {REQUESTS}\n"
