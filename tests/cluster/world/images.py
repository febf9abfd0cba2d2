"""What images stand for in a world: commands of this machine.

In: nothing. Out: the default images by name; a name is matched with or without the registry in front of it, and with any
tag. A test adds its own by `world.image(name, ...)`.
Must never: name an image that the chart or the conformance suite does not use, or a test cannot do without.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cluster.tools.missing import debian
from cluster.tools.versions import GATEWAY_API_HOME
from cluster.world.node.settings import Image

#: The user of our own images (Dockerfile: USER).
OWN_USER = 65532

BIN = Path(sys.prefix) / "bin"

ECHO_IMAGE = "registry.k8s.io/gateway-api/echo-basic"
#: The name since v1.7.0; the program is the same.
_NEWEST_ECHO_IMAGE = "registry.k8s.io/gateway-api/conformance/echo-basic"


def default_images() -> dict[str, Image]:
    """Return the images every world has."""
    python = str(BIN / "python")
    unbuffered = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return {
        "edgefast": Image((str(BIN / "edgefast"),), (), unbuffered, OWN_USER),
        "edgefast-controller": Image(
            (str(BIN / "edgefast-controller"),),
            (),
            {**unbuffered, "MALLOC_ARENA_MAX": "1"},
            OWN_USER,
        ),
        **dict.fromkeys(
            (ECHO_IMAGE, _NEWEST_ECHO_IMAGE), Image((str(GATEWAY_API_HOME / "echo-basic"),))
        ),
        "redis": Image((debian("redis-server"),)),
        "curl": Image((debian("curl"),)),
        "python": Image((python,), (), unbuffered),
        "busybox": Image((), ("sh",)),
        # Its pod has a volume at /root, where our own Python may be: Debian's is.
        "registry.k8s.io/coredns/coredns": Image(
            ("/usr/bin/python3", str(Path(__file__).with_name("nameserver.py"))), (), unbuffered
        ),
    }
