"""A Debian package that cannot be written whole is not in dist/ under its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from release import deb
from release.steps import StepFailed

pytestmark = pytest.mark.pure


def test_an_interrupted_package_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_early(argv: list[str], **_: Any) -> str:
        Path(argv[-1]).write_bytes(b"!<arch>")
        raise StepFailed("dpkg-deb took longer than 1 s")

    monkeypatch.setattr(deb, "run_step", end_early)
    with pytest.raises(StepFailed, match="took longer"):
        deb.pack(tmp_path / "root", tmp_path / "edgefast.deb")
    assert not list(tmp_path.iterdir())
