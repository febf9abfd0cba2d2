"""The Gateway API CRDs of one release, from its Go module, as JSON documents in the cache folder.

In: a channel, "experimental" or "standard". Out: the documents in the order of their file names, the admission policy that
guards them last. Needs `go` the first time only.
Must never: keep a copy of the CRDs in the project.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from cluster.tools.missing import MissingTool
from cluster.tools.versions import GATEWAY_API, GATEWAY_API_HOME

MODULE = f"sigs.k8s.io/gateway-api@{GATEWAY_API}"


def gateway_api_crds(channel: str = "experimental") -> list[dict[str, Any]]:
    """Return the CRDs and the admission policy of a channel; MissingTool when `go` is needed and absent."""
    kept = GATEWAY_API_HOME / f"{channel}.json"
    if not kept.exists():
        documents = _read_module(channel)
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(documents))
        part.replace(kept)
    documents = json.loads(kept.read_text())
    return sorted(documents, key=lambda d: d["kind"] != "CustomResourceDefinition")


def module_folder(module: str = MODULE) -> Path:
    """Download a Go module, if it is not there yet, and return its folder."""
    go = shutil.which("go")
    if go is None:
        raise MissingTool("go (1.26 or newer, https://go.dev/dl)", f"download {module}")
    done = subprocess.run(
        [go, "mod", "download", "-json", module], capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise RuntimeError(f"go mod download {module}: {done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def _read_module(channel: str) -> list[dict[str, Any]]:
    folder = module_folder() / "config" / "crd" / channel
    documents: list[dict[str, Any]] = []
    for file in sorted(folder.glob("gateway.*.yaml")):
        with file.open("rb") as text:
            documents += [d for d in yaml.load_all(text, yaml.CSafeLoader) if d]
    return documents
