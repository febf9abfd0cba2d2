"""The script in a real Redis: the same numbers as the reference, the server's clock, what it leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgefast.rate_limit.script import MAX_KEYS, TEXT, read_answers
from edgefast.rate_limit.tags import redis_key
from rate_limit.caller import Ask, calling, config_of
from rate_limit.reference import UNITS, ReferenceStore
from rate_limit.servers import PROGRAMS, RedisServer, running

NOW_MS = 1_790_000_000_123
LARGEST = 2**32 - 1
_names = itertools.count()


@pytest.fixture(scope="module", params=PROGRAMS)
def plain_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """Every kind of server that is supported."""
    with running(tmp_path_factory.mktemp("redis"), program=PROGRAMS[request.param]) as server:
        yield server


@pytest.fixture(scope="module")
def client(plain_server: RedisServer) -> Iterator[Any]:
    with contextlib.closing(plain_server.client()) as found:
        yield found


@pytest.fixture(scope="module")
def timed(client: Any) -> Any:
    """The script with its clock in our hands: take(client, [(key, n, limit, unit, sliding)], now_ms)."""
    line = b'local time = redis.call("TIME")\n'
    assert TEXT.count(line) == 1
    assert TEXT.count(b"TIME") == 1
    text = TEXT.replace(line, b"local time = {ARGV[#KEYS + 1], ARGV[#KEYS + 2]}\n")

    def take(checks: list[Ask], now_ms: int) -> list[tuple[int, int, int, int]]:
        terms = [struct.pack("<HIIB", one.n, one.limit, one.unit, one.sliding) for one in checks]
        clock = [now_ms // 1000, now_ms % 1000 * 1000 + 999]
        keys = [redis_key(one.key) for one in checks]
        return read_answers(client.eval(text, len(keys), *keys, *terms, *clock))

    return take


class Step(NamedTuple):
    later: int  # milliseconds, may be negative: the clock is set back, or a new primary's is behind
    n: int
    limit: int


@st.composite
def steps(draw: st.DrawFn, unit: int) -> list[Step]:
    span = unit * 1000
    move = st.one_of(
        st.integers(0, span // 3),
        st.integers(-span, 3 * span),
        st.sampled_from((0, 1, span - 1, span, span + 1)),
    )
    limits = draw(
        st.lists(
            st.one_of(st.integers(0, 20), st.integers(0, 2000), st.integers(0, LARGEST)),
            min_size=1,
            max_size=3,
        )
    )
    number = st.one_of(st.integers(1, 5), st.integers(1, 65535))
    one = st.builds(Step, move, number, st.sampled_from(limits))
    return draw(st.lists(one, min_size=1, max_size=30))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data(), unit=st.sampled_from(UNITS), sliding=st.booleans())
def test_every_number_is_the_references(
    timed: Any, data: st.DataObject, unit: int, sliding: bool
) -> None:
    reference = ReferenceStore(steps=True)
    name = b"reference%d" % next(_names)
    now = NOW_MS
    for step in data.draw(steps(unit)):
        now = max(now + step.later, 1_000_000_000_000)
        check = Ask(name, step.n, step.limit, unit, sliding)
        expected = reference.take(name, step.n, step.limit, unit, sliding, now)
        assert timed([check], now) == [expected]


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    current=st.integers(0, LARGEST),
    previous=st.one_of(st.integers(0, LARGEST), st.integers(LARGEST - 5, LARGEST)),
    limit=st.one_of(st.integers(0, LARGEST), st.integers(LARGEST - 5, LARGEST), st.just(1)),
    unit=st.sampled_from(UNITS),
    n=st.integers(1, 65535),
    age=st.integers(0, 2),
    data=st.data(),
)
def test_large_counts_are_exact(
    timed: Any,
    client: Any,
    current: int,
    previous: int,
    limit: int,
    unit: int,
    n: int,
    age: int,
    data: st.DataObject,
) -> None:
    """Products of counts and milliseconds exceed 2^53, where a Lua number is no integer any more."""
    reference = ReferenceStore(steps=True)
    name = b"large%d" % next(_names)
    window = NOW_MS // 1000 // unit
    reference.counters[name] = (window, current, previous)
    value = struct.pack("<IBIIIB", window * unit, 0, unit, current, previous, 1)
    client.set(redis_key(name), value)
    now = (window + age) * unit * 1000 + data.draw(st.integers(0, unit * 1000 - 1))
    expected = reference.take(name, n, limit, unit, True, now)
    assert timed([Ask(name, n, limit, unit, True)], now) == [expected]


def test_a_key_that_comes_twice_in_a_call_is_counted_twice(timed: Any) -> None:
    check = Ask(b"twice", n=3, limit=5)
    first, other, second = timed([check, Ask(b"once", n=3, limit=5), check], NOW_MS)
    assert (first[0], other[0], second[0]) == (3, 3, 2)


def test_switching_between_fixed_and_sliding_keeps_the_count(timed: Any, client: Any) -> None:
    fixed, sliding = Ask(b"switch", n=3, unit=60), Ask(b"switch", n=2, unit=60, sliding=True)
    assert timed([fixed], NOW_MS)[0][:2] == (3, 7)
    lives = client.pttl(redis_key(b"switch"))
    assert timed([sliding], NOW_MS)[0][:2] == (2, 5)
    assert client.pttl(redis_key(b"switch")) > lives + 59_000, "it must live a window longer"
    assert timed([fixed], NOW_MS)[0][:2] == (3, 2)
    assert client.pttl(redis_key(b"switch")) > lives + 59_000
    halfway = NOW_MS // 60_000 * 60_000 + 90_000
    assert timed([Ask(b"switch", n=10, unit=60, sliding=True)], halfway)[0][0] == 6


@pytest.mark.parametrize("sliding", [False, True])
async def test_expiry_is_set_once(server: RedisServer, client: Any, sliding: bool) -> None:
    async with calling(config_of(server.address)) as caller:
        check = Ask(b"expiry", unit=86400, sliding=sliding)
        _, _, reset, window = await caller.settled(check)
        key = redis_key(b"expiry")
        expires = expiry(client, key)
        end = (window + 86400 * (2 if sliding else 1)) * 1000
        assert end <= expires <= end + 2000
        assert abs(client.pttl(key) - 1000 - reset - (86_400_000 if sliding else 0)) < 30_000
        for _ in range(3):
            await caller.settled(check)
        assert abs(expiry(client, key) - expires) <= 1


def expiry(client: Any, key: bytes) -> int:
    """When a key ends, in Unix milliseconds; PEXPIRETIME is younger than Redis 6."""
    text = "local t = redis.call('TIME') return {t[1], t[2], redis.call('PTTL', KEYS[1])}"
    seconds, microseconds, left = client.eval(text, 1, key)
    return int(seconds) * 1000 + int(microseconds) // 1000 + int(left)


async def test_what_admits_nothing_writes_nothing(server: RedisServer, client: Any) -> None:
    async with calling(config_of(server.address)) as caller:
        admitted, remaining, reset, window = await caller.settled(Ask(b"blocked", limit=0))
        assert (admitted, remaining) == (0, 0)
        assert 0 < reset <= 3_600_000 and window % 3600 == 0
        assert not client.exists(redis_key(b"blocked"))


async def test_the_window_is_the_servers(server: RedisServer, client: Any) -> None:
    async with calling(config_of(server.address)) as caller:
        for unit in UNITS:
            before = client.time()
            check = Ask(b"clock%d" % unit, n=2, limit=5, unit=unit)
            admitted, remaining, reset, window = await caller.settled(check)
            after = client.time()
            assert (admitted, remaining) == (2, 3)
            assert window % unit == 0
            assert before[0] - unit < window <= after[0]
            now_ms = (window + unit) * 1000 - reset
            assert before[0] * 1000 + before[1] // 1000 <= now_ms
            assert now_ms <= after[0] * 1000 + after[1] // 1000


async def test_parts_of_keys_cannot_be_mixed_up(server: RedisServer, client: Any) -> None:
    """The key is taken as it is: what the engine keeps apart by its lengths stays apart."""

    async with calling(config_of(server.address)) as caller:
        keys = [
            b"r:3:a_b,1:c,",
            b"r:1:a,3:b_c,",
            b"r:3:a_b,1:c",
            b"",
            b"\0",
            b"\0\r\n$-1\r\n",
            b"}{",
            b"{x}",
        ]
        for key in keys:
            assert (await caller.settled(Ask(key, n=7)))[:2] == (7, 3)
        for key in keys:
            assert (await caller.settled(Ask(key, n=7)))[:2] == (3, 0)
        assert client.dbsize() == len(keys) + 1, "and the probe"


async def test_a_batch_is_one_call(server: RedisServer) -> None:
    async with calling(config_of(server.address)) as caller:
        await caller.settled(Ask(b"first"))
        before = server.calls("evalsha")
        await caller.take(*(Ask(b"k%d" % number) for number in range(MAX_KEYS)))
        assert server.calls("evalsha") == before + 1
        outcomes = await caller.take(*(Ask(b"k%d" % n, limit=1) for n in range(2 * MAX_KEYS + 1)))
        assert server.calls("evalsha") == before + 4
        admitted = [outcome[0] for outcome in outcomes if isinstance(outcome, tuple)]
        assert admitted == [0] * MAX_KEYS + [1] * (MAX_KEYS + 1), "in the order of the checks"


async def test_callers_at_once_never_exceed_the_limit(server: RedisServer) -> None:
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        callers = [await enter(calling(config_of(server.address))) for _ in range(4)]

        async def press(caller: Any) -> int:
            rounds = [await caller.settled(Ask(b"hot", n=3, limit=100)) for _ in range(40)]
            return sum(admitted for admitted, *_ in rounds)

        assert sum(await asyncio.gather(*map(press, callers))) == 100


async def test_a_forgotten_script_is_loaded_again(server: RedisServer, client: Any) -> None:
    async with calling(config_of(server.address)) as caller:
        assert (await caller.settled(Ask(b"forgotten", n=4)))[1] == 6
        client.script_flush()
        outcomes = await caller.take(*(Ask(b"forgotten", n=2), Ask(b"other", n=1)))
        assert [outcome[:2] for outcome in outcomes if isinstance(outcome, tuple)] == [
            (2, 4),
            (1, 9),
        ]
        # Redis 6 counts all of SCRIPT, the flush above as well.
        assert (server.calls("script|load") or server.calls("script") - 1) == 2
        client.script_flush()
        many = await caller.take(*(Ask(b"f%d" % number) for number in range(MAX_KEYS + 1)))
        assert all(isinstance(outcome, tuple) for outcome in many)


@pytest.mark.parametrize("sliding", [False, True])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("ahead", [1, 2, 10**6], ids=str)
def test_a_stored_start_in_the_future_freezes_nothing(
    timed: Any, client: Any, unit: int, sliding: bool, ahead: int
) -> None:
    """Whoever wrote it: nobody waits for longer than the window of now, and nothing said of it is longer."""
    key = redis_key(b"poisoned")
    start = NOW_MS // 1000 // unit * unit
    for begun in (start + ahead * unit, start + ahead * unit + unit // 2 + 1, 2**40 - 1):
        begun = min(begun, 2**40 - 1)  # noqa: PLW2901
        client.set(
            key, struct.pack("<IBIIIB", begun % 2**32, begun >> 32, unit, LARGEST, LARGEST, 1)
        )
        check = Ask(b"poisoned", n=3, limit=10, unit=unit, sliding=sliding)
        ((admitted, _, reset, window),) = timed([check], NOW_MS)
        assert admitted in ((0, 3) if begun == start + unit else (3,))
        assert window == start
        assert 0 < reset <= unit * 1000 + 1
        client.delete(key)


@pytest.mark.parametrize("sliding", [False, True])
@pytest.mark.parametrize("unit", [1, 3600])
def test_a_step_costs_one_window_at_most(timed: Any, unit: int, sliding: bool) -> None:
    """Ahead by an hour and back again, and back further: what passes after each step, and for how long the rest waits."""
    check = Ask(b"step%d%d" % (unit, sliding), n=50, limit=20, unit=unit, sliding=sliding)
    now = NOW_MS
    assert timed([check], now)[0][0] == 20
    for step in (3_600_000, -3_600_000, -7_200_000, 100, -100, -(unit * 1000), unit * 1000):
        now += step
        passed, waited = 0, 0
        while waited <= unit * 1000 + 1:  # a window later somebody passes again
            admitted, _, reset, _ = timed([check], now + waited)[0]
            passed += admitted
            assert reset <= unit * 1000 + 1
            if admitted and waited:
                break
            waited += max(reset, 1)
        else:
            raise AssertionError(f"refused for {waited} ms after a step of {step} ms")
        assert passed <= 2 * check.limit
        now += waited


async def test_foreign_values_are_no_counters(server: RedisServer, client: Any) -> None:
    client.set(redis_key(b"text"), "17")
    client.hset(redis_key(b"hash"), "a", "b")
    async with calling(config_of(server.address)) as caller:
        assert (await caller.settled(Ask(b"text", n=4)))[:2] == (4, 6)
        outcomes = await caller.take(Ask(b"hash", n=3), Ask(b"other"))
        assert [outcome[:2] for outcome in outcomes if isinstance(outcome, tuple)] == [
            (3, 7),
            (1, 9),
        ]
