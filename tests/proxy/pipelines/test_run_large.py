"""`edgefast run` with many routes: what of its start may not grow with them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proxy.command import Start, gateway, gateway_class, mark_of, route, save
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

#: Imported by every Python that finds it: writes a line for each time that all objects are looked at.
_COUNTER = r"""
import gc, os
_file = os.open(os.environ["COLLECTIONS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
def _count(phase, facts):
    if phase == "start" and facts["generation"] == 2:
        os.write(_file, b"%d\n" % os.getpid())
gc.callbacks.append(_count)
"""


def test_the_collector_does_not_go_through_all_routes_again_and_again(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, told = tmp_path / "hook", tmp_path / "told"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(_COUNTER)
    monkeypatch.setenv("PYTHONPATH", f"{hook}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("COLLECTIONS", str(told))

    def count(routes: int) -> list[int]:
        """Collections of a start: the agent's and its worker's."""
        port, folder = free_port(), tmp_path / f"objects-{routes}"
        folder.mkdir()
        save(folder / "base.yaml", gateway_class(), gateway(port), route("v1"))
        more = [{**route("v1", f"web-{n}"), "spec": _of_host(n)} for n in range(routes)]
        listed = {"apiVersion": "v1", "kind": "List", "items": more}
        (folder / "routes.json").write_text(json.dumps(listed))
        told.write_text("")
        run = start("-f", str(folder), "--workers", "1")
        run.wait_ready()
        assert mark_of(port) == "v1"
        pids = [run.process.pid, *run.workers()]
        assert run.stop() == 0
        lines = told.read_text().split()
        return [lines.count(str(pid)) for pid in pids]

    assert count(1000) == count(10)


def _of_host(number: int) -> dict[str, object]:
    spec = dict(route("v1")["spec"])
    return {**spec, "hostnames": [f"www-{number}.test"]}
