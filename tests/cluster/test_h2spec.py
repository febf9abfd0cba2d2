"""h2spec, the suite that others wrote for RFC 9113 and RFC 7541: every case, over clear text."""

from __future__ import annotations

import re
import subprocess

from cluster.tools.missing import built
from cluster.tools.versions import H2SPEC_HOME
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site

CASES = 145
#: The tool leaves one out by itself.
SKIPPED = 1
#: 3.5 (2): on a port that speaks both, what is no preface is a request of HTTP/1.1, and its 400 is no frame for the tool.
ANSWERED = ["Sends invalid connection preface"]


def test_every_case() -> None:
    tool = built(H2SPEC_HOME / "h2spec")
    with RecordingOrigin() as origin:
        objects = [
            make.route("all", [make.rule("origin")]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with Site(objects, settings={"http2": {"enabled": True}}) as site:
            command = [str(tool), "-h", "127.0.0.1", "-p", str(site.port), "-o", "5"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    said = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert said, done.stdout + done.stderr
    counts = tuple(map(int, said.groups()))
    failures = done.stdout.partition("Failures:")[2]
    assert re.findall(r"\u00d7 \d+: (.+)", failures) == ANSWERED, failures
    assert counts == (CASES, CASES - SKIPPED - len(ANSWERED), SKIPPED, len(ANSWERED))
