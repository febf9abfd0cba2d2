"""Real helm: runs it against one API server, with files of its own.

In: a kubeconfig and a folder. Out: what helm says; CalledProcessError with all of it when helm fails.
Must never: read the helm configuration of whoever runs the tests.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.tools.missing import built
from cluster.tools.versions import HELM_HOME


def homes(folder: Path) -> dict[str, str]:
    """Return the environment that keeps all of helm's files in a folder; its Kubernetes client has a cache below HOME."""
    kinds = {f"HELM_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    return {**kinds, "HOME": str(folder)}


class HelmError(RuntimeError):
    """Helm did not do it; the text is all it said."""


class Helm:
    """Helm for one cluster."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._program = built(HELM_HOME / "helm")
        self._env = {**os.environ, **homes(folder), "KUBECONFIG": str(kubeconfig)}

    def run(self, *arguments: str, stdin: str = "", seconds: float = 240.0) -> str:
        """Run helm and return its standard output."""
        done = subprocess.run(
            [self._program, *arguments],
            env=self._env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if done.returncode:
            raise HelmError(f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout
