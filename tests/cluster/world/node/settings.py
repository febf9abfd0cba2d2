"""What the agent is told at start, and may be told later: its settings file and the image file.

In: the JSON that the world writes. Out: `Settings`, `Image`.
Must never: be guessed from the environment.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One agent; paths as text."""

    folder: str
    netns: str
    server: str
    pki: str
    box: str
    #: Folders every container must be able to read: the checkout, the interpreter.
    readable: tuple[str, ...]
    #: In front of PATH in every container.
    path: str

    def write(self, path: Path) -> None:
        """Write the settings file."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Settings:
        """Read the settings file."""
        values = json.loads(path.read_text())
        values["readable"] = tuple(values["readable"])
        return cls(**values)


@dataclass(frozen=True)
class Image:
    """What a name of an image means here: a command of this machine; user is the image's own user id."""

    entrypoint: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    user: int = 0


def write_images(path: Path, images: dict[str, Image]) -> None:
    """Write the image file, at once for whoever reads it."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps({name: asdict(image) for name, image in images.items()}, indent=1))
    os.replace(part, path)


def read_images(path: Path) -> dict[str, Image]:
    """Read the image file."""
    images = {}
    for name, values in json.loads(path.read_text()).items():
        entrypoint, arguments = tuple(values["entrypoint"]), tuple(values["arguments"])
        images[name] = Image(entrypoint, arguments, values["env"], values["user"])
    return images


def find_image(images: dict[str, Image], reference: str) -> Image | None:
    """Return the image whose name is the longest prefix of a reference, with or without its registry and folders."""
    names = (reference, reference.rsplit("/", 1)[-1])
    fitting = [name for name in images if any(_is_prefix(name, one) for one in names)]
    return images[max(fitting, key=len)] if fitting else None


def _is_prefix(name: str, reference: str) -> bool:
    return reference == name or (reference.startswith(name) and reference[len(name)] in ":@/")
