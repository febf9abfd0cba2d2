"""Configuration file: an EdgeGateway document, mounted from a ConfigMap and watched at run time.

In: a path.
Out: the configuration, and `on_change` after a valid edit. An invalid edit is refused as a whole,
with file and line, and the previous configuration stays. A mounted ConfigMap changes by the
replacement of a symbolic link, without an event that reaches every file system. The file is
therefore polled.
Source: spec section 2 (EdgeGateway configuration).
Must never: use an incomplete file, or stop because of one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from pathlib import Path

from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.api.decode.decode import decode_config
from edgefast.diagnostics.problem import Problem, Source

__all__ = ["ConfigError", "ConfigFile", "level_of", "structure_of"]

log = logging.getLogger(__name__)

#: Seconds between looks at the file.
_LOOK = 1.0
#: Largest file read: a ConfigMap has at most 1 MiB.
_MAX_BYTES = 1024 * 1024


class ConfigError(Exception):
    """The file cannot be used; `problems` say why, each with its line."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(one.line() for one in problems))
        self.problems = problems


class ConfigFile:
    """One file, or none (the defaults then). `load` first, then `run` as a task."""

    def __init__(
        self,
        path: Path | None,
        on_change: Callable[[EdgeGateway], None] = lambda _: None,
        *,
        look: float = _LOOK,
    ) -> None:
        self.path = path
        self.config = EdgeGateway()  # in force
        self.problems: tuple[Problem, ...] = ()  # of the file as it is now; () when it is in force
        self.refusals = 0  # edits refused since the start
        self.on_change = on_change
        self._look = look
        self._text: bytes | None = None  # last looked at, sound or not

    def load(self) -> EdgeGateway:
        """Read the file for the first time; ConfigError when anything in it is wrong."""
        self._take()
        if self.problems:
            raise ConfigError(self.problems)
        return self.config

    async def run(self) -> None:
        """Follow the file until cancelled."""
        if self.path is None:
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(random.uniform(self._look / 2, self._look))
            before, problems = self.config, self.problems
            self._take()
            if self.problems and self.problems != problems:
                self.refusals += 1
                for one in self.problems:
                    log.error(
                        "configuration refused; the previous one stays in use: %s", one.line()
                    )
            if self.config != before:
                log.info("configuration changed: %s", self.path)
                self.on_change(self.config)

    def _take(self) -> None:
        """Look at the file; a sound one takes the place of the configuration."""
        if self.path is None:
            return
        file = str(self.path)
        try:
            with self.path.open("rb") as opened:
                text = opened.read(_MAX_BYTES + 1)
        except OSError as error:
            self._text = None
            message = f"cannot be read: {error.strerror or error}"
            self.problems = (Problem(None, "", "Invalid", message, source=Source(file, 1)),)
            return
        if text == self._text:
            return
        self._text = text
        config, self.problems = decode_config(text, file)
        if config is not None:
            self.config = config


def structure_of(config: EdgeGateway) -> tuple[object, ...]:
    """Return the parts of a configuration that need a new start; a change of any other is taken in."""
    cluster = config.provider.cluster
    watch = cluster.watch if cluster.deploy.type == "GatewayNamespace" else None
    return (
        config.gateway.controller_name,
        cluster.deploy.type,
        watch,
        config.leader_election,
        config.admin,
        config.ingress.enabled,
    )


def level_of(config: EdgeGateway) -> str:
    """Return the log level of a configuration, as `set_level` takes it."""
    return "warning" if config.logging.level == "warn" else config.logging.level
