"""The console of the controller: all fleets, their proxies, problems with their objects; no numbers of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Set
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from console.browser import Browser
from console.conftest import browser as browser
from console.serving import serving
from controller.app import App
from controller.console_source import ConsoleSource
from controller.kube.denials import Denials
from controller.pipeline import Pipeline
from controller.xds_server.fleets import Fleets
from edgefast.api.snapshot import Snapshot
from edgefast.console import Console
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.httpd.server import Request
from edgefast.translate.settings import Settings
from edgefast.xds.proxy_problems import ProxyProblem
from edgefast.xds.rejections import Refused
from tests.translate import world

SECOND = ObjectRef("Gateway", "default", "second")


class Small:
    """An App as far as the console looks at it, with a real pipeline and real fleets."""

    def __init__(self) -> None:
        self.objects = Snapshot.of(
            [
                world.gateway_class(),
                world.gateway(),
                world.gateway("second", 81),
                world.service("web"),
                world.route(0),
                world.route(1),
            ]
        )
        self.fleets = Fleets("me")
        self.pipeline = Pipeline(self, lambda: Settings(standalone=False), self)
        self.options = SimpleNamespace(pod_name="edge-gateway-0", identity="edge-gateway-0_ip")
        self.lease = SimpleNamespace(holder="edge-gateway-0_ip", leading=True)
        self.board = SimpleNamespace(controller="gateway.edge.io/gatewayclass-controller")
        self.cache = SimpleNamespace(counts={"HTTPRoute": 2})
        self.file = SimpleNamespace(problems=(Problem(None, "admin", "Invalid", "of the file"),))
        self.denials = Denials()
        self.why_not = ""
        self.source = ConsoleSource(cast(App, self), lambda: self.why_not)

    async def ready(self) -> None:
        """Everything is read."""

    def snapshot(self) -> Snapshot:
        return self.objects

    def select(self, selections: Set[Any]) -> bool:
        return not selections

    async def sent(self) -> None:
        pass

    def tell(self) -> None:
        """Nobody is told."""

    def publish(self, outcome: Any) -> None:
        for name, shards in outcome.shards.items():
            self.fleets.publish(f"edge-gateway-system/{name}", shards)
        for key in self.fleets.names():
            if key.rpartition("/")[2] not in outcome.shards:
                self.fleets.remove(key)

    async def run(self, *more: Any, removed: Iterable[ObjectRef] = ()) -> None:
        self.objects = self.objects.replace(more, removed)
        await self.pipeline._run_once()


async def ask(console: Console, name: str, **query: str) -> Any:
    path = f"/console/api/{name}"
    reply = await console.routes[("GET", path)](Request("GET", path, query, b"", "localhost"))
    told = msgspec.json.decode(reply.body)
    return told if reply.status == 200 else (reply.status, told["error"])


@pytest.mark.pure
async def test_fleets_problems_and_changes() -> None:
    app = Small()
    console = Console(app.source)
    told = await ask(console, "overview")
    assert (told["fleets"], told["counts"]["routes"], told["numbers"]) == ([], 0, None)
    await app.run()
    first, second = app.fleets.names()
    told = await ask(console, "overview")
    assert told["fleets"] == sorted((first, second))
    assert told["facts"]["said"] == "ready"
    key = next(one for one in told["fleets"] if "-gw-" in one)
    told = await ask(console, "overview", fleet=key)
    assert told["counts"]["routes"] == 2
    problems = await ask(console, "problems", fleet=key)
    assert any("of the file" in one["text"] for one in problems["rows"])

    told = await ask(console, "explain", fleet=key, url="http://h1.example.com/")
    assert told["answers"][0]["status"] in (0, 404, 500, 503)
    assert (await ask(console, "counters", fleet=key))[0] == 404
    assert (await ask(console, "overview", fleet="edge-gateway-system/none"))[0] == 404

    assert (await ask(console, "changes", fleet=key))["steps"] == []
    await app.run(world.route(2))
    told = await ask(console, "changes", fleet=key)
    assert [one["kind"] for one in told["moved"]][:1] == ["host"]
    other = first if second == key else second
    assert (await ask(console, "changes", fleet=other))["steps"] == []

    app.fleets.tell(app.fleets.find(key), "pod-a", app.fleets.version(key), ())
    app.fleets.tell(app.fleets.find(key), "pod-b", "old", ())
    refused = Refused("cluster", "c", "no room")
    app.fleets.tell(app.fleets.find(key), "pod-c", app.fleets.version(key), (refused,))
    rows = (await ask(console, "members"))["rows"]
    assert {one["name"]: one.get("state", "good") for one in rows} == {
        "pod-a": "good",
        "pod-b": "late",
        "pod-c": "bad",
    }
    assert all(one["group"] == key for one in rows)
    trouble = ProxyProblem("EdgeGateway", "", "", "rateLimit.backend", "NotCounted", "R is down")
    app.fleets.tell(app.fleets.find(key), "pod-a", app.fleets.version(key), (), (trouble,))
    rows = (await ask(console, "members"))["rows"]
    assert [one["said"] for one in rows if one["name"] == "pod-a"] == ["serves, with problems"]
    problems = (await ask(console, "problems", fleet=key))["rows"]
    said = "EdgeGateway rateLimit.backend: NotCounted R is down (reported by 1 of 3 proxies of "
    assert any(said in one["text"] for one in problems)
    app.why_not = "not read yet: HTTPRoute"
    facts = (await ask(console, "overview"))["facts"]
    assert (facts["state"], facts["said"]) == ("late", "not read yet: HTTPRoute")


@pytest.mark.pure
async def test_nothing_is_kept_of_a_fleet_that_is_gone() -> None:
    app = Small()

    def objects() -> list[tuple[str, int]]:
        return [(name, len(past.look().newest)) for name, past in sorted(app.source._past.items())]

    console = Console(app.source)
    await app.run()
    second = next(one for one in app.fleets.names() if "second" in one)
    first = next(one for one in app.fleets.names() if one != second)
    name = second.rpartition("/")[2]
    await app.run(world.gateway("second", 82))
    told = await ask(console, "changes", fleet=second)
    assert len(told["steps"]) == 1
    await app.run(removed=[SECOND])
    assert name not in dict(objects()) and len(objects()) == 1
    assert name not in app.source._accepted
    await app.run(world.route(2))
    await ask(console, "overview", fleet=first)
    assert list(console._kept) == [first]
    assert (await ask(console, "overview", fleet=second))[0] == 404

    await app.run(world.gateway("second", 83))
    assert (await ask(console, "changes", fleet=second))["steps"] == []
    await app.run(world.gateway("second", 84))
    (step,) = (await ask(console, "changes", fleet=second))["steps"]
    (other,) = (await ask(console, "changes", fleet=first))["steps"]
    assert step["number"] != other["number"]
    await app.run(removed=[SECOND])
    assert len(objects()) == 1


@pytest.fixture
def app() -> Iterator[Small]:
    """Two fleets with proxies."""
    made = Small()
    asyncio.run(made.run())
    for key in made.fleets.names():
        for number in range(3):
            made.fleets.tell(made.fleets.find(key), f"pod-{number}", made.fleets.version(key), ())
    yield made


@pytest.mark.wire
@pytest.mark.timeout(300)
def test_in_a_browser(browser: Browser, app: Small) -> None:
    with serving(lambda: Console(app.source).routes) as url, browser.page(url) as page:
        page.until("document.body.dataset.ready")
        assert page.run("document.querySelectorAll('#fleet option').length") == 2
        assert page.run("getComputedStyle(document.querySelector('.card-rate')).display") == "none"
        assert "Proxies" in page.text("#tab-members")
        page.until("document.querySelectorAll('.tree .row').length > 1")
        other = page.run("document.querySelector('#fleet').options[1].value")
        page.run("document.querySelector('#fleet').selectedIndex = 1")
        page.run("document.querySelector('#fleet').dispatchEvent(new Event('change'))")
        wanted = "default/second" if "second" in other else "default/gw"
        page.until(f"document.querySelector('.tree .row .name')?.textContent === '{wanted}'")
        page.click("#tab-members")
        page.until("document.querySelectorAll('.grid-members tbody tr').length === 6")
        assert "edge-gateway-0_ip" in page.text(".facts")
        assert page.complaints() == []


@pytest.mark.wire
@pytest.mark.timeout(300)
def test_the_fleet_that_is_seen_is_deleted(browser: Browser, app: Small) -> None:
    with serving(lambda: Console(app.source).routes) as url, browser.page(url) as page:
        page.until("document.body.dataset.ready")
        page.run(
            "document.querySelector('#fleet').selectedIndex ="
            " [...document.querySelector('#fleet').options].findIndex((one) => one.value.includes('second'))"
        )
        page.run("document.querySelector('#fleet').dispatchEvent(new Event('change'))")
        page.until("document.querySelector('.tree .row .name')?.textContent === 'default/second'")
        page.expected.append("status of 404")  # the browser logs the refusal by itself
        asyncio.run(app.run(removed=[SECOND]))
        page.until("document.querySelector('.tree .row .name')?.textContent === 'default/gw'")
        page.until("document.querySelector('#lost').hidden")
        assert page.run("document.querySelectorAll('#fleet option').length") == 1
        assert page.complaints() == []
