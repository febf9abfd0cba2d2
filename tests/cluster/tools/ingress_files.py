"""Ingresses of other projects: the manifests of public Go modules that contain an Ingress for ingress-nginx.

In: INGRESS_FILES, modules with their versions. Out: texts by module and path. Needs `go` the first time only.
Must never: keep a copy of them in the project.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import yaml

from cluster.tools.crds import module_zip
from cluster.tools.versions import CACHE, INGRESS_FILES

_CLASS = "kubernetes.io/ingress.class"
_MAX_BYTES = 256 << 10


def ingress_files() -> dict[str, str]:
    """Return the manifests by "module path"; MissingTool when `go` is needed and absent."""
    version = hashlib.sha256(repr(INGRESS_FILES).encode()).hexdigest()[:12]
    kept = CACHE / f"ingress-files-{version}.json"
    if not kept.exists():
        texts = dict(_read_modules())
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(texts))
        part.replace(kept)
    found = json.loads(kept.read_text())
    return {str(name): str(text) for name, text in found.items()}


def _read_modules() -> Iterator[tuple[str, str]]:
    for module, version in INGRESS_FILES.items():
        folder = f"{module}@{version}/"
        with zipfile.ZipFile(module_zip(f"{module}@{version}")) as archive:
            for info in sorted(archive.infolist(), key=lambda one: one.filename):
                if info.filename.endswith((".yaml", ".yml")) and info.file_size < _MAX_BYTES:
                    text = archive.read(info).decode(errors="replace")
                    if _has_ingress(text):
                        yield f"{module} {info.filename.removeprefix(folder)}", text


def _has_ingress(text: str) -> bool:
    if not re.search(r"^\s*kind: [\"']?Ingress\b", text, re.MULTILINE):
        return False
    try:
        documents = list(yaml.load_all(text, yaml.CSafeLoader))
    except yaml.YAMLError:  # a template
        return False
    return any(_is_for_nginx(one) for one in documents if isinstance(one, dict))


def _is_for_nginx(document: dict[str, Any]) -> bool:
    """Tell whether a document is an Ingress of the class of ingress-nginx, or with its annotations."""
    if document.get("kind") != "Ingress" or not str(document.get("apiVersion")).startswith(
        "networking.k8s.io/v1"
    ):
        return False
    annotations = document["metadata"].get("annotations") or {}
    name = document["spec"].get("ingressClassName") or annotations.get(_CLASS) or ""
    return "nginx" in name or any(one.startswith("nginx.ingress.") for one in annotations)
