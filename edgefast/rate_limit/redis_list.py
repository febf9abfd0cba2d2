"""Redis list: the live counters in Redis, for `edgefast limits` and `edgefast explain`, not for requests.

In: `ir.RateLimitStore`.
Out: counters with a window that has not ended, with their present value. SCAN reads all keys of the
database in small steps, so it does not slow the store for others. The number of listed counters and
the time are bounded, and the listing reports if it is incomplete. Raises Refused with the reason
when the store does not answer.
Must never: write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from struct import Struct
from typing import Any, NamedTuple

import msgspec
from redis.asyncio.connection import Connection
from redis.exceptions import AskError, ResponseError

from edgefast import ir
from edgefast.rate_limit.address_list import AddressList
from edgefast.rate_limit.connector import Connector
from edgefast.rate_limit.error_reply import Refused
from edgefast.rate_limit.failure import explain_failure
from edgefast.rate_limit.sentinel_failover import Sentinels
from edgefast.rate_limit.tags import PREFIXES, PROBES, read_slots

__all__ = ["Listing", "LiveCounter", "list_counters", "read_counter"]

_VALUE = Struct(
    "<5sIIIB"
)  # window.lua: start of the window (5 bytes), unit, current, previous, sliding
_PREFIX = len(PREFIXES[0])
_STEP = b"500"  # keys of one SCAN: well under a millisecond of the store's time


class LiveCounter(msgspec.Struct, frozen=True):
    """One counter."""

    key: bytes  # the counter's key, without what Redis adds
    window: int  # start of the window, Unix seconds
    unit: int  # seconds
    count: (
        int  # what counts in the window now; of a sliding one, with the weight of the window before
    )
    remaining_ms: int  # until the window ends
    sliding: bool


class Listing(NamedTuple):
    """What was found."""

    counters: list[LiveCounter]
    complete: bool  # False: there are more, or some primaries were not reached in time


async def list_counters(
    config: ir.RateLimitStore, *, most: int = 10_000, deadline: float = 5.0
) -> Listing:
    """List up to `most` counters in at most `deadline` seconds."""
    connector = Connector(config)
    found: dict[bytes, LiveCounter] = {}  # SCAN may name a key twice
    reached = False
    try:
        async with asyncio.timeout(deadline):
            for address in await _find_primaries(config, connector, deadline / 4):
                async with aclosing(_scan(config, connector, address)) as pages:
                    async for page in pages:
                        reached = True
                        found |= {counter.key: counter for counter in page}
                        if len(found) > most:
                            return Listing(list(found.values())[:most], complete=False)
    except Exception as error:
        if reached and isinstance(error, TimeoutError):
            return Listing(list(found.values()), complete=False)
        raise Refused(explain_failure(error)) from None
    finally:
        connector.close()
    return Listing(list(found.values()), complete=True)


def read_counter(key: bytes, value: bytes, now_ms: int) -> LiveCounter | None:
    """Read a key and its value as Redis has them; None when it is no counter, or counts nothing any more."""
    if len(value) != _VALUE.size or key in PROBES:
        return None
    start, unit, current, previous, sliding = _VALUE.unpack(value)
    window = int.from_bytes(start, "little")
    span = unit * 1000
    passed = now_ms - window * 1000
    if sliding and span <= passed < 2 * span:  # its window has ended, and is the one before now
        window, current, previous, passed = window + unit, 0, current, passed - span
    passed = max(passed, 0)
    left = span - passed
    count = current + (previous * left // span if sliding else 0)
    if left <= 0 or not count:
        return None
    return LiveCounter(key[_PREFIX:], window, unit, count, left, bool(sliding))


async def _find_primaries(
    config: ir.RateLimitStore, connector: Connector, share: float
) -> list[str]:
    if config.mode == "single":
        return [config.addresses[0]]
    if config.mode == "sentinel":
        return [await Sentinels(config, connector, share).find()]

    async def ask(address: str) -> list[str]:
        slots = await connector.ask(address, "CLUSTER", "SLOTS")
        return list(dict.fromkeys(filter(None, read_slots(slots, address))))

    return await AddressList(config.addresses).ask(ask, share)


async def _scan(
    config: ir.RateLimitStore, connector: Connector, address: str
) -> AsyncGenerator[list[LiveCounter], None]:
    async with connector.talk(address, config.user, config.password, config.database) as connection:
        cursor = b"0"
        while True:
            step = (b"SCAN", cursor, b"MATCH", b"ef:{??}:*", b"COUNT", _STEP)
            (seconds, micros), (cursor, keys) = await _talk(connection, [(b"TIME",), step])
            now_ms = int(seconds) * 1000 + int(micros) // 1000
            values = await _talk(connection, [(b"GET", key) for key in keys])
            pairs = zip(keys, values, strict=True)
            counters = [read_counter(key, value, now_ms) for key, value in pairs if value]
            yield [counter for counter in counters if counter is not None]
            if cursor == b"0":
                return


async def _talk(connection: Connection, commands: Iterable[tuple[str | bytes, ...]]) -> list[Any]:
    """Send commands in one write; the reply is None of a key that is something else, or moving."""
    wanted = list(commands)
    if wanted:
        await connection.send_packed_command(connection.pack_commands(wanted))
    replies = []
    for _ in wanted:
        try:
            replies.append(await connection.read_response(disconnect_on_error=False))
        except ResponseError as error:
            if not isinstance(error, AskError) and not str(error).startswith("WRONGTYPE"):
                raise
            replies.append(None)
    return replies
