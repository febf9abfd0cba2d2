"""Write an image as an OCI archive: `python -m release.oci_archive LAYOUT FILE --name NAME --tag TAG`.

In: a folder in the OCI image layout (image-spec 1.1, image-layout.md) with one image. Out: the same as a tar file, in which
index.json has the full name of the image, so that `docker load`, `podman load` and `ctr images import` store it under that name.
Must never: contain a blob that does not have its digest, or a time of the build: the same layout is the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from release.steps import StepFailed

__all__ = ["write_archive"]

#: What a name without a registry is short for, in each engine.
REGISTRY = "docker.io/library"
#: containerd and Docker read the first name, podman and skopeo the second one.
NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def main(arguments: list[str] | None = None) -> int:
    """Write the archive; print the digest of the manifest."""
    parser = argparse.ArgumentParser(prog="python -m release.oci_archive", description=__doc__)
    parser.add_argument("layout", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--tag", required=True)
    options = parser.parse_args(arguments)
    try:
        print(write_archive(options.layout, options.file, f"{options.name}:{options.tag}"))
    except StepFailed as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


def write_archive(layout: Path, file: Path, name: str) -> str:
    """Write the image of a layout as a tar file and return the digest of its manifest.

    `name` is `NAME:TAG`, without a registry. StepFailed: the layout does not have exactly one image, or a blob does not have
    its digest.
    """
    entries = json.loads((layout / "index.json").read_bytes())["manifests"]
    if len(entries) != 1 or entries[0]["mediaType"] != MANIFEST:
        raise StepFailed(f"{layout}/index.json: expected one OCI image, found {len(entries)}")
    full = f"{REGISTRY}/{name}"
    kept = {key: entries[0][key] for key in ("mediaType", "digest", "size")}
    entry = {**kept, "annotations": dict.fromkeys(NAMES, full)}
    index = {"schemaVersion": 2, "manifests": [entry]}
    blobs = {one["digest"]: one["size"] for one in _find_blobs(layout, entry)}
    for digest, size in blobs.items():
        _check_blob(_find_blob(layout, digest), digest, size)
    made = file.with_name(f"{file.name}.part")
    with tarfile.open(made, "w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(archive, "index.json", json.dumps(index, separators=(",", ":")).encode())
        for digest, size in sorted(blobs.items()):
            with _find_blob(layout, digest).open("rb") as content:
                archive.addfile(_describe(f"blobs/{digest.replace(':', '/')}", size), content)
    made.replace(file)
    return str(entry["digest"])


def _find_blobs(layout: Path, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The manifest, and what it refers to."""
    yield entry
    manifest = json.loads(_find_blob(layout, entry["digest"]).read_bytes())
    yield manifest["config"]
    yield from manifest["layers"]


def _find_blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _check_blob(path: Path, digest: str, size: int) -> None:
    found = "no file"
    if path.is_file():
        with path.open("rb") as content:
            found = f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"
    if found != digest or path.stat().st_size != size:
        raise StepFailed(f"{path}: expected {digest} with {size} bytes, found {found}")


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_describe(name, len(content)), io.BytesIO(content))


def _describe(name: str, size: int) -> tarfile.TarInfo:
    """A regular file of root from the beginning of time."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info


if __name__ == "__main__":
    sys.exit(main())
