"""h2spec, the suite that others wrote for RFC 9113 and RFC 7541: every case, over clear text and over TLS."""

from __future__ import annotations

import re
import subprocess

from cluster.tools.missing import built
from cluster.tools.versions import H2SPEC_HOME
from origin.answers import echo
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site
from wire.tls.port import TlsPort

CASES = 145
#: 3.5 (2): on a port that speaks both, what is no preface is a request of HTTP/1.1, and its 400 is no frame for the tool.
ANSWERED = ["Sends invalid connection preface"]


def failures_of(port: int, *options: str) -> list[str]:
    """Names of the cases that fail; all others pass, none is left out."""
    tool = built(H2SPEC_HOME / "h2spec")
    command = [str(tool), "-h", "127.0.0.1", "-p", str(port), "-o", "5", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    said = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert said, done.stdout + done.stderr
    tests, passed, skipped, failed = map(int, said.groups())
    assert (tests, passed + failed, skipped) == (CASES, CASES, 0)
    names = re.findall(r"\u00d7 \d+: (.+)", done.stdout.partition("Failures:")[2])
    assert len(names) == failed, done.stdout
    return names


#: A body that windows can cut in pieces: cases are left out where there are few bytes of it.
ANSWER = echo("h2spec")


def test_clear_text() -> None:
    with RecordingOrigin(ANSWER) as origin:
        objects = [
            make.route("all", [make.rule("origin")]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with Site(objects) as site:
            assert failures_of(site.port) == ANSWERED


def test_tls() -> None:
    with RecordingOrigin(ANSWER) as origin, TlsPort(origin) as site:
        assert failures_of(site.port, "-t", "-k") == []
