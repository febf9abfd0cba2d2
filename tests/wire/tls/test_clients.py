"""Clients that people have: openssl s_client, curl and a program in Go, each version and cipher, beside Python's ssl elsewhere.

They are the distribution's, so what they offer changes with it: what is asserted is what each says it got.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from origin.recording import RecordingOrigin
from wire.harness.programs import ALONE, build_go, needs_go
from wire.tls.port import NAME, TlsPort

REQUEST = f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n"
CIPHERS = [
    ("-tls1_2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("-tls1_2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("-tls1_2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ("-tls1_3", "TLS_AES_128_GCM_SHA256"),
    ("-tls1_3", "TLS_AES_256_GCM_SHA384"),
    ("-tls1_3", "TLS_CHACHA20_POLY1305_SHA256"),
]
GO = """
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool, ServerName: os.Args[3], ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	for i := 0; i < 3; i++ {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		request, _ := http.NewRequest("GET", os.Args[2], nil)
		request.Host = os.Args[3]
		answer, err := client.Do(request)
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, tls.VersionName(answer.TLS.Version), answer.TLS.CurveID)
	}
}
"""


def s_client(port: TlsPort, trusted: Path, *options: str, text: str = REQUEST) -> str:
    """What it printed; it stays until the proxy ends the connection."""
    argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port.port}", "-servername", NAME]
    argv += ["-CAfile", str(trusted), "-verify_return_error", "-ign_eof", *options]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, env=ALONE)
    return done.stdout + done.stderr


@pytest.mark.parametrize(("version", "cipher"), CIPHERS)
def test_s_client(port: TlsPort, trusted: Path, version: str, cipher: str) -> None:
    chosen = "-cipher" if version == "-tls1_2" else "-ciphersuites"
    said = s_client(port, trusted, version, chosen, cipher)
    assert f"Cipher is {cipher}" in said
    assert "HTTP/1.1 200 " in said


@pytest.mark.parametrize("cipher", ["AES128-SHA", "DHE-RSA-AES128-SHA", "aNULL", "NULL", "RC4"])
def test_weak_ciphers_are_not_spoken(port: TlsPort, trusted: Path, cipher: str) -> None:
    """Without forward secrecy, without authentication or without encryption there is no connection."""
    said = s_client(port, trusted, "-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0")
    assert "HTTP/1.1 200" not in said


def test_nobody_negotiates_twice(port: TlsPort, trusted: Path, origin: RecordingOrigin) -> None:
    """TLS 1.2: `R` at the start of a line asks for a renegotiation. The connection goes on as it was, or ends; it never has another one."""
    origin.take()
    argv = ["openssl", "s_client", "-connect", f"127.0.0.1:{port.port}", "-servername", NAME]
    argv += ["-CAfile", str(trusted), "-tls1_2", "-legacy_renegotiation"]
    done = subprocess.run(
        argv, input="R\nR\n", capture_output=True, text=True, timeout=60, env=ALONE
    )
    said = done.stdout + done.stderr
    assert "RENEGOTIATING" in said
    assert re.search("no renegotiation|no_renegotiation|unexpected|alert|closed|errno|write:", said)
    assert said.count("verify return:1") <= 2, "a second handshake showed the chain again"
    assert port.ask() == 200


def test_tickets_allow_no_early_data(port: TlsPort, trusted: Path, tmp_path: Path) -> None:
    """Requests in the first flight can be replayed by anybody who saw them: none are promised a place."""
    kept = tmp_path / "session"
    said = s_client(port, trusted, "-tls1_3", "-sess_out", str(kept))
    assert "HTTP/1.1 200 " in said
    shown = subprocess.run(
        ["openssl", "sess_id", "-in", kept, "-noout", "-text"], capture_output=True, text=True
    )
    assert "TLSv1.3" in shown.stdout
    promised = re.findall(r"Max Early Data: (\d+)", shown.stdout + said)
    assert promised and set(promised) == {"0"}


@pytest.mark.parametrize(("asked", "spoken"), [("--http2", "2"), ("--http1.1", "1.1")])
def test_curl(port: TlsPort, trusted: Path, asked: str, spoken: str) -> None:
    for version in ("--tlsv1.2", "--tlsv1.3"):
        argv = [
            "curl",
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--cacert",
            str(trusted),
            version,
            asked,
        ]
        argv += ["--resolve", f"{NAME}:{port.port}:127.0.0.1", "--output", "/dev/null"]
        argv += ["--write-out", "%{http_code} %{http_version} %{ssl_verify_result}"]
        argv += [f"https://{NAME}:{port.port}/"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=ALONE)
        assert done.stdout == f"200 {spoken} 0", done.stderr


@needs_go
@pytest.mark.timeout(600)
def test_go(port: TlsPort, trusted: Path, tmp_path: Path) -> None:
    """Go's own TLS, which offers X25519MLKEM768 since 1.24."""
    argv = [build_go(tmp_path, GO), str(trusted), f"https://127.0.0.1:{port.port}/", NAME]
    environment = {**ALONE, "GODEBUG": "tlsmlkem=1"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["200"] * 3
    assert all("TLS 1.3" in line for line in lines)
    if os.environ.get("EDGEFAST_TLS") == "aws-lc":  # has it on any system, on by default
        assert all("X25519MLKEM768" in line for line in lines)
