"""A proxy with one Gateway named `web` on one port: what most behaviour tests need.

In: everything but the Gateway (routes name the parent `web` by default), and the settings of its EdgeProxy. Out: clients.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from wire.harness import objects as make
from wire.harness.client import Client
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.harness.responses import Response


class Site(Gateway):
    """A `Gateway` whose objects gain a Gateway `web` with one HTTP listener, or the given listeners."""

    def __init__(
        self,
        objects: Iterable[make.Object],
        *,
        http: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        port: int = 0,
        workers: int = 1,
        bind: Sequence[str] = ("127.0.0.1",),
        prefix: Sequence[str] = (),
        min_drain: int = 0,
        drain_timeout: int = 2,
    ) -> None:
        self.port = port or free_port()
        self._proxy = [make.edge_proxy("web", http, **(settings or {}))] if http or settings else []
        super().__init__(
            self.with_gateway(objects),
            workers=workers,
            bind=bind,
            prefix=prefix,
            min_drain=min_drain,
            drain_timeout=drain_timeout,
        )

    def use(self, objects: Iterable[make.Object], http: Mapping[str, Any] | None = None) -> None:
        """Replace everything but the port, and wait until it is served."""
        self._proxy = [make.edge_proxy("web", http)] if http else []
        self.apply(self.with_gateway(objects))

    def with_gateway(self, objects: Iterable[make.Object]) -> list[make.Object]:
        """The objects with the Gateway before them, for `apply`."""
        proxy = "web" if self._proxy else ""
        return [make.gateway("web", [make.listener(self.port)], proxy), *self._proxy, *objects]

    def client(self, **options: Any) -> Client:
        """A new connection to the port."""
        return Client((options.pop("host", "127.0.0.1"), self.port), **options)

    def ask(
        self,
        method: str = "GET",
        target: str = "/",
        host: str = "a",
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        chunked: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> Response:
        """One request on a connection of its own."""
        with self.client(tls=tls, sni=host if tls else None) as client:
            return client.request(method, target, host, headers, body, chunked=chunked)


@contextmanager
def shared(objects: Iterable[make.Object], http: Mapping[str, Any] | None = None) -> Iterator[Site]:
    """A proxy with these objects and one worker."""
    with Site(objects, http=http) as site:
        yield site
