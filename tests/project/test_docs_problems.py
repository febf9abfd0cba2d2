"""docs/problems: the command of each page, run on the page's example beside the objects of README.md, says what the page shows.

What is run is the text of the page: the command in it, the objects in it. That the pages are those of the catalogue is for
tests/explain/test_reason_page.py.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.calling import call
from examples.ports import Ports

from .test_readme import ROOT

FOLDER = ROOT / "docs" / "problems"
_SHOWN = re.compile(
    r"^With `(edgefast [^`]+)`, from\n\n```text\n(.*?)^```\n\ncomes\n\n```text\n(.*?)^```",
    re.M | re.S,
)
_FILES = ("example.yaml", "base.yaml")


def _read() -> dict[str, tuple[str, str, list[str]]]:
    """(command, example, what it says) by reason; an example with a line that is cut cannot be run."""
    found = {}
    for path in sorted(FOLDER.glob("*.md")):
        shown = _SHOWN.search(path.read_text())
        if shown is not None and not re.search(r" \.\.\.$", shown[2], re.M):
            found[path.stem] = shown[1], shown[2], shown[3].splitlines()
    return found


_PAGES = _read()
_ASKED = {word: one for word, one in _PAGES.items() if one[0].endswith(" -f")}
_SERVED = {word: one for word, one in _PAGES.items() if one[0].startswith("edgefast run ")}


def _save(example: str, folder: Path, ports: Ports | None = None) -> None:
    """Write the example, and those objects of the README that it does not replace."""
    (page,) = re.findall(r"^```yaml\n(.*?)^```", (FOLDER / "README.md").read_text(), re.M | re.S)
    own = {_name(one) for one in _objects(example)}
    beside = [one for one in page.split("---\n") if _name(yaml.safe_load(one)) not in own]
    for name, text in zip(_FILES, (example, "---\n".join(beside)), strict=True):
        (folder / name).write_text(ports.replace(text) if ports else text)


def _objects(text: str) -> Iterator[Any]:
    """Give what can be read of the documents: some examples are about what cannot."""
    for one in text.split("---\n"):
        try:
            yield yaml.safe_load(one)
        except yaml.YAMLError:
            continue


def _name(one: Any) -> tuple[Any, ...]:
    if not isinstance(one, dict) or not isinstance(one.get("metadata"), dict):
        return ()
    metadata = one["metadata"]
    return one.get("kind"), metadata.get("namespace", "default"), metadata.get("name")


def _columns(text: str) -> list[str]:
    """Lines with columns two spaces apart."""
    return [re.sub(r"(?<=\S) {2,}", "  ", line) for line in text.splitlines()]


@pytest.mark.pure
@pytest.mark.parametrize("word", _ASKED)
def test_what_a_page_shows_is_said(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, example, said = _PAGES[word]
    _save(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    _, *words = shlex.split(command)
    done = call(*words, _FILES[0], "-f", _FILES[1])
    assert "Traceback" not in done.err
    lines = _columns(done.out)
    assert [one for one in _columns("\n".join(said)) if one not in lines] == [], done.out


@pytest.mark.wire
@pytest.mark.parametrize("word", _SERVED)
def test_what_a_running_gateway_says(word: str, tmp_path: Path) -> None:
    command, example, said = _PAGES[word]
    _save(example, tmp_path, Ports())
    program, *words = shlex.split(command)
    words += ["--admin", "off", "--metrics", "off", "--ready", "off", "--workers", "1"]
    for name in _FILES:
        words += ["-f", name]
    log = tmp_path / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [Path(sys.executable).parent / program, *words],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        end = time.monotonic() + 30
        while not all(one in log.read_text() for one in said):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.02)
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()


@pytest.mark.pure
def test_nearly_all_pages_are_run() -> None:
    told = {path.stem for path in FOLDER.glob("*.md")} - {"README"} - _PAGES.keys()
    # Without an example (tests/explain says why), with one that is too long, or for CRDs of another release.
    assert len(_PAGES) >= 42 and {"TooLong", "TooMany", "UnsupportedVersion"} <= told
    assert _PAGES.keys() == _ASKED.keys() | _SERVED.keys() and _SERVED
