"""The CRDs of cert-manager, from its Go module, as JSON documents in the cache folder.

In: the release of versions.py. Out: the documents in the order of their file names. Needs `go` the first time only.
Must never: keep a copy of the CRDs in the project.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any

import yaml

from cluster.tools.crds import module_zip
from cluster.tools.versions import CERT_MANAGER, CERT_MANAGER_HOME

_MODULE = f"github.com/cert-manager/cert-manager@{CERT_MANAGER}"


def cert_manager_crds() -> list[dict[str, Any]]:
    """Return the CRDs; MissingTool when `go` is needed and absent."""
    kept = CERT_MANAGER_HOME / "crds.json"
    if not kept.exists():
        documents = _read_module()
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(documents))
        part.replace(kept)
    return [dict(one) for one in json.loads(kept.read_text())]


def _read_module() -> list[dict[str, Any]]:
    folder = f"{_MODULE}/deploy/crds/"
    documents: list[dict[str, Any]] = []
    with zipfile.ZipFile(module_zip(_MODULE)) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(folder) and name.endswith(".yaml"):
                documents += [d for d in yaml.load_all(archive.read(name), yaml.CSafeLoader) if d]
    return documents
