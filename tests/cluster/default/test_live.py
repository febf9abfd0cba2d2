"""`edgefast explain --live`, `diff --live` and `status` through a kubeconfig: what they say is what the cluster does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.controller_parts import wait_for
from cluster.installed import GATEWAY, Installed, backend_of, fleet_of, gateway, listener, route
from cluster.world.accounts import Accounts
from cluster.world.api import ApiError
from tests.support.manifest import manifest

HOST = "www.live.example"


class Command:
    """`edgefast` with a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)

    def words(self, name: str, *words: str) -> list[str]:
        """Return the command line."""
        where = ("--kubeconfig", self._kubeconfig)
        return [sys.executable, "-m", "edgefast.cli.main", name, *where, *words]

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.words(name, *words),
            capture_output=True,
            text=True,
            timeout=180,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def ask(self, name: str, *words: str) -> tuple[int, Any]:
        """Run it and read its JSON."""
        done = self.run(name, *words, "-o", "json")
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def site(default: Installed, apps: tuple[str, ...]) -> str:
    """Two Gateways: one in each namespace, a route on the first; return the first one's address."""
    first, second = apps
    slow = {"timeouts": {"request": "7s"}}
    default.admin.apply(
        gateway(first, "live", "eg"),
        gateway(second, "other", "eg", listener(hostname="*.other.example")),
        route(first, "web", "live", [HOST], path="/shop", **slow),
        route(second, "web", "other", ["www.other.example"]),
    )
    address = default.address(first, "live")
    other = default.address(second, "other")
    assert backend_of(default.wait_status(other, "www.other.example")) == second
    assert backend_of(default.wait_status(address, HOST, path="/shop/a")) == first
    return address


@pytest.fixture
def command(default: Installed) -> Command:
    """As the cluster's administrator."""
    return Command(default.world.kubeconfig)


def explain(command: Command, *words: str) -> tuple[int, Any]:
    """`edgefast explain --live`."""
    return command.ask("explain", "--live", *words)


def diff(command: Command, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """`edgefast diff --live`."""
    status, told = command.ask("diff", "--live", *words)
    return status, told["changes"]


def save(folder: Path, *objects: dict[str, Any]) -> str:
    """Write a file to apply."""
    path = folder / "change.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def pods_of(made: Installed, namespace: str, name: str) -> list[str]:
    """Return the proxies of a Gateway."""
    labels = f"gateway.edge.io/owning-gateway-name={name},gateway.edge.io/owning-gateway-namespace={namespace}"
    return [one["metadata"]["name"] for one in made.world.workloads.pods(made.namespace, labels)]


def test_explain_says_what_the_proxies_do(
    default: Installed, apps: tuple[str, ...], site: str, command: Command
) -> None:
    first, _ = apps
    words = ("GET", f"http://{HOST}/shop/a", "-H", "x-user: ann")
    # The last change may be on its way to the proxies still.
    same = "live: 1 of 1 proxies serve this table"
    status, told = wait_for(
        same, lambda: (found := explain(command, *words)) and same in found[1]["notes"] and found
    )
    assert status == 0, told
    assert told["rule"]["route"] == f"{first}/web"
    place = told["rule"]["place"]
    assert place["object"] == f"HTTPRoute {first}/web" and place["source"] == "generation 1"
    assert told["listener"]["name"] == f"{first}/live/http"
    assert told["timeouts"]["request"] == 7000
    (backend,) = told["backends"]
    selector = f"/apis/discovery.k8s.io/v1/namespaces/{first}/endpointslices"
    slices = default.admin.items(selector, labelSelector="kubernetes.io/service-name=echo")
    there = {
        f"{one['addresses'][0]}:{part['ports'][0]['port']}"
        for part in slices
        for one in part["endpoints"]
    }
    assert {one["address"] for one in backend["endpoints"]} == there and there
    # What is live is said.
    notes = "\n".join(told["notes"])
    assert "ConfigMap edge-gateway-system/edge-gateway-config" in notes
    assert f"Gateway {first}/live" in notes
    assert "not included: ejected endpoints" in notes

    # An edit is a new generation, at once; what the proxies do with it follows.
    path = f"/apis/{GATEWAY}/namespaces/{first}/httproutes/web"
    default.admin.patch(path, {"metadata": {"labels": {"a": "b"}}, "spec": {"hostnames": [HOST]}})
    default.admin.apply(route(first, "web", "live", [HOST, f"two.{HOST}"], path="/shop"))
    assert default.wait_status(site, f"two.{HOST}", path="/shop")
    status, told = explain(command, "GET", f"http://two.{HOST}/shop")
    assert (status, told["rule"]["place"]["source"]) == (0, "generation 2")


def test_diff_says_what_applying_does(
    default: Installed, apps: tuple[str, ...], site: str, command: Command, tmp_path: Path
) -> None:
    first, _ = apps
    as_it_is = route(first, "plain", "live", ["plain.live.example"])
    default.admin.apply(as_it_is)
    assert default.wait_status(site, "plain.live.example")
    assert diff(command, save(tmp_path, as_it_is)) == (0, [])

    # A file replaces what has its name; all else stays.
    moved = route(first, "plain", "live", ["plain.live.example"], path="/below")
    status, changes = diff(command, save(tmp_path, moved))
    assert status == 3
    (lost,) = [one for one in changes if one.get("breaks")]
    assert lost["before"]["source"] == "generation 1"
    assert lost["example"]["url"] == "http://plain.live.example/"
    assert all("plain" in json.dumps(one) for one in changes), changes

    # A new route, with a new Service behind it, in the namespace that is named for objects without one.
    service = manifest(
        "Service new", {"selector": {"app": "echo"}, "ports": [{"port": 80, "targetPort": "http"}]}
    )
    new = route(first, "new", "live", ["new.live.example"], service="new")
    del new["metadata"]["namespace"]
    file = save(tmp_path, new, service)
    status, changes = diff(command, "-n", first, file)
    assert status == 1
    (gained,) = [one for one in changes if one["kind"] == "gained"]
    assert gained["after"]["answer"] == f"service/{first}/new/80"
    assert gained["after"]["source"].startswith(f"{file}:")
    done = command.run("diff", "--live", "-n", first, file)
    assert f"Service {first}/new is new" in done.stderr
    assert [one for one in changes if one["kind"] == "condition"] == []

    # In the kubeconfig's namespace, where `kubectl apply` would put it, it is nobody's route.
    assert diff(command, file) == (0, [])

    # What was told is what applying does.
    default.admin.apply({**new, "metadata": {"name": "new", "namespace": first}})
    default.admin.apply({**service, "metadata": {"name": "new", "namespace": first}})
    assert default.wait_status(site, "new.live.example", 200)
    status, changes = diff(command, "-n", first, file)
    assert (status, changes) == (0, [])


def test_with_a_credential_that_may_read_no_secret(
    default: Installed, apps: tuple[str, ...], site: str
) -> None:
    """Routing is explained all the same; what is not known is said."""
    first, _ = apps
    rules = [
        {"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list"]}
        for group in (
            *("gateway.networking.k8s.io", "gateway.networking.x-k8s.io"),
            *("gateway.edge.io", "discovery.k8s.io"),
        )
    ]
    rules.append(
        {
            "apiGroups": [""],
            "resources": ["services", "namespaces", "configmaps"],
            "verbs": ["get", "list"],
        }
    )
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": f"{first}-reader"}}
    subject = {"kind": "ServiceAccount", "namespace": first, "name": "reader"}
    ref = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": f"{first}-reader",
    }
    tls = {**listener("tls", 443, "tls.live.example"), "protocol": "HTTPS"}
    tls["tls"] = {"certificateRefs": [{"name": "held"}]}
    secret = manifest(
        f"Secret {first}/held",
        type="kubernetes.io/tls",
        stringData={"tls.crt": "not sound", "tls.key": "not sound"},
    )
    default.admin.apply(
        {**role, "kind": "ClusterRole", "rules": rules},
        {**role, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": ref},
        secret,
        gateway(first, "tls", "eg", tls),
        route(first, "tls", "tls", ["tls.live.example"]),
    )
    accounts = Accounts(default.admin, default.world.folder)
    reader = Command(accounts.kubeconfig_for(f"{first}/reader"))
    account = accounts.api_for(f"{first}/reader")

    def may_read() -> bool:
        try:
            account.get("/api/v1/configmaps")
        except ApiError as error:
            assert error.status == 403
            return False
        return True

    wait_for("the authorizer knows the role", may_read)
    status, told = explain(reader, "GET", "https://tls.live.example/")
    assert (status, told["rule"]["route"]) == (0, f"{first}/tls"), told
    notes = "\n".join(told["notes"])
    assert f"Secret {first}/held cannot be read (Forbidden); it is assumed to be valid" in notes
    assert "the table that the proxies serve is unknown" in notes and "Forbidden" in notes
    done = reader.run("status", "-n", first, "--admin", "off")
    assert "proxies and traffic are unknown because pods cannot be listed" in done.stdout
    # Without the objects themselves nothing is told.
    default.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{first}-reader")
    default.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{first}-reader")
    wait_for("the authorizer knows it no more", lambda: not may_read())
    done = reader.run(
        "explain", "--live", "--controller", "edge-gateway-system", "GET", "http://a/"
    )
    assert done.returncode == 2 and "403 Forbidden" in done.stderr
    default.admin.delete(f"/apis/{GATEWAY}/namespaces/{first}/gateways/tls")


def test_status_has_rates(
    default: Installed, apps: tuple[str, ...], site: str, command: Command
) -> None:
    first, second = apps
    rate = 60
    with default.world.client.load(f"http://{site}/shop", [HOST], rate) as answers:
        answers.wait_total(20)
        before = answers.total
        status, told = command.ask("status", "-A", "--interval", "2", "--admin", "off")
    assert not answers.unexpected(200)
    assert told["source"].startswith("cluster https://")
    gateways = {one["name"]: one for one in told["gateways"]}
    assert gateways[f"{first}/live"]["addresses"] == [site]
    assert gateways[f"{first}/live"]["programmed"] == "True"
    assert f"{second}/other" in gateways
    rates = {one["route"]: one for one in told["traffic"]}
    found = rates[f"{first}/web"]
    # A slow machine sends less, and what a stall has delayed all at once; nobody counts more than was sent.
    assert rate * 0.2 < found["requests_per_second"], found
    assert found["requests_per_second"] * told["seconds"] < answers.total - before + 10, found
    assert found["error_share"] == 0 and 0 < found["p50_ms"] <= found["p99_ms"]
    assert rates[f"{second}/web"]["requests_per_second"] == 0
    assert 1.9 < told["seconds"]
    proxies = {one["name"]: one for one in told["proxies"]}
    (pod,) = pods_of(default, first, "live")
    mine = proxies[pod]
    assert mine["fleet"] == f"{default.namespace}/{fleet_of(f'{first}/live')}"
    assert mine["ready"] is True and mine["workers"] == "1/1" and mine["table"]
    assert status == (1 if told["problems"] else 0)

    # One namespace: its Gateways, its proxies, its routes.
    _, told = command.ask("status", "-n", second, "--interval", "0.5", "--admin", "off")
    assert {one["name"] for one in told["gateways"]} == {f"{second}/other"}
    assert {one["name"] for one in told["proxies"]} == set(pods_of(default, second, "other"))
    assert {one["route"] for one in told["traffic"]} == {f"{second}/web"}


def test_a_proxy_that_does_not_answer_is_said(
    default: Installed, apps: tuple[str, ...], site: str, command: Command
) -> None:
    """A stopped proxy costs its own numbers and some seconds, never the screen."""
    first, second = apps
    (pod,) = pods_of(default, first, "live")
    number = default.world.workloads.pid(default.namespace, pod, "edge")
    os.kill(number, signal.SIGSTOP)
    try:
        _, told = command.ask("status", "-A", "--interval", "0.2", "--admin", "off")
    finally:
        os.kill(number, signal.SIGCONT)
    (note,) = [one for one in told["notes"] if pod in one]
    assert note.startswith("traffic figures do not include")
    proxies = {one["name"]: one for one in told["proxies"]}
    assert proxies[pod]["ready"] is None and proxies[pod]["state"]
    (other,) = pods_of(default, second, "other")
    assert proxies[other]["ready"] is True
