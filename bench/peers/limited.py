"""edgefast with rate limits: the plain route of a scenario, and three limited ones beside it in the same process.

In: a `Setup`, the port of a redis-server (None: counters in shared memory). Out: objects and a command line, as edgefast.py.
/get/hot: one counter that is never used up; /get/users: a counter for each value of X-User-Id, never used up; /get/spent:
every request but the first is refused. /get has no limit.
"""

import json
from typing import Any

from bench.objects import EDGE_API, GATEWAY_API, NAMESPACE, SERVICE_PORT
from bench.peers.edgefast import Edgefast
from bench.peers.peer import Setup

PLENTY = 2**32 - 1
KINDS = ("hot", "users", "spent")


class LimitedEdgefast(Edgefast):
    """Counts in one store."""

    def __init__(self, redis_port: int | None) -> None:
        self._redis_port = redis_port

    def render(self, setup: Setup) -> list[str]:
        """The plain objects, one file more, and the configuration that names the store."""
        argv = super().render(setup)
        host = setup.scenario.make_route(0).host
        items = [_make_filter(kind) for kind in KINDS]
        items.append(_make_route(host))
        path = setup.folder / "objects" / "limits.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        rate_limit: dict[str, Any] = {
            "failClosed": True
        }  # a store that fails is an error, not a pass
        if self._redis_port is not None:
            url = f"127.0.0.1:{self._redis_port}"
            rate_limit["backend"] = {"type": "Redis", "redis": {"url": url}}
            rate_limit["timeout"] = "1s"
        config = setup.folder / "config.json"
        kind = {"apiVersion": f"config.{EDGE_API}/v1alpha1", "kind": "EdgeGateway"}
        config.write_text(json.dumps({**kind, "rateLimit": rate_limit}))
        return [*argv, "--config", str(config)]


def _make_filter(kind: str) -> dict[str, Any]:
    requests = 1 if kind == "spent" else PLENTY
    rule: dict[str, Any] = {"limit": {"requests": requests, "unit": "Year"}}
    if kind == "users":
        header = {"name": "X-User-Id", "type": "Distinct"}
        rule["clientSelectors"] = [{"headers": [header]}]
    return {
        "apiVersion": f"{EDGE_API}/v1alpha1",
        "kind": "RateLimitFilter",
        "metadata": {"name": kind, "namespace": NAMESPACE},
        "spec": {"type": "Global", "global": {"rules": [rule]}},
    }


def _make_route(host: str) -> dict[str, Any]:
    def make_rule(kind: str) -> dict[str, Any]:
        reference = {"group": EDGE_API, "kind": "RateLimitFilter", "name": kind}
        return {
            "name": kind,
            "matches": [{"path": {"type": "PathPrefix", "value": f"/get/{kind}"}}],
            "filters": [{"type": "ExtensionRef", "extensionRef": reference}],
            "backendRefs": [{"name": "b0", "port": SERVICE_PORT}],
        }

    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "limits", "namespace": NAMESPACE},
        "spec": {
            "parentRefs": [{"name": "bench"}],
            "hostnames": [host],
            "rules": [make_rule(kind) for kind in KINDS],
        },
    }
