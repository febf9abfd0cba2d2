"""The one way of saying that a program is missing: its name, what it was for, what to do.

Must never: be caught to skip a cluster test. A machine without the tools fails that suite, and says why.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from cluster.tools.versions import KUBERNETES_HOME

#: Program -> Debian package.
DEBIAN = {
    "etcd": "etcd-server",
    "ip": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "redis-server": "redis-server",
    "curl": "curl",
    "cc": "gcc",
}


class MissingTool(RuntimeError):
    """A program that the cluster tests need is not on this machine."""

    def __init__(self, tool: str, purpose: str) -> None:
        super().__init__(
            f"{tool} is missing, needed to {purpose}; `make test-cluster` installs and builds all of it"
        )


def debian(program: str) -> str:
    """Return the path of a program of a Debian package."""
    path = shutil.which(program)
    if path is None:
        package = DEBIAN.get(program, program)
        raise MissingTool(f"{program} (Debian package {package})", "run the cluster tests")
    return path


def kubernetes(program: str) -> str:
    """Return the path of one of the control plane's programs."""
    return built(KUBERNETES_HOME / program)


def built(path: Path) -> str:
    """Return the path of a program that `python -m cluster.tools` builds."""
    if not path.exists():
        raise MissingTool(str(path), "run the cluster tests")
    return str(path)
