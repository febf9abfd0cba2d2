"""Files of a mounted Secret that kubelet swaps while they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgefast.xds import credentials
from edgefast.xds.credentials import CredentialFiles

pytestmark = pytest.mark.pure


def test_a_swap_between_two_files_mixes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("ca.crt", "tls.crt", "tls.key")
    for version in ("..1", "..2"):
        (tmp_path / version).mkdir()
        for name in files:
            (tmp_path / version / name).write_text(version)
    (tmp_path / "..data").symlink_to("..1")
    for name in files:
        (tmp_path / name).symlink_to(f"..data/{name}")
    read, reads = credentials._read, 0

    def swap_after_the_first(path: Path | None, *given: Any) -> bytes:
        nonlocal reads
        data = read(path, *given)
        reads += path is not None
        if reads == 1:
            (tmp_path / "..data_tmp").symlink_to("..2")
            (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        return data

    monkeypatch.setattr(credentials, "_read", swap_after_the_first)
    given = CredentialFiles(*(tmp_path / name for name in files))
    for version in (b"..1", b"..2"):
        found = given.read()
        assert {found.ca, found.certificate, found.key} == {version}
