"""Keys on disk: whole, of their source and not too old, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from auth.jwt.issuer import NOW, jwk, key_set
from edgefast.proxy.jwks import key_file
from edgefast.proxy.jwks.key_file import LAST, KeptKeys, KeyFiles

pytestmark = pytest.mark.pure

SOURCE = ("https://idp.test/keys", "", "")
KEPT = KeptKeys(*SOURCE, NOW, key_set(jwk("ES256")))


def files(folder: Path, now: float = NOW) -> KeyFiles:
    return KeyFiles(folder / "keys", lambda: now)


def test_there_and_back(tmp_path: Path) -> None:
    assert files(tmp_path).load(SOURCE) is None
    assert files(tmp_path).save(KEPT)
    assert files(tmp_path, NOW + LAST - 1).load(SOURCE) == KEPT
    (path,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    newer = KeptKeys(*SOURCE, NOW + 5, key_set(jwk("RS256")))
    assert files(tmp_path).save(newer)
    assert files(tmp_path).load(SOURCE) == newer


@pytest.mark.parametrize("now", [NOW + LAST, NOW - 61])
def test_too_old_or_of_the_future(tmp_path: Path, now: float) -> None:
    files(tmp_path).save(KEPT)
    assert files(tmp_path, now).load(SOURCE) is None


def test_of_another_source(tmp_path: Path) -> None:
    files(tmp_path).save(KEPT)
    other = (SOURCE[0], "service/ns/idp/80")
    assert files(tmp_path).load(other) is None
    (path,) = (tmp_path / "keys").iterdir()
    os.replace(path, files(tmp_path)._path(other))
    assert files(tmp_path).load(other) is None


def test_files_that_are_not_whole(tmp_path: Path) -> None:
    kept = files(tmp_path)
    kept.save(KEPT)
    (path,) = (tmp_path / "keys").iterdir()
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at])
        assert kept.load(SOURCE) is None
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert kept.load(SOURCE) is None
    path.write_bytes(whole)
    assert kept.load(SOURCE) == KEPT


def test_what_is_whole_and_no_keys(tmp_path: Path) -> None:
    kept = files(tmp_path)
    kept.save(KeptKeys(*SOURCE, NOW, b"no keys"))
    assert kept.load(SOURCE) is None


def test_a_disk_that_does_not_take_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "keys").write_text("a file")
    kept = files(tmp_path)
    assert not kept.save(KEPT) and not kept.save(KEPT)
    assert kept.load(SOURCE) is None
    kept.tidy()
    assert len(caplog.records) == 1


def test_tidied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_file, "FILES", 3)
    kept = files(tmp_path)
    for number in range(5):
        kept.save(KeptKeys(f"https://{number}.test", "", "", NOW, KEPT.keys))
        os.utime(kept._path((f"https://{number}.test", "", "")), (NOW + number, NOW + number))
    os.utime(kept._path(("https://4.test", "", "")), (NOW - LAST - 1,) * 2)
    (tmp_path / "keys" / "left.new").write_text("x")
    (tmp_path / "keys" / "another's").write_text("x")
    kept.tidy()
    left = [number for number in range(5) if kept.load((f"https://{number}.test", "", ""))]
    assert left == [1, 2, 3]
    assert len(list((tmp_path / "keys").iterdir())) == 4
