"""The Dockerfile keeps its promises as far as its text can tell: targets, user, build argument, complete sources."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()


def test_targets_and_their_base() -> None:
    bases = {name: base for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", TEXT, re.M)}
    assert bases == {
        "build": "${BASE}",
        "runtime": "${BASE}",
        "controller": "runtime",
        "proxy": "runtime",
    }
    assert re.search(r"^ARG BASE=\S+$", TEXT, re.M)
    assert TEXT.rindex("AS proxy") > TEXT.rindex("AS controller"), (
        "the last stage is the default target"
    )


def test_runs_as_nobody_in_particular() -> None:
    assert re.findall(r"^USER (\S+)$", TEXT, re.M) == ["65532:65532"]


def test_all_that_is_copied_exists_and_is_sent() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    sent = [line[1:] for line in ignore if line.startswith("!")]
    for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, re.M):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
            assert any(fnmatch(name, pattern) for pattern in sent), (
                f"{name} is kept out by .dockerignore"
            )
