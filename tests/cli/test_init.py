"""`edgefast init`: a folder that `edgefast check` finds clean, and files that it never overwrites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.calling import call
from edgefast.cli.init import list_starter_files

pytestmark = pytest.mark.pure

NAMES = ["README.md", "backend.yaml", "gateway.yaml", "policy.yaml", "route.yaml"]


def test_the_folder_is_clean(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    outcome = call("init", str(folder))
    assert (outcome.status, outcome.err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert f"edgefast run -f {folder}" in outcome.out
    for arguments in (("-f", str(folder)), (str(folder),)):
        checked = call("check", *arguments, "--strict")
        assert (checked.status, checked.out) == (0, "")
        assert "no problems (7 objects in 4 files)" in checked.err


def test_each_yaml_file_explains_itself() -> None:
    files = list_starter_files()
    assert [path.name for path in files] == NAMES
    for path in files:
        if path.suffix == ".yaml":
            text = path.read_text()
            assert text.startswith("# ") and text.count("#") >= 3, path.name


def test_the_default_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("init").status == 0
    assert (tmp_path / "gateway" / "gateway.yaml").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "route.yaml").write_text("mine")
    (tmp_path / "policy.yaml").symlink_to("nowhere")
    outcome = call("init", str(tmp_path))
    assert outcome.status == 2
    assert f"{tmp_path} already has policy.yaml, route.yaml" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.yaml", "route.yaml"]
    assert (tmp_path / "route.yaml").read_text() == "mine"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is a file" in call("init", str(tmp_path / "file")).err
    outcome = call("init", str(tmp_path / "file" / "under"))
    assert outcome.status == 1 and "Not a directory" in outcome.err


def test_the_listener_of_the_readme(tmp_path: Path) -> None:
    """The HTTPS listener of README.md fits behind the listener of gateway.yaml."""
    call("init", str(tmp_path))
    (block,) = re.findall(r"```yaml\n(.*?)```", (tmp_path / "README.md").read_text(), re.S)
    gateway = tmp_path / "gateway.yaml"
    gateway.write_text(gateway.read_text() + block)
    outcome = call("check", str(tmp_path), "-o", "json")
    assert '"InvalidCertificateRef"' in outcome.out and "web-certificate" in outcome.out
