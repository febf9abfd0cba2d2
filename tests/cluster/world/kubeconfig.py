"""Kubeconfig files: who may talk to which API server, in one self-contained JSON file (JSON is YAML).

In: the server's URL, its CA and either a certificate pair or a token. Out: the file, mode 0600.
Must never: refer to other files, so that a copy works anywhere.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path


def write_kubeconfig(
    path: Path,
    server: str,
    ca: Path,
    *,
    certificate: Path | None = None,
    token: str | None = None,
    namespace: str = "default",
) -> Path:
    """Write a kubeconfig; `certificate` is a `.crt` beside its `.key`."""
    user: dict[str, str] = {}
    if certificate is not None:
        user["client-certificate-data"] = _text(certificate)
        user["client-key-data"] = _text(certificate.with_suffix(".key"))
    if token is not None:
        user["token"] = token
    cluster = {"server": server, "certificate-authority-data": _text(ca)}
    context = {"cluster": "world", "user": "user", "namespace": namespace}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "world",
        "clusters": [{"name": "world", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "world", "context": context}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))
    return path


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
