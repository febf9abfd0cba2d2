"""A proxy in which everything changes while clients ask: a certificate, a route, a listener of a port that stays, and a port.

In: the port of a backend, requests after which a connection ends. Out: ports `tls` and `plain`, which are always there and lead to
the backend, and `extra`, which is there after every second change. `change` returns when it is served.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wire.harness import objects as make
from wire.harness.certificates import Authority
from wire.harness.gateway import Gateway
from wire.harness.ports import free_port
from wire.harness.programs import ALONE

NAME = "a.test"
_PAIRS = 4  # certificates that take turns
_CEILING = 300.0  # seconds, against hangs


class Changing(Gateway):
    """A proxy whose certificates, routes, listeners and ports change during requests."""

    def __init__(self, origin: int, requests: int = 100, **options: Any) -> None:
        self.authority = Authority()
        self.tls, self.plain, self.extra = free_port(), free_port(), free_port()
        self.changes = 0
        self._origin, self._requests = origin, requests
        self._pairs = [self.authority.issue([NAME, f"more.{NAME}"]) for _ in range(_PAIRS)]
        super().__init__(self.build(), **options)
        self.trusted = self.folder / "ca.pem"
        self.trusted.write_bytes(self.authority.pem)

    def build(self) -> list[make.Object]:
        """All objects, as they are after so many changes."""
        pair = self._pairs[self.changes % _PAIRS]
        listeners = [make.listener(self.tls, "tls", NAME, ["pair"])]
        plain = [make.listener(self.plain)]
        if self.changes % 2:
            listeners.append(make.listener(self.tls, "more", f"more.{NAME}", ["pair"]))
            plain.append(make.listener(self.extra, "extra"))
        return [
            make.edge_proxy("few", http2={"maxRequestsPerConnection": self._requests}),
            make.gateway("web", listeners, "few"),
            make.gateway("plain", plain, "few"),
            make.route("web", [make.rule("origin", matches=[make.path("/")])]),
            make.route("plain", [make.rule("origin")], parent="plain"),
            make.route("more", [make.rule("origin", matches=[make.path(f"/{self.changes}")])]),
            make.tls_secret("pair", pair.certificate, pair.key),
            *make.service("origin", [("127.0.0.1", self._origin)]),
        ]

    def change(self) -> None:
        """Another certificate, another route, listeners more or less."""
        self.changes += 1
        self.apply(self.build())

    def change_while(self, more: Callable[[], bool], most: int = 200, pace: float = 0.0) -> None:
        """Change again and again, `pace` seconds apart, so often at most."""
        for _ in range(most):
            began = time.monotonic()
            if not more():
                return
            self.change()
            time.sleep(max(0.0, began + pace - time.monotonic()))

    def during(self, command: Sequence[str], pace: float = 0.0) -> str:
        """What a program says that runs while everything changes."""
        with running(command) as process:
            self.change()
            self.change_while(lambda: process.poll() is None, pace=pace)
            return str(process.communicate(timeout=_CEILING)[0])


@contextmanager
def running(command: Sequence[str | Path]) -> Iterator[subprocess.Popen[str]]:
    """A program of others, whose two outputs are one; its input ends with `communicate`."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=ALONE
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for end in (process.stdin, process.stdout):
            if end is not None:
                end.close()
