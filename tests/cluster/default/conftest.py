"""The release that all tests of this folder share. Each leaves it as it was: objects of theirs are in namespaces of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.installed import Installed, edge_proxy, installed
from cluster.world.world import World
from controller.manifests.naming import Release


@pytest.fixture(scope="package")
def default(world: World) -> Iterator[Installed]:
    """The default release, with the classes `eg` and `eg-two` and the merged class `merged-eg`."""
    world.admin.wait_gone("/api/v1/namespaces/edge-gateway-system", 120)
    with installed(world, release=Release()) as made:
        world.admin.apply(
            edge_proxy(made.namespace, "plain"),
            edge_proxy(made.namespace, "merged", mergeGateways=True),
            made.gateway_class("eg", (made.namespace, "plain")),
            made.gateway_class("eg-two", (made.namespace, "plain")),
            made.gateway_class("merged-eg", (made.namespace, "merged")),
        )
        yield made
