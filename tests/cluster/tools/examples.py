"""The examples of the Gateway API: the manifests that its documentation shows, as a release's Go module has them.

In: a release. Out: texts by path, "standard/basic-http.yaml". Needs `go` the first time only.
Must never: keep a copy of them in the project.
"""

from __future__ import annotations

import json
import zipfile

from cluster.tools.crds import MODULE, module_zip
from cluster.tools.versions import gateway_api_home


def gateway_api_examples(release: str) -> dict[str, str]:
    """Return the manifests; MissingTool when `go` is needed and absent."""
    kept = gateway_api_home(release) / "examples.json"
    if not kept.exists():
        texts = _read_module(release)
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(texts))
        part.replace(kept)
    texts = json.loads(kept.read_text())
    return {str(path): str(text) for path, text in texts.items()}


def _read_module(release: str) -> dict[str, str]:
    module = f"{MODULE}@{release}"
    folder = f"{module}/examples/"
    with zipfile.ZipFile(module_zip(module)) as archive:
        return {
            name.removeprefix(folder): archive.read(name).decode()
            for name in sorted(archive.namelist())
            if name.startswith(folder) and name.endswith(".yaml")
        }
