"""A proxy with limited routes, and the objects for them.

In: objects, and where counters live: a Redis address, or nothing for shared memory. Out: a running `Gateway` with a port
`web`. `skew` moves the clock of all its processes by whole seconds (libfaketime), so that windows prove to be the store's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import yaml

from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.limits.clock import skew_proxy

PASSWORD = "a-word-that-no-log-may-hold"


def limit(requests: int, unit: str = "Year", *users: str, **more: Any) -> make.Object:
    """One limit; years, so that no window ends during a test. `users`: each value of these headers has a counter."""
    made: make.Object = {"limit": {"requests": requests, "unit": unit}, **more}
    if users:
        headers = [{"name": name, "type": "Distinct"} for name in users]
        made["clientSelectors"] = [{"headers": headers}]
    return made


def limits(name: str, *rules: make.Object) -> make.Object:
    """A RateLimitFilter."""
    return {
        "apiVersion": f"{make.EDGE}/v1alpha1",
        "kind": "RateLimitFilter",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "Global", "global": {"rules": list(rules)}},
    }


def limited(*filters: str, path: str = "/", **more: Any) -> make.Object:
    """A rule for requests under a path, with RateLimitFilters, to the Service `origin`."""
    refs = [make.filter_ref(name) for name in filters]
    return make.rule("origin", matches=[make.path(path)], filters=refs, **more)


class LimitProxy(Gateway):
    """Use as a context manager."""

    def __init__(
        self,
        objects: Iterable[make.Object],
        *,
        redis: str = "",
        timeout: str = "2s",
        fail_closed: bool = False,
        skew: int = 0,
        workers: int = 1,
        tell: bool = False,
    ) -> None:
        """`tell`: answers say what is left of limits (EdgeProxy rateLimit)."""
        self._notify = tell
        self.port = free_port()
        self._secret: make.Object = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "store", "namespace": "default"},
            "data": {"password": base64.b64encode(PASSWORD.encode()).decode()},
        }
        super().__init__(self.complete(objects), workers=workers)
        if skew:
            self._prefix = skew_proxy(skew, self.folder)
        settings: dict[str, Any] = {"timeout": timeout, "failClosed": fail_closed}
        if redis:
            server = {"url": redis, "passwordRef": {"name": "store"}}
            settings["backend"] = {"type": "Redis", "redis": server}
        config = self.folder / "config.yaml"
        kind = {"apiVersion": "config.gateway.edge.io/v1alpha1", "kind": "EdgeGateway"}
        config.write_text(yaml.safe_dump({**kind, "rateLimit": settings}))
        self._arguments += ["--config", str(config)]

    def complete(self, objects: Iterable[make.Object]) -> list[make.Object]:
        """The objects with the Gateway and the store's Secret before them, for `apply`."""
        told = {"headers": True, "retryAfter": True}
        return [
            make.gateway("web", [make.listener(self.port)], proxy="web" if self._notify else ""),
            *([make.edge_proxy("web", rateLimit=told)] if self._notify else []),
            self._secret,
            *objects,
        ]

    def client(self) -> Client:
        """A new connection to the port."""
        return Client(("127.0.0.1", self.port))

    def statuses(self, count: int, target: str = "/", **headers: str) -> list[int]:
        """Send requests one after the other on one connection."""
        pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
        with self.client() as client:
            return [client.request("GET", target, "a", pairs).status for _ in range(count)]

    # --- what it tells --------------------------------------------------------------------------------------------

    def lines(self, offset: int = 0) -> list[dict[str, Any]]:
        """Whole lines of the access log from an offset in bytes on, of requests to `web`.

        Connections that end before a request, and questions for the generation, are left out.
        """
        with open(self.folder / "out", "rb") as file:
            file.seek(offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1].splitlines()
        lines = [json.loads(line) for line in whole]
        return [line for line in lines if line.get("path", "/generation") != "/generation"]

    def log_size(self) -> int:
        """Bytes of the access log so far."""
        return (self.folder / "out").stat().st_size

    def stores(self) -> list[Any]:
        """The store by the account of each worker."""
        workers = self.dump()["workers"]
        return [worker["engine"]["rate_limits"]["store"] for worker in workers]

    def is_connected(self) -> bool:
        """Every worker has a connection to the store."""
        stores = self.stores()
        return len(stores) == self.workers and all(store["connected"] for store in stores)

    def counted(self, name: str, **labels: str) -> float:
        """A metric edgefast_ratelimit_<name>_total, which must exist."""
        whole = f"edgefast_ratelimit_{name}_total"
        assert f"# TYPE {whole} counter" in self.get(self.metrics, "/metrics")[1].decode()
        return self.metric(whole, **labels)

    def store_failures(self) -> dict[str, float]:
        """Counters that stay at zero as long as the store does its work."""
        failed = {n: self.counted(n) for n in ("store_errors", "store_timeouts", "store_full")}
        return {**failed, "error": self.counted("requests", result="error")}
