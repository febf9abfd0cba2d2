"""OCI archives: skopeo reads them, the same layout is the same file, and a damaged layout is refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from release.oci_archive import MANIFEST, NAMES, write_archive
from release.steps import StepFailed

OCI = "application/vnd.oci.image"
CREATED = "2026-11-30T00:00:00Z"


class Layout:
    """A small image in the OCI image layout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs/sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as layer:
            layer.addfile(tarfile.TarInfo("etc/hello"), io.BytesIO())
        plain = content.getvalue()
        self.layer = self._add(f"{OCI}.layer.v1.tar+gzip", gzip.compress(plain, mtime=0))
        config = {
            "architecture": "amd64",
            "os": "linux",
            "created": CREATED,
            "config": {"User": "65532:65532", "Entrypoint": ["edgefast"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(plain)]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._add(f"{OCI}.config.v1+json", json.dumps(config).encode()),
            "layers": [self.layer],
        }
        self.manifest = self._add(MANIFEST, json.dumps(manifest).encode())
        self.write_index(self.manifest)

    def write_index(self, *entries: dict[str, Any]) -> None:
        index = {"schemaVersion": 2, "manifests": entries}
        (self.folder / "index.json").write_text(json.dumps(index))

    def find(self, entry: dict[str, Any]) -> Path:
        return self.folder / "blobs" / entry["digest"].replace(":", "/")

    def _add(self, media: str, content: bytes) -> dict[str, Any]:
        entry = {"mediaType": media, "digest": _digest(content), "size": len(content)}
        self.find(entry).write_bytes(content)
        return entry


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "layout")


def test_another_reader_finds_the_image_by_its_name(layout: Layout, tmp_path: Path) -> None:
    file = tmp_path / "edgefast.tar"
    digest = write_archive(layout.folder, file, "edgefast:1.2.3")
    name = "docker.io/library/edgefast:1.2.3"
    command = ["skopeo", "inspect", f"oci-archive:{file}:{name}"]
    read = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(read.stdout)
    assert digest == found["Digest"] == layout.manifest["digest"]
    assert (found["Created"], found["Architecture"]) == (CREATED, "amd64")
    with tarfile.open(file) as archive:
        content = archive.extractfile("index.json")
        assert content
        index = json.load(content)
    assert index["manifests"][0]["annotations"] == dict.fromkeys(NAMES, name)
    copied = tmp_path / "copied"
    copy = ["skopeo", "copy", "--quiet", f"oci-archive:{file}:{name}", f"dir:{copied}"]
    subprocess.run(copy, check=True)
    layer = layout.layer["digest"].removeprefix("sha256:")
    assert (copied / layer).read_bytes() == layout.find(layout.layer).read_bytes()


def test_the_same_layout_is_the_same_file(layout: Layout, tmp_path: Path) -> None:
    made = []
    for name, when in (("one", 1), ("two", 1_000_000_000)):
        for path in layout.folder.rglob("*"):
            os.utime(path, (when, when))
        (layout.folder / f"blobs/sha256/{name}").write_bytes(b"not of this image")
        write_archive(layout.folder, tmp_path / name, "edgefast:1.2.3")
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("content", [None, b"", b"another layer"])
def test_a_damaged_blob_is_refused(layout: Layout, tmp_path: Path, content: bytes | None) -> None:
    path = layout.find(layout.layer)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StepFailed, match=r"expected sha256:\S+ with \d+ bytes"):
        write_archive(layout.folder, tmp_path / "edgefast.tar", "edgefast:1.2.3")
    assert not list(tmp_path.glob("edgefast.tar*"))


@pytest.mark.parametrize("count", [0, 2])
def test_one_image_is_in_an_archive(layout: Layout, tmp_path: Path, count: int) -> None:
    layout.write_index(*[layout.manifest] * count)
    with pytest.raises(StepFailed, match=f"expected one OCI image, found {count}"):
        write_archive(layout.folder, tmp_path / "edgefast.tar", "edgefast:1.2.3")
