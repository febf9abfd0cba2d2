"""ConfigFile: loading, edits that are taken and edits that are refused, the swap of a mounted ConfigMap."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.config import ConfigError, ConfigFile
from controller.kube.lease import LeaseTimes
from controller.kube.scope import BUILT_IN, Scope
from edgefast.api.config.edgegateway import EdgeGateway
from tests.controller.waiting import running, until

GOOD = """apiVersion: config.gateway.edge.io/v1alpha1
kind: EdgeGateway
gateway:
  controllerName: gateway.edge.io/NAME
"""


def write(path: Path, name: str) -> None:
    path.write_text(GOOD.replace("NAME", name))


@contextlib.asynccontextmanager
async def followed(file: ConfigFile) -> AsyncIterator[list[str]]:
    """Follow a file; yields the names of the configurations that it reports."""
    told: list[str] = []
    file.on_change = lambda config: told.append(config.gateway.controller_name)
    async with running(file.run()):
        yield told


def test_no_file_is_the_defaults() -> None:
    assert ConfigFile(None).load() == EdgeGateway()


def test_the_times_of_the_lease_are_those_of_other_controllers() -> None:
    times = LeaseTimes.of(EdgeGateway().leader_election)
    assert (times.duration, times.deadline, times.retry) == (15, 10, 2)
    assert times == LeaseTimes()


def test_a_bad_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "edge-gateway.yaml"
    path.write_text(GOOD + "  controlerName: x\n")
    with pytest.raises(ConfigError) as refused:
        ConfigFile(path).load()
    assert f"{path}:5" in str(refused.value) and "controllerName" in str(refused.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        ConfigFile(tmp_path / "none.yaml").load()


async def test_a_sound_edit_is_taken_and_a_bad_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "edge-gateway.yaml"
    write(path, "one")
    file = ConfigFile(path, look=0.01)
    file.load()
    async with followed(file) as told:
        write(path, "two")
        await until(lambda: told == ["gateway.edge.io/two"])
        path.write_text(GOOD + "nonsense: 1\n")
        await until(lambda: file.problems)
        assert file.problems[0].source is not None and file.problems[0].source.line == 5
        assert file.config.gateway.controller_name == "gateway.edge.io/two"
        path.unlink()
        await until(lambda: "cannot be read" in file.problems[0].message)
        assert file.config.gateway.controller_name == "gateway.edge.io/two"
        assert file.refusals == 2 and len(told) == 1
        write(path, "two")
        await until(lambda: not file.problems)
        write(path, "three")
        await until(lambda: len(told) == 2)


async def test_the_swap_of_a_mounted_config_map(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"..{name}").mkdir()
        write(tmp_path / f"..{name}" / "edge-gateway.yaml", name)
    (tmp_path / "..data").symlink_to("..one")
    path = tmp_path / "edge-gateway.yaml"
    path.symlink_to("..data/edge-gateway.yaml")
    file = ConfigFile(path, look=0.01)
    assert file.load().gateway.controller_name == "gateway.edge.io/one"
    async with followed(file) as told:
        (tmp_path / "..tmp").symlink_to("..two")
        (tmp_path / "..tmp").rename(tmp_path / "..data")
        await until(lambda: told == ["gateway.edge.io/two"])


@pytest.mark.parametrize(
    ("watch", "expected"),
    [
        ("", ()),
        ("{type: Namespaces, namespaces: [b, a]}", ("a", "b", "own")),
        ("{type: NamespaceSelector, namespaceSelector: {matchLabels: {x: y}}}", ()),
    ],
)
def test_the_scope_of_a_configuration(
    tmp_path: Path, watch: str, expected: tuple[str, ...]
) -> None:
    path = tmp_path / "edge-gateway.yaml"
    more = f"provider: {{type: Kubernetes, kubernetes: {{watch: {watch}}}}}\n" if watch else ""
    path.write_text(GOOD.replace("NAME", "x") + more)
    scope = Scope.of(ConfigFile(path).load(), "own")
    assert scope == Scope("own", expected)
    targets = scope.targets(BUILT_IN)
    namespaced = {one.namespace for one in targets if one.api.kind == "Service"}
    assert namespaced == (set(expected) or {None})
    assert {one.namespace for one in targets if one.api.kind == "Namespace"} == {None}
    assert {one.api.kind for one in targets if one.metadata_only} == {"Secret", "ConfigMap"}
