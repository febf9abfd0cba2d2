"""edgefast in a world: the chart of this tree by helm, one controller, one proxy with one worker.

In: a world. Out: an `Installation`. Must never: give the product what its users would not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.gateway.health_checks import health_checks
from bench.gateway.site import Installation, Product
from cluster.installed import EDGE, PROXIES, edge_proxy, installed
from cluster.world.world import World
from edgefast import __version__

_CLASS = "bench"


@contextmanager
def _install(world: World) -> Iterator[Installation]:
    with installed(world) as made:
        world.admin.apply(
            edge_proxy(
                made.namespace,
                "edge",
                deployment={"replicas": 1},
                shutdown={"drainTimeout": "8s", "minDrainDuration": "3s"},
            ),
            made.gateway_class(_CLASS, (made.namespace, "edge")),
        )
        yield Installation(
            class_name=_CLASS,
            controller=(made.namespace, made.release.base),
            proxies=lambda _: (
                made.namespace,
                f"{PROXIES},gateway.edge.io/owning-gateway-name=eg",
            ),
            checks=lambda namespace, route: [health_checks(EDGE, namespace, route)],
        )


EDGEFAST = Product(name="edgefast", title="edgefast", version=lambda: __version__, install=_install)
