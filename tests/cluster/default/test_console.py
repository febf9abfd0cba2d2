"""The console inside its pods: a controller's and a proxy's, asked over their loopback as `kubectl port-forward` does."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from cluster.controller_parts import wait_for
from cluster.installed import Installed, backend_of, fleet_of, gateway, route
from cluster.world.api import Api

_FLEET = "gateway.edge.io/owning-gateway-name={name},gateway.edge.io/owning-gateway-namespace={namespace}"


class Console:
    """The console of one pod."""

    def __init__(self, made: Installed, pod: dict[str, Any], container: str) -> None:
        self._made, self._container = made, container
        self.pod = pod["metadata"]["name"]
        self.address = pod["status"]["podIP"]

    def fetch(self, address: str, path: str) -> tuple[int, str]:
        """Ask from inside the pod; exit status of curl, and the body."""
        command = ("curl", "-sS", "--max-time", "10", f"http://{address}:19000/console/{path}")
        done = self._made.world.workloads.execute(
            self._made.namespace, self.pod, self._container, command
        )
        return done.returncode, done.stdout

    def ask(self, what: str, **query: str) -> Any:
        """Return an answer of the page's own questions."""
        status, body = self.fetch("127.0.0.1", f"api/{what}?{urlencode(query)}")
        assert status == 0, body
        told = json.loads(body)
        assert "error" not in told, told
        return told

    def rows(self, node: str = "", fleet: str = "") -> list[dict[str, Any]]:
        """Return the lines of the tree below a node."""
        found: list[dict[str, Any]] = self.ask("tree", node=node, fleet=fleet)["page"]["rows"]
        return found

    def path(self, fleet: str = "") -> list[tuple[str, str, str]]:
        """Return (kind, name, about) of the first line on each level."""
        found, node = [], ""
        while rows := self.rows(node, fleet):
            found.append((rows[0]["kind"], rows[0]["name"], rows[0].get("about", "")))
            node = rows[0]["id"]
        return found


def controller_of(made: Installed) -> Console:
    """Return the console of the controller."""
    return Console(made, made.controller_pod(), "edge-gateway")


def proxies_of(made: Installed, namespace: str, name: str) -> list[Console]:
    """Return the consoles of a Gateway's proxies."""
    labels = _FLEET.format(name=name, namespace=namespace)
    pods = made.world.workloads.pods(made.namespace, labels)
    return [Console(made, pod, "edge") for pod in pods]


def expected(namespace: str, gateway_: str, host: str) -> list[tuple[str, str, str]]:
    """Return a tree of one of everything, down to the rule."""
    return [
        ("gateway", f"{namespace}/{gateway_}", ""),
        ("listener", "http", "port 80, any host"),
        ("host", host, ""),
        ("rule", "/", f"{namespace}/web rule 0"),
    ]


def test_what_the_cluster_has_is_shown(default: Installed, apps: tuple[str, ...]) -> None:
    api: Api = default.admin
    first, second = apps
    objects = [
        gateway(first, "seen", "eg"),
        gateway(second, "seen", "eg"),
        route(first, "web", "seen", ["one.seen.example"]),
        route(second, "web", "seen", ["two.seen.example"]),
    ]
    api.apply(*objects)
    for namespace, host in ((first, "one.seen.example"), (second, "two.seen.example")):
        address = default.address(namespace, "seen")
        assert backend_of(default.wait_status(address, host)) == namespace
    controller = controller_of(default)
    overview = controller.ask("overview")
    assert overview["kind"] == "controller" and overview["facts"]["name"] == controller.pod
    fleets = {name: fleet_of(f"{name}/seen") for name in apps}
    assert set(fleets.values()) <= {one.rpartition("/")[2] for one in overview["fleets"]}

    before = {}
    for namespace, host in ((first, "one.seen.example"), (second, "two.seen.example")):
        (key,) = (one for one in overview["fleets"] if one.endswith(fleets[namespace]))
        (proxy,) = proxies_of(default, namespace, "seen")
        tree = controller.path(key)
        assert tree[:4] == expected(namespace, "seen", host)
        assert tree[4][:2] == ("backend", f"service/{namespace}/echo/80")
        own = proxy.path()
        assert own[:4] == tree[:4] and own[4][:2] == tree[4][:2]  # it knows more of its endpoints
        before[namespace] = check_versions(controller, proxy, key)

    # Another host: a new version of that table, held by its proxy, and none of the other one.
    api.apply(route(first, "web", "seen", ["three.seen.example"]))
    default.wait_status(default.address(first, "seen"), "three.seen.example")
    (key,) = (one for one in overview["fleets"] if one.endswith(fleets[first]))
    (proxy,) = proxies_of(default, first, "seen")
    after = check_versions(controller, proxy, key)
    assert after != before[first]
    assert controller.path(key)[2][1] == proxy.path()[2][1] == "three.seen.example"
    (other,) = (one for one in overview["fleets"] if one.endswith(fleets[second]))
    assert controller.ask("overview", fleet=other)["table"]["version"] == before[second]
    assert controller.ask("changes", fleet=key)["steps"], "the last change of the table"

    told = proxy.ask("explain", method="GET", url="http://three.seen.example/a")
    assert f"{first}/web" in json.dumps(told)
    # Loopback is the only way in: from one pod to the address of another, and of its own, nobody listens.
    status, _ = proxy.fetch(controller.address, "")
    assert status == 7, "curl: failed to connect"
    assert proxy.fetch(proxy.address, "")[0] == 7
    for one in objects:
        path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{one['metadata']['namespace']}"
        plural = "gateways" if one["kind"] == "Gateway" else "httproutes"
        api.delete(f"{path}/{plural}/{one['metadata']['name']}")

    def are_gone() -> bool:
        shown = {one.rpartition("/")[2] for one in controller.ask("overview")["fleets"]}
        return not shown & set(fleets.values())

    wait_for("fleets of Gateways that are gone leave the page", are_gone)


def check_versions(controller: Console, proxy: Console, fleet: str) -> str:
    """Wait until the one proxy of a fleet holds its table, by the words of both; return the version."""

    def agree() -> str:
        overview = controller.ask("overview", fleet=fleet)
        members = controller.ask("members", fleet=fleet)["rows"]
        (one,) = (member for member in members if proxy.pod in member["name"])
        version = str(overview["table"]["version"])
        own = proxy.ask("overview")
        same = one["version"] == version == own["table"]["version"]
        return version if same and one.get("said") == "serves" else ""

    return str(wait_for("the proxy holds the table of the fleet", agree))
