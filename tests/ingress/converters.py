"""Converters of Ingresses to the Gateway API: programs that read a file of objects and print others.

In: objects, and how to call the program. Out: the printed documents, and the Ingresses that had to be left out so that it printed
any. `ingress2gateway` is not built here: it is the one of PATH, or a given file.
Must never: change what a program prints; `assistance.py` does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ingress.naive.objects import PREFIX

Objects = list[dict[str, Any]]
#: Documents of a file -> what the program printed. Raises Refused.
Convert = Callable[[Objects], Objects]

CERTIFICATE = "ingress-nginx/default"
_SECONDS = 120.0
_SHOWN = 300  # characters of an error


class Refused(Exception):
    """The program printed nothing for these objects."""


@dataclass(frozen=True)
class Converted:
    """The output for one set."""

    documents: Objects
    left_out: tuple[str, ...] = ()  # namespace/name of Ingresses
    errors: tuple[str, ...] = field(default=())  # why, one for each


def find_ingress2gateway(given: str) -> str:
    """Return the path of the program; SystemExit without one."""
    found = shutil.which(given or "ingress2gateway")
    if found is None:
        raise SystemExit(
            f"{given or 'ingress2gateway'} not found: install ingress2gateway 1.1.0 into PATH, or name it with --program"
        )
    return found


def ingress2gateway(program: str, folder: Path) -> Convert:
    """Return a converter that calls ingress2gateway."""
    arguments = ("print", "--providers", "ingress-nginx", "--all-namespaces", "--input-file")

    def convert(objects: Objects) -> Objects:
        done = _run([program, *arguments, str(_write(objects, folder))])
        if done.returncode:
            raise Refused((done.stderr or done.stdout).strip()[-_SHOWN:])
        return read_documents(done.stdout)

    return convert


def edgefast(folder: Path) -> Convert:
    """Return a converter that calls `edgefast convert`."""
    program = Path(sys.executable).with_name("edgefast")
    options = ("--ingress-certificate", CERTIFICATE, "--ingress-class", "nginx")

    def convert(objects: Objects) -> Objects:
        path = _write(objects, folder)
        # A folder: standard output has no Secrets.
        with tempfile.TemporaryDirectory(dir=folder) as output:
            done = _run([str(program), "convert", "-f", str(path), "-o", output, *options])
            if done.returncode not in (0, 1):  # 1: a part is refused
                raise Refused(done.stderr.strip()[-_SHOWN:])
            texts = [one.read_text() for one in sorted(Path(output).glob("*.yaml"))]
        return [document for text in texts for document in read_documents(text)]

    return convert


def read_documents(text: str) -> Objects:
    """Return the documents of a printed text; Refused if it is not YAML."""
    try:
        found = list(yaml.load_all(text, yaml.CSafeLoader))
    except yaml.YAMLError as error:
        raise Refused(f"its output is not YAML: {error}"[:_SHOWN]) from error
    return [one for one in found if isinstance(one, dict) and "kind" in one]


def convert_most(convert: Convert, objects: Objects) -> Converted:
    """Convert a set; if that fails, without the Ingresses that make it fail: the others first come, canaries last."""
    try:
        return Converted(convert(objects))
    except Refused:
        pass
    kept = [one for one in objects if one["kind"] != "Ingress"]
    documents: Objects = []
    left_out: dict[str, str] = {}
    for one in _in_order(objects):
        try:
            documents = convert([*kept, one])
        except Refused as error:
            left_out[f"{one['metadata']['namespace']}/{one['metadata']['name']}"] = str(error)
        else:
            kept.append(one)
    return Converted(documents, tuple(left_out), tuple(left_out.values()))


def _in_order(objects: Iterable[dict[str, Any]]) -> Objects:
    ingresses = [one for one in objects if one["kind"] == "Ingress"]
    canary = PREFIX + "canary"
    return sorted(ingresses, key=lambda one: canary in one["metadata"].get("annotations", {}))


def _write(objects: Objects, folder: Path) -> Path:
    path = folder / "objects.yaml"
    path.write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    return path


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
