"""Clients that people have, as commands, and how they say that nothing was lost.

In: where to ask, and how often. Out: a command; the check of what it said. One that is not installed leaves its tests out.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from wire.harness.go_programs import go_program

__all__ = ["check_curl", "check_go", "check_h2load", "curl", "go", "h2load", "installed"]


def installed(program: str, package: str) -> str:
    """Return the path of a program, or leave the test out."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed (Debian package {package})")
    return path


def curl(port: int, name: str, trusted: Path, count: int, *options: str) -> list[str]:
    """One request after the other by TLS, on as few connections as possible."""
    command = [installed("curl", "curl"), "--no-progress-meter", "--noproxy", "*", "--http2"]
    command += options
    command += ["--resolve", f"{name}:{port}:127.0.0.1", "--cacert", str(trusted)]
    command += ["--output", "/dev/null", "--write-out", "%{http_code} %{http_version}\\n"]
    return [*command, f"https://{name}:{port}/[1-{count}]"]


def check_curl(said: str, count: int, status: int = 200) -> None:
    """Everything was answered in HTTP/2."""
    assert Counter(said.splitlines()) == {f"{status} 2": count}


def h2load(port: int, name: str, count: int, *, clients: int = 16, tls: bool) -> list[str]:
    """It makes as many connections as it is told, and no more: they have to last."""
    command = [installed("h2load", "nghttp2-client"), "-n", str(count), "-c", str(clients)]
    command += ["-m", "10", "--connect-to", f"127.0.0.1:{port}"]
    return [*command, f"{'https' if tls else 'http'}://{name}:{port}/"]


def check_h2load(said: str, count: int) -> None:
    """Everything succeeded."""
    found = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", said)
    assert found and found.groups() == (str(count), "0", "0", "0"), said


def go(port: int, name: str, trusted: Path | None, count: int, **more: object) -> list[str]:
    """net/http's client, eight requests at a time; `more` are its flags."""
    url = f"{'https' if trusted else 'http'}://127.0.0.1:{port}/"
    command = [go_program("asks"), "-url", url, "-host", name, "-n", str(count)]
    if trusted:
        command += ["-ca", str(trusted)]
    return command + [f"-{flag}={value}" for flag, value in more.items()]


def check_go(said: str, count: int) -> None:
    """Everything was answered as it should be."""
    assert said == f"good {count}\n"
