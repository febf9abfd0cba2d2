"""Fixtures of the cluster tests, and the marker that keeps them out of `make test`.

`apiserver`: etcd and kube-apiserver with all CRDs, one per session; `newest`: with those of the newest release. `world`: the whole cluster, one per session.
Must never: skip when a tool is missing; the fixture fails and says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.installed import applications
from cluster.installer import SYSTEM, Installer
from cluster.tools.api_fields import RELEASES
from cluster.tools.crds import gateway_api_crds
from cluster.world.apiserver import ApiServer
from cluster.world.crds import install, own_crds
from cluster.world.world import World

HERE = Path(__file__).parent

#: Of a test that says nothing else, against hangs; the first one starts a whole cluster.
_SECONDS = 600


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test below this folder is a cluster test."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_SECONDS))


@pytest.fixture(scope="session")
def apiserver(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """A real API server with all CRDs, shared by the session: work in namespaces of your own."""
    failed = request.session.testsfailed
    server = ApiServer()
    started = False
    try:
        server.start()
        started = True
        yield server
    finally:
        server.stop(keep_logs=not started or request.session.testsfailed > failed)


@pytest.fixture(scope="session")
def newest(request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """The same with the experimental CRDs of the newest release that is known."""
    failed = request.session.testsfailed
    server = ApiServer()
    started = False
    try:
        server.start(crds=False)
        install(server.admin, [*gateway_api_crds("experimental", RELEASES[-1]), *own_crds()])
        started = True
        yield server
    finally:
        server.stop(keep_logs=not started or request.session.testsfailed > failed)


@pytest.fixture
def installer(apiserver: ApiServer, tmp_path: Path) -> Iterator[Installer]:
    """Tools of one test; the default release's namespace is there, and nothing of the release is left."""
    made = Installer(apiserver, tmp_path)
    if apiserver.admin.find(f"/api/v1/namespaces/{SYSTEM}") is None:
        meta = {"name": SYSTEM}
        apiserver.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    yield made
    if f"edge-gateway\t{SYSTEM}" in made.helm("list", "-A").replace(" ", ""):
        made.helm("uninstall", "edge-gateway", "-n", SYSTEM)
    made.edgefast("uninstall")


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A whole cluster with all CRDs, shared by the session: work in namespaces of your own."""
    failed = request.session.testsfailed
    made = World.make()
    started = False
    try:
        made.start()
        started = True
        yield made
    finally:
        kept = made.stop(keep_logs=not started or request.session.testsfailed > failed)
        if kept is not None:
            request.config.get_terminal_writer().line(f"logs of the world: {kept}")


@pytest.fixture
def namespace(world: World) -> str:
    """A namespace of the world, with its default ServiceAccount, so that pods can be made in it."""
    return world.namespace_for_pods()


@pytest.fixture(scope="module")
def apps(world: World) -> Iterator[tuple[str, ...]]:
    """Two namespaces with a backend in each."""
    with applications(world, "team-a", "team-b") as made:
        yield made
