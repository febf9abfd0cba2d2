"""When keys are fetched, how long they are believed, and what workers are told of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auth.jwt.issuer import NOW, jwk, key_set
from edgefast import ir
from edgefast.ir.credentials import Jwt, JwtProvider, RemoteKeys
from edgefast.proxy.jwks import key_source, target
from edgefast.proxy.jwks.http_fetch import FetchError
from edgefast.proxy.jwks.key_delivery import SOURCES, KeyDelivery
from edgefast.proxy.jwks.key_file import LAST
from edgefast.proxy.jwks.key_source import AT_MOST_EVERY, JITTER, NAMED, RETRY_MAX
from edgefast.proxy.tables.arena import Arena
from edgefast.proxy.tables.worker_tables import WorkerTables
from edgefast.table import Shards
from edgefast.table.shards import make_resource
from proxy.jwks.virtual import run_virtually

pytestmark = pytest.mark.pure

URI = "https://idp.test/keys"
IDP = "https://login.test"
OLD, NEW = jwk("ES256", kid="old"), jwk("ES256", 1, kid="new")
encode = msgspec.msgpack.encode


def unit(*remote: RemoteKeys, name: str = "security/ns/p#jwt") -> tuple[str, str, bytes]:
    providers = tuple(JwtProvider(f"p{n}", remote=one) for n, one in enumerate(remote))
    return "policy", name, encode(ir.PolicyUnit(name=name, jwt=Jwt(providers)))


class World:
    """A KeyDelivery, its tables, and issuers whose answers are the test's."""

    def __init__(self, folder: Path | None = None) -> None:
        self.arena = Arena(1 << 24)
        self.ledger = WorkerTables(self.arena)
        self.fetch = KeyDelivery(self.arena, folder, clock=self.clock)
        self.answers: dict[str, bytes | Exception | None] = {}  # None: it hangs
        self.calls: list[tuple[float, str]] = []
        self.at_once = self.most = 0
        self.tables = 0

    @staticmethod
    def clock() -> float:
        return NOW + asyncio.get_running_loop().time() - 1000

    def publishes(self, *keys: Any, uri: str = URI) -> None:
        self.answers[uri] = json.dumps({"keys": keys}).encode()

    async def get(self, asked: Any, names: Any, **_: Any) -> bytes:
        uri = f"https://{asked.authority}{asked.path}"
        self.calls.append((round(self.clock() - NOW, 3), uri))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0.1)
            answer = self.answers.get(uri, FetchError("connection refused"))
            if answer is None:
                await asyncio.sleep(10)
                raise FetchError("no answer within 10 s")
            if isinstance(answer, Exception):
                raise answer
            return answer
        finally:
            self.at_once -= 1

    def table(self, *resources: tuple[str, str, bytes]) -> None:
        self.tables += 1
        made = {(one[0], one[1]): make_resource(*one) for one in resources}
        self.ledger.advance(Shards(made, f"{self.tables}"))
        self.fetch.follow(self.ledger.current.touched, self.ledger.current.placed)

    @property
    def keys(self) -> dict[str, bytes]:
        return {uri: told.data for (uri, _, _), told in self.fetch.told.items()}

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.calls]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    def go(main: Callable[[World], Coroutine[Any, Any, None]], *, disk: bool = False) -> None:
        async def within() -> None:
            world = World(tmp_path if disk else None)
            monkeypatch.setattr(key_source, "fetch", world.get)
            monkeypatch.setattr(target, "_context", lambda: None)  # which takes its time
            running = asyncio.create_task(world.fetch.run())
            try:
                await main(world)
                assert not running.done(), running.exception()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                world.arena.close()

        run_virtually(within(), monkeypatch)

    return go


def test_fetched_at_once_and_now_and_then(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.publishes(OLD)
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(1)
        assert world.keys == {URI: key_set(OLD)}
        serial = world.fetch.told[URI, "", ""].serial
        await asyncio.sleep(299 * 10)
        gaps = [b - a for a, b in zip(world.times, world.times[1:], strict=False)]
        assert 9 <= len(world.calls) <= 12
        assert all(300 * (1 - JITTER) <= gap <= 301 * (1 + JITTER) for gap in gaps)
        assert len(set(gaps)) > 3
        assert world.fetch.told[URI, "", ""].serial == serial, "the same again is not told"
        world.publishes(OLD, NEW)
        await asyncio.sleep(340)
        assert world.keys == {URI: key_set(OLD, NEW)}
        assert world.fetch.problems == ()

    run(main)


def test_failures_are_told_and_tried_again_ever_less_often(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        told: list[int] = []
        world.fetch.on_problems = lambda: told.append(len(world.fetch.problems))
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(600)
        assert world.keys == {URI: b""}
        gaps = [b - a for a, b in zip(world.times, world.times[1:], strict=False)]
        assert gaps[0] >= 1 and all(gap <= RETRY_MAX * (1 + JITTER) + 1 for gap in gaps)
        assert 10 < len(gaps) < 25
        (problem,) = world.fetch.problems
        assert str(problem.object) == "SecurityPolicy ns/p" and problem.severity == "warning"
        assert "connection refused; requests with its tokens get 503" in problem.text()
        assert 'KeysNotFetched provider "p0": the keys at https://idp.test/keys' in problem.text()
        assert told == [1] and world.fetch.failing() == {("ns/p", "p0"): True}
        world.publishes(OLD)
        await asyncio.sleep(70)
        assert world.fetch.failing() == {("ns/p", "p0"): False}
        assert world.keys == {URI: key_set(OLD)} and world.fetch.problems == () and told == [1, 0]

    run(main)


@pytest.mark.parametrize(
    "answer", [b"<html>", b'{"keys":[]}', FetchError("status 500"), OSError("x")]
)
def test_the_last_good_ones_are_believed_for_a_day(run: Callable[..., None], answer: Any) -> None:
    async def main(world: World) -> None:
        world.publishes(OLD)
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(1)
        world.answers[URI] = answer
        await asyncio.sleep(LAST - 100)
        assert world.keys == {URI: key_set(OLD)}
        (problem,) = world.fetch.problems
        assert "the previous keys stay in use for 24 h after their fetch" in problem.text()
        await asyncio.sleep(100 + RETRY_MAX * 2)
        assert world.keys == {URI: b""}

    run(main)


def test_from_disk_while_nobody_answers(run: Callable[..., None], tmp_path: Path) -> None:
    async def first(world: World) -> None:
        world.publishes(OLD)
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(1)

    async def second(world: World) -> None:
        world.answers[URI] = None
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(0.001)
        assert world.keys == {URI: key_set(OLD)}, "before the first fetch is over"
        await asyncio.sleep(3600)
        assert world.keys == {URI: key_set(OLD)}
        await asyncio.sleep(LAST)
        assert world.keys == {URI: b""}

    run(first, disk=True)
    run(second, disk=True)


def test_a_key_that_nobody_knows_is_fetched_but_seldom(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.publishes(OLD)
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(20)
        world.publishes(OLD, NEW)
        serial = world.fetch.told[URI, "", ""].serial
        world.fetch.ask((URI, "", ""))
        await asyncio.sleep(0.2)
        assert world.keys == {URI: key_set(OLD, NEW)} and len(world.calls) == 2
        for _ in range(95):
            world.fetch.ask((URI, "", ""))
            before = world.fetch.told[URI, "", ""].serial
            await asyncio.sleep(0.1)
            assert world.fetch.told[URI, "", ""].serial > before, "every question is answered"
        assert len(world.calls) == 2
        await asyncio.sleep(1)
        world.fetch.ask((URI, "", ""))
        await asyncio.sleep(0.2)
        assert len(world.calls) == 3 and world.times[2] - world.times[1] >= AT_MOST_EVERY
        assert world.fetch.told[URI, "", ""].serial > serial
        world.fetch.ask(("https://unknown.test", "", ""))
        await asyncio.sleep(1)
        assert list(world.keys) == [URI]

    run(main)


def test_a_new_key_in_a_login_is_fetched_at_once_but_not_often(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        spec = RemoteKeys(URI)
        world.publishes(OLD)
        world.table(unit(spec))
        await asyncio.sleep(0.2)
        for kid in ("old", "", "old"):
            world.fetch.on_id_token(spec, kid)
            await asyncio.sleep(2)
        assert len(world.calls) == 1, "these are known"
        world.publishes(OLD, NEW)
        world.fetch.on_id_token(spec, "new")
        world.fetch.ask((URI, "", ""))
        await asyncio.sleep(0.2)
        assert world.keys == {URI: key_set(OLD, NEW)} and len(world.calls) == 2
        world.fetch.on_id_token(spec, "other")  # just after a fetch: it waits, and so do workers
        before = world.fetch.told[URI, "", ""].serial
        world.fetch.ask((URI, "", ""))
        await asyncio.sleep(0.5)
        assert world.fetch.told[URI, "", ""].serial == before and len(world.calls) == 2
        await asyncio.sleep(1)
        assert world.fetch.told[URI, "", ""].serial > before and len(world.calls) == 3
        for at in range(100):
            world.fetch.on_id_token(spec, "other")
            world.fetch.on_id_token(spec, f"k{at}")
            await asyncio.sleep(0.1)
        assert len(world.calls) <= 3 + 2 * NAMED
        world.fetch.on_id_token(RemoteKeys("https://unknown.test"), "x")

    run(main)


def test_questions_do_not_wear_out_an_issuer_that_is_down(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.table(unit(RemoteKeys(URI)))
        for _ in range(1200):
            world.fetch.ask((URI, "", ""))
            await asyncio.sleep(0.1)
        assert len(world.calls) <= 5 + 120 / AT_MOST_EVERY

    run(main)


def test_a_source_that_no_table_names_is_forgotten(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        other = "https://other.test/keys"
        world.publishes(OLD)
        world.publishes(NEW, uri=other)
        world.table(
            unit(RemoteKeys(URI), RemoteKeys(other)),
            unit(RemoteKeys(URI), name="security/ns/q#jwt"),
        )
        await asyncio.sleep(1)
        assert world.keys == {URI: key_set(OLD), other: key_set(NEW)}
        assert len(world.calls) == 2, "one fetch for all policies"
        world.table(unit(RemoteKeys(URI), name="security/ns/q#jwt"))
        assert world.keys == {URI: key_set(OLD)}
        count = len(world.calls)
        await asyncio.sleep(1000)
        assert {uri for _, uri in world.calls[count:]} == {URI}
        world.table()
        await asyncio.sleep(1000)
        assert world.keys == {} and not world.fetch.problems and not world.fetch.failing()
        count = len(world.calls)
        world.table(unit(RemoteKeys(URI)))
        await asyncio.sleep(1)
        assert world.keys == {URI: key_set(OLD)} and len(world.calls) == count + 1

    run(main)


def test_units_that_are_broken_or_ask_for_nothing(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.table(
            ("policy", "security/ns/x#jwt", b"\xc1remote"),
            (
                "policy",
                "security/ns/y#jwt",
                encode(ir.PolicyUnit("security/ns/y#jwt", 500, "remote")),
            ),
            ("policy", "traffic/ns/z", encode(ir.PolicyUnit("traffic/ns/z"))),
            unit(name="security/ns/w#jwt"),
        )
        await asyncio.sleep(10)
        assert world.keys == {} and world.calls == []

    run(main)


def test_an_issuer_of_one_policy_is_not_the_issuer_of_another(run: Callable[..., None]) -> None:
    def login(namespace: str, issuer: str) -> tuple[str, str, bytes]:
        name = f"security/{namespace}/login#oidc"
        remote = RemoteKeys(f"{IDP}/.well-known/openid-configuration", issuer=issuer)
        oidc = ir.Oidc(remote=remote, client_id="c", client_secret=b"s")
        return "policy", name, encode(ir.PolicyUnit(name=name, oidc=oidc))

    async def main(world: World) -> None:
        document = {
            "issuer": IDP,
            "authorization_endpoint": f"{IDP}/authorize",
            "token_endpoint": f"{IDP}/token",
            "jwks_uri": f"{IDP}/keys",
        }
        uri = f"{IDP}/.well-known/openid-configuration"
        world.answers[uri] = json.dumps(document).encode()
        world.publishes(OLD, uri=f"{IDP}/keys")
        world.table(login("aaa", IDP), login("zzz", f"{IDP}/"))
        await asyncio.sleep(2)
        assert world.fetch.provider_of(RemoteKeys(uri, issuer=IDP)) is not None
        assert world.fetch.provider_of(RemoteKeys(uri, issuer=f"{IDP}/")) is None
        (problem,) = world.fetch.problems
        assert "zzz/login" in problem.text() and "another issuer" in problem.text()

    run(main)


def test_a_cluster_is_asked_as_the_table_has_it(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        spec = RemoteKeys("http://idp.ns/keys", "service/ns/idp/80")
        source = (spec.uri, spec.cluster, spec.issuer)
        world.publishes(OLD, uri="https://idp.ns/keys")
        world.table(unit(spec))
        await asyncio.sleep(200)
        assert world.fetch.told[source].data == b"" and world.calls == []
        assert "service/ns/idp/80 not found" in world.fetch.problems[0].text()
        cluster = ir.Cluster(name=spec.cluster, endpoints=(ir.Endpoint("10.0.0.1", 80),))
        world.table(unit(spec), ("cluster", cluster.name, encode(cluster)))
        await asyncio.sleep(1)
        assert world.fetch.told[source].data == key_set(OLD), "as soon as there is one"

    run(main)


def test_times_of_several_policies(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        world.publishes(OLD)
        world.table(
            unit(RemoteKeys(URI, every=600_000)),
            unit(RemoteKeys(URI, every=100_000), name="security/ns/q#jwt"),
        )
        await asyncio.sleep(1001)
        assert 9 <= len(world.calls) <= 12
        world.table(unit(RemoteKeys(URI, every=600_000)))
        await asyncio.sleep(120)
        count = len(world.calls)
        await asyncio.sleep(6000)
        assert 9 <= len(world.calls) - count <= 12

    run(main)


def test_those_that_hang_do_not_hold_up_the_others(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        hanging = [RemoteKeys(f"https://h{n}.test/keys") for n in range(150)]
        for one in hanging:
            world.answers[one.uri] = None
        world.table(unit(*hanging))
        await asyncio.sleep(120)
        assert world.most <= key_source.AT_ONCE + key_source.SUSPECTS
        world.publishes(OLD)
        world.table(unit(*hanging), unit(RemoteKeys(URI), name="security/ns/q#jwt"))
        await asyncio.sleep(1)
        assert world.keys[URI] == key_set(OLD)

    run(main)


def test_more_sources_than_are_fetched(run: Callable[..., None]) -> None:
    async def main(world: World) -> None:
        many = [RemoteKeys(f"https://h{n:03}.test/keys") for n in range(SOURCES + 2)]
        for one in many:
            world.publishes(OLD, uri=one.uri)
        world.table(unit(*many))
        await asyncio.sleep(60)
        assert len(world.calls) == SOURCES and len(world.keys) == SOURCES + 2
        left = [uri for uri, data in world.keys.items() if not data]
        assert left == [one.uri for one in many[SOURCES:]]
        assert len(world.fetch.problems) == 2
        assert "the limit of 256 key sets" in world.fetch.problems[0].text()
        assert sum(world.fetch.failing().values()) == 2
        before = world.fetch.told[left[0], "", ""].serial
        world.fetch.ask((left[0], "", ""))
        assert world.fetch.told[left[0], "", ""].serial > before
        world.table(unit(*many[2:]))
        await asyncio.sleep(60)
        assert all(world.keys.values()) and len(world.keys) == SOURCES and not world.fetch.problems

    run(main)


def test_keys_that_are_not_used_are_logged(
    run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def main(world: World) -> None:
        world.publishes(OLD, {"kty": "oct", "k": "c2VjcmV0c2VjcmV0", "kid": "s"})
        world.table(unit(RemoteKeys(URI + "?token=c2VjcmV0c2VjcmV0")))
        world.answers[URI + "?token=c2VjcmV0c2VjcmV0"] = world.answers[URI]
        await asyncio.sleep(1000)

    run(main)
    assert [one.getMessage() for one in caplog.records if "is not used" in one.getMessage()] == [
        f'jwt: a key of {URI}?token=<16 characters, not shown> is not used: keys[1] (kid "s"): a shared secret (oct) is not used '
        "because it can also sign tokens; let the issuer sign with RSA, EC or Ed25519"
    ]
    assert "c2VjcmV0" not in caplog.text
