"""etcd's data with the Gateway API already installed, made once, so that every later start saves seconds.

In: nothing but what is in the cache folder. Out: `plant` puts the data where a new etcd will look for it. The seed is what
a real API server of this version has written: its bootstrap objects and the CRDs.
Must never: be used with another version of etcd, Kubernetes or the CRDs: its name is a digest of all three.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from cluster.tools.crds import gateway_api_crds
from cluster.tools.missing import debian
from cluster.tools.versions import CACHE, KUBERNETES
from cluster.world.control_plane import ControlPlane
from cluster.world.crds import install_gateway_api


def plant(folder: Path) -> bool:
    """Copy the seed to `<folder>/etcd`; False when there is none yet."""
    seed = _place()
    if not seed.exists():
        return False
    shutil.copytree(seed, folder / "etcd")
    return True


def harvest(plane: ControlPlane) -> None:
    """Install the Gateway API in a control plane that was started without a seed, and keep its data as the seed."""
    install_gateway_api(plane.admin)
    seed = _place()
    part = seed.with_suffix(f".{os.getpid()}")
    # The data is whole when both have ended in peace.
    plane.stop_in_peace()
    seed.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(plane.site.folder / "etcd", part)
    try:
        part.rename(seed)
    except OSError:  # another run was first
        shutil.rmtree(part)
    plane.start()


def _place() -> Path:
    version = subprocess.run([debian("etcd"), "--version"], capture_output=True).stdout
    crds = json.dumps(gateway_api_crds(), sort_keys=True).encode()
    digest = hashlib.sha256(b"\0".join([version, KUBERNETES.encode(), crds])).hexdigest()
    return CACHE / "seeds" / digest[:16]
