"""The Gateway API CRDs of a release, from its Go module, as JSON documents in the cache folder.

In: a channel, "experimental" or "standard", and a release. Out: the documents in the order of their file names, the admission
policy that guards them last. Needs `go` the first time only.
Must never: keep a copy of the CRDs in the project.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import yaml

from cluster.tools.missing import MissingTool
from cluster.tools.versions import GATEWAY_API, gateway_api_home

MODULE = "sigs.k8s.io/gateway-api"


def gateway_api_crds(
    channel: str = "experimental", release: str = GATEWAY_API
) -> list[dict[str, Any]]:
    """Return the CRDs and the admission policy of a channel; MissingTool when `go` is needed and absent."""
    kept = gateway_api_home(release) / f"{channel}.json"
    if not kept.exists():
        documents = _read_module(channel, release)
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(documents))
        part.replace(kept)
    documents = json.loads(kept.read_text())
    return sorted(documents, key=lambda d: d["kind"] != "CustomResourceDefinition")


def module_zip(module: str) -> Path:
    """Download a Go module, if it is not there yet, and return its archive: to be read, not built.

    A module that asks for a newer Go than there is can be read all the same.
    """
    go = shutil.which("go")
    if go is None:
        raise MissingTool("go (1.26 or newer, https://go.dev/dl)", f"download {module}")
    done = subprocess.run(
        [go, "mod", "download", "-json", module], capture_output=True, text=True, timeout=300
    )
    told = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    if "Zip" not in told:
        raise RuntimeError(f"go mod download {module}: {done.stdout}{done.stderr}")
    return Path(told["Zip"])


def _read_module(channel: str, release: str) -> list[dict[str, Any]]:
    module = f"{MODULE}@{release}"
    folder = f"{module}/config/crd/{channel}/gateway."
    documents: list[dict[str, Any]] = []
    with zipfile.ZipFile(module_zip(module)) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(folder) and name.endswith(".yaml"):
                documents += [d for d in yaml.load_all(archive.read(name), yaml.CSafeLoader) if d]
    return documents
