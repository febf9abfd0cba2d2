"""The store of counters: its address, its Secrets, and that it follows them without touching a route."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast import ir
from edgefast.api.config.edgegateway_rate_limit import GatewayRateLimit
from edgefast.api.core.secret import Secret
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import ObjectRef
from edgefast.translate import Settings, Translation, Work, translate
from tests.translate import world
from tests.translate.test_incremental import _same

pytestmark = pytest.mark.pure

BASE = (
    world.gateway_class(),
    world.gateway(),
    world.service("web"),
    world.endpoints("web", "10.0.0.1"),
    world.rate_limit_filter("f"),
    world.route(0, filters=world.limited("f")),
    world.route(1),
)


def run(
    rate_limit: GatewayRateLimit, *objects: Object, previous: Translation | None = None
) -> Translation:
    return translate(Snapshot.of([*objects, *BASE]), Settings(rate_limit=rate_limit), previous)


def store_of(translation: Translation) -> ir.RateLimitStore | None:
    return translation.ir.fleets[0].limit_store


def refused(translation: Translation) -> list[str]:
    return [one.text() for one in translation.problems if str(one.object) == "EdgeGateway"]


def test_memory_without_a_backend() -> None:
    assert store_of(run(GatewayRateLimit())) == ir.RateLimitStore(kind="memory")
    config = GatewayRateLimit(timeout="5ms", fail_closed=True)
    store = ir.RateLimitStore(kind="memory", timeout=5, fail_closed=True)
    assert store_of(run(config)) == store


@pytest.mark.parametrize(
    ("url", "address", "tls", "database"),
    [
        ("redis:6379", "redis:6379", False, 0),
        ("redis://redis.store.svc:6380", "redis.store.svc:6380", False, 0),
        ("redis://10.0.0.1", "10.0.0.1:6379", False, 0),
        ("rediss://[fd00::1]/15", "[fd00::1]:6379", True, 15),
        ("[::1]:1", "[::1]:1", False, 0),
    ],
)
def test_addresses(url: str, address: str, tls: bool, database: int) -> None:
    for config, objects in (
        (world.rate_limit(url=url), ()),
        (world.rate_limit(urlRef={"name": "redis"}), (world.secret("redis", url=f"{url}\n"),)),
    ):
        store = store_of(run(config, *objects))
        assert store == ir.RateLimitStore(
            kind="redis", addresses=(address,), tls=tls, database=database
        )


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"url": "redis://u:hunter2@redis:1"}, "the address contains a user or a password"),
        ({"url": "hunter2"}, "expected <host>:<port>"),
        ({"other": "redis:1"}, "Secret default/redis lacks url"),
        ({"url": "\n"}, "expected <host>:<port>"),
    ],
)
def test_what_is_wrong_in_a_secret_is_said_and_not_shown(
    values: dict[str, str], wrong: str
) -> None:
    translation = run(world.rate_limit(urlRef={"name": "redis"}), world.secret("redis", **values))
    (said,) = refused(translation)
    assert wrong in said and "hunter2" not in said
    assert store_of(translation) is None
    rules = [one.rules[0] for one in translation.ir.fleets[0].virtual_hosts]
    assert [one.status for one in rules] == [500, 0]
    assert "Secret" not in rules[0].reason


def test_user_and_password() -> None:
    config = world.rate_limit(url="redis:1", passwordRef={"name": "redis", "key": "pw"})
    store = store_of(run(config, world.secret("redis", pw="hunter2\n", username="edge\n")))
    assert store is not None
    assert (store.user, store.password) == ("edge", "hunter2")
    assert "hunter2" not in repr(store)
    store = store_of(run(config, world.secret("redis", pw=" hunter2")))
    assert store is not None
    assert (store.user, store.password) == ("", " hunter2")
    for data in ({"pw": b"\xff"}, {"pw": b"p", "username": b"\xff"}):
        meta = world.secret("redis").metadata
        (said,) = refused(run(config, Secret(metadata=meta, data=data)))
        assert "is not UTF-8 text" in said


def test_secrets_are_the_controllers_in_a_cluster() -> None:
    config = world.rate_limit(url="redis:1", passwordRef={"name": "redis"})
    cluster = Settings(standalone=False, namespace="edge", rate_limit=config)
    snapshot = Snapshot.of([*BASE, world.secret("redis", password="hunter2")])
    assert refused(translate(snapshot, cluster)) == [
        "EdgeGateway rateLimit.backend.redis.passwordRef: NotFound Secret edge/redis not found"
    ]
    config = world.rate_limit(url="redis:1", passwordRef={"name": "redis", "namespace": "default"})
    cluster = Settings(standalone=False, namespace="edge", rate_limit=config)
    store = translate(snapshot, cluster).ir.fleets[0].limit_store
    assert store is not None and store.password == "hunter2"


def test_authorities() -> None:
    sound = world.authority(True).data["ca.crt"]  # type: ignore[union-attr]
    broken = world.authority(False).data["ca.crt"]  # type: ignore[union-attr]
    tls = {"caCertificateRef": {"name": "redis", "key": "pem"}}
    config = world.rate_limit(url="redis:1", tls=tls)
    store = store_of(run(config, world.secret("redis", pem=sound)))
    assert store is not None
    assert (store.tls, store.ca) == (True, sound.encode())
    for text in (broken, sound * (600_000 // len(sound))):
        (said,) = refused(run(config, world.secret("redis", pem=text)))
        assert "tls.caCertificateRef: Invalid Secret redis: pem " in said


@pytest.mark.parametrize("redis", [{"url": "redis:1/1"}, {}, {"url": "redis:1@"}])
def test_a_configuration_that_no_decoder_let_in_is_refused(redis: dict[str, Any]) -> None:
    assert refused(run(world.rate_limit(**redis)))


def test_a_redis_cluster_has_one_database() -> None:
    config = world.rate_limit(urlRef={"name": "redis"}, cluster=True)
    assert refused(run(config, world.secret("redis", url="redis://redis:1/1")))
    store = store_of(run(config, world.secret("redis", url="redis://redis:1/0")))
    assert store is not None and (store.mode, store.database) == ("cluster", 0)


# --- changes ----------------------------------------------------------------------------------------------------------

CONFIG = world.rate_limit(url="redis:1", passwordRef={"name": "redis"})


def test_a_new_password_costs_no_route() -> None:
    before = run(CONFIG, world.secret("redis", password="one"))
    snapshot = before.memo.world.snapshot.replace([world.secret("redis", password="two")])
    after = translate(snapshot, Settings(rate_limit=CONFIG), before)
    _same(after, translate(snapshot, Settings(rate_limit=CONFIG)))
    assert after.work == Work(routes=0, virtual_hosts=0, clusters=0)
    store = store_of(after)
    assert store is not None and store.password == "two"
    again = translate(snapshot, Settings(rate_limit=CONFIG), after)
    assert again.ir.fleets[0] is after.ir.fleets[0]


def test_a_secret_that_goes_and_comes_back() -> None:
    before = run(CONFIG, world.secret("redis", password="one"))
    gone = before.memo.world.snapshot.replace(removed=[ObjectRef("Secret", "default", "redis")])
    after = translate(gone, Settings(rate_limit=CONFIG), before)
    _same(after, translate(gone, Settings(rate_limit=CONFIG)))
    assert (after.work.routes, after.work.virtual_hosts) == (1, 1)  # the limited one
    assert store_of(after) is None
    back = gone.replace([world.secret("redis", password="one")])
    again = translate(back, Settings(rate_limit=CONFIG), after)
    _same(again, before)


def test_another_configuration() -> None:
    before = run(GatewayRateLimit())
    for config in (CONFIG, world.rate_limit(url="redis:2"), GatewayRateLimit(fail_closed=True)):
        after = translate(before.memo.world.snapshot, Settings(rate_limit=config), before)
        _same(after, translate(before.memo.world.snapshot, Settings(rate_limit=config)))
        before = after


_EDITS = st.one_of(
    st.builds(world.secret, st.just("redis"), password=st.sampled_from(["one", "two"])),
    st.builds(world.secret, st.just("redis"), other=st.just("x")),
    st.builds(world.rate_limit_filter, st.sampled_from(["f", "g"]), requests=st.integers(0, 2)),
    st.builds(
        world.route,
        st.integers(0, 1),
        filters=st.lists(st.sampled_from(["f", "g"]), max_size=2).map(
            lambda names: world.limited(*names)
        ),
    ),
    st.sampled_from(
        [
            ObjectRef("Secret", "default", "redis"),
            ObjectRef("RateLimitFilter", "default", "f"),
            ObjectRef("RateLimitFilter", "default", "g"),
            ObjectRef("HTTPRoute", "default", "r0"),
        ]
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_EDITS, min_size=1, max_size=3), max_size=6))
def test_any_history_gives_what_nothing_gives(steps: list[list[object]]) -> None:
    plain = Settings(rate_limit=CONFIG)
    snapshot = Snapshot.of([*BASE, world.secret("redis", password="one")])
    translation = translate(snapshot, plain)
    for edits in steps:
        removed = [edit for edit in edits if isinstance(edit, ObjectRef)]
        changed = [edit for edit in edits if not isinstance(edit, ObjectRef)]
        snapshot = snapshot.replace(changed, removed)  # type: ignore[arg-type]
        translation = translate(snapshot, plain, translation)
        _same(translation, translate(snapshot, plain))
