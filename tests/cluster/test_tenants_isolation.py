"""Three tenants, each with a controller of its own in its own namespace: no answer of one for a request of another."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cluster.installed import (
    GATEWAY,
    Installed,
    applications,
    backend_of,
    edge_proxy,
    gateway,
    installed,
    route,
)
from cluster.world.api import ApiError
from cluster.world.world import World

SEED = 20261121
ROUTES = 12  # of each tenant
REQUESTS = 400


class Tenant:
    """A release that watches the tenant's namespace only, with one Gateway and random routes there."""

    def __init__(self, world: World, made: Installed, namespace: str, draw: random.Random) -> None:
        self.made, self.namespace = made, namespace
        name = made.namespace
        world.admin.apply(
            edge_proxy(name, "edge"),
            made.gateway_class(name, (name, "edge")),
            gateway(namespace, "eg", name),
        )
        #: (host, path prefix); "shared.example" is everybody's.
        self.places = [
            (draw.choice(("shared.example", f"{_word(draw)}.example")), f"/{_word(draw)}")
            for _ in range(ROUTES)
        ]
        world.admin.apply(
            *(
                route(namespace, f"r{number}", "eg", [host], path=path)
                for number, (host, path) in enumerate(self.places)
            )
        )
        self.address = ""

    def serves(self, host: str, path: str) -> bool:
        """Whether a route of the tenant matches."""
        return any(
            host == mine and (path == prefix or path.startswith(f"{prefix}/"))
            for mine, prefix in self.places
        )


def _word(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghij", k=draw.randint(1, 6)))


@pytest.fixture(scope="module")
def tenants(world: World) -> Iterator[list[Tenant]]:
    """Three of them; two with the default name of the release, one with another, one with tokens."""
    draw = random.Random(SEED)
    with ExitStack() as stack:
        made = []
        for deploy in ("ControllerNamespace", "ControllerNamespace", "GatewayNamespace"):
            (namespace,) = stack.enter_context(applications(world, "tenant"))
            watch = {"type": "Namespaces", "namespaces": [namespace]}
            config = {"provider": {"orchestrator": {"deploy": {"type": deploy}, "watch": watch}}}
            release = stack.enter_context(installed(world, config))
            made.append(Tenant(world, release, namespace, draw))
        for one in made:
            one.address = one.made.address(one.namespace, "eg")
            for number, (host, path) in enumerate(one.places):
                one.made.wait_route(one.namespace, f"r{number}")
                one.made.wait_status(one.address, host, path=path)
        yield made


def test_no_tenant_answers_for_another(tenants: list[Tenant]) -> None:
    """Every place of every tenant, and paths below, beside and in other case, at every address."""
    draw = random.Random(SEED + 1)
    places = [place for one in tenants for place in one.places]
    hosts = [host for host, _ in places] + ["nobody.example"]
    seen = {200: 0, 404: 0}
    for _ in range(REQUESTS):
        host, path = draw.choice(places)
        if draw.random() < 0.3:
            host = draw.choice(hosts)
        path += draw.choice(("", "", "/", "/below", "x", "/../a", "?a=/b"))
        shown = host.upper() if draw.random() < 0.1 else host
        one = draw.choice(tenants)
        answer = one.made.ask(one.address, shown, path)
        plain = path.partition("?")[0]
        plain = "/a" if plain.endswith("/../a") else plain
        wanted = 200 if one.serves(host, plain) else 404
        assert answer.status == wanted, (SEED, one.namespace, shown, path, answer)
        seen[wanted] += 1
        if wanted == 200:
            assert backend_of(answer) == one.namespace, (SEED, shown, path)
        else:
            assert (answer.headers["content-length"], answer.body) == ("0", b"")
    assert min(seen.values()) > REQUESTS / 10, seen


def test_a_foreign_host_is_404_with_every_address_and_class(tenants: list[Tenant]) -> None:
    """A route that names a Gateway of another tenant changes nothing there, and gets no word from it."""
    for mine, other in zip(tenants, tenants[1:] + tenants[:1], strict=True):
        mine.made.admin.apply(
            route(
                mine.namespace, "thief", "eg", ["stolen.example"], parent_namespace=other.namespace
            )
        )
        # Something later of each is served: the one before has been seen by then.
        for one in (mine, other):
            late = route(one.namespace, "late", "eg", ["late.example"])
            one.made.admin.apply(late)
            one.made.wait_route(one.namespace, "late")
            assert backend_of(one.made.wait_status(one.address, "late.example")) == one.namespace
            assert one.made.ask(one.address, "stolen.example").status == 404
            one.made.admin.remove(late)
            one.made.wait_status(one.address, "late.example", 404)
        path = f"/apis/{GATEWAY}/namespaces/{mine.namespace}/httproutes/thief"
        status = mine.made.admin.get(path).get("status", {})
        assert not status.get("parents"), "neither controller has a word to say"


def test_the_account_of_a_tenant_reads_nothing_of_another(tenants: list[Tenant]) -> None:
    """Secrets, fleets and routes of others are forbidden; so is what lies in the other controllers' namespaces."""
    for mine in tenants:
        account = mine.made.world.accounts.api_for(f"{mine.made.namespace}/edge-gateway")
        for other in tenants:
            if other is mine:
                continue
            for path in (
                f"/api/v1/namespaces/{other.namespace}/secrets",
                f"/api/v1/namespaces/{other.made.namespace}/secrets",
                f"/apis/{GATEWAY}/namespaces/{other.namespace}/httproutes",
                f"/apis/apps/v1/namespaces/{other.made.namespace}/deployments",
            ):
                with pytest.raises(ApiError) as told:
                    account.get(path)
                assert told.value.status == 403, path


def test_what_a_proxy_holds_names_no_other_tenant(tenants: list[Tenant]) -> None:
    """The tables in a pod have the tenant's own hosts only."""
    for mine in tenants:
        where = (
            mine.namespace
            if mine.made.config["provider"]["orchestrator"]["deploy"]["type"] == "GatewayNamespace"
            else mine.made.namespace
        )
        (pod,) = mine.made.world.workloads.pods(where, "app.kubernetes.io/component=proxy")
        done = mine.made.world.workloads.execute(
            where, pod["metadata"]["name"], "edge", ["curl", "-s", "http://127.0.0.1:19000/dump"]
        )
        assert done.returncode == 0, done.stderr
        text = json.dumps(json.loads(done.stdout))
        assert mine.namespace in text
        for other in tenants:
            if other is not mine:
                assert other.namespace not in text
