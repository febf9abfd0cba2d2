"""Types of the compiled engine (edgefast/core/engine.pyx); what each member does is said there."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from edgefast import ir
from edgefast.core.resolver import Resolver

class Check:
    key: bytes
    n: int
    limit: int
    unit: int
    sliding: bool

class Limiter:
    def use(self, store: LimitStore | None, timeout: int, fail_closed: bool) -> None: ...
    def settle(self, checks: list[Any], values: Sequence[int]) -> None: ...
    def fail(self, checks: list[Any], reason: str) -> None: ...
    def dump(self) -> dict[str, Any]: ...

class LimitStore(Protocol):
    available: bool
    def submit(self, checks: list[Any]) -> None: ...
    def abandon(self) -> None: ...
    def state(self) -> dict[str, object]: ...

class Engine:
    limiter: Limiter
    loop: asyncio.AbstractEventLoop
    worker: int
    resolver: Resolver
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        arena: memoryview,
        stats: memoryview,
        *,
        worker: int,
        upstream_ssl: Callable[[ir.UpstreamTls], ssl.SSLContext],
        access_log: Callable[[bytes], None],
        limits: memoryview,
    ) -> None: ...
    @property
    def version(self) -> str: ...
    @property
    def open_connections(self) -> int: ...
    @property
    def active(self) -> int: ...
    def apply(
        self, changes: Sequence[tuple[str, str, str, int, int]], version: str
    ) -> list[tuple[str, str, str]]: ...
    def factory(self, port: int, tls: bool) -> Callable[[], asyncio.BufferedProtocol]: ...
    def drain(self) -> None: ...
    def close(self, after: float = 0.0) -> None: ...
    def log_flush(self) -> None: ...
    def dump(self) -> dict[str, Any]: ...
