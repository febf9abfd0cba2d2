"""serve: the lifecycle of a controller process around App: signals, the event loop, the garbage collector, the exit status.

In: options.
Out: the exit status: 0 after an orderly end, 1 when it cannot start or a component failed, 2 for an
invalid configuration. A configuration change that requires it starts a new App in the same process.
Must never: depend on the contents of App.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import uvloop

from controller.app import App
from controller.config import ConfigError, ConfigFile, level_of
from controller.kube.access import AccessError
from controller.kube.client import Kube
from controller.operator_servers import open_servers
from controller.options import Options
from controller.xds_server.credentials import KeysError
from edgefast.daemon.logs import set_level, start_logging
from edgefast.daemon.os_error import explain_failure
from edgefast.daemon.process import forbid_cores, look_seldom, share_interpreter

__all__ = ["serve"]

log = logging.getLogger(__name__)


def serve(options: Options, log_level: str | None) -> int:
    """Control until a signal; `log_level` wins over the configuration's, until that changes."""
    forbid_cores()  # authorities' keys are in memory
    start_logging(log_level or "info")
    share_interpreter()
    look_seldom()
    try:
        return uvloop.run(_serve(options, log_level))
    except BaseExceptionGroup as group:
        for error in _leaves(group):
            if why := explain_failure(error):
                log.error("cannot continue: %s", why)
            else:
                log.error("a component failed", exc_info=error)
        return 1
    except (OSError, MemoryError) as error:  # an event loop cannot be had
        log.error("cannot start: %s", explain_failure(error) or error)
        return 1


async def _serve(options: Options, log_level: str | None) -> int:
    signals = _Signals()
    while not signals.asked:
        file = ConfigFile(options.config)
        try:
            config = file.load()
        except ConfigError as error:
            for one in error.problems:
                log.error("configuration: %s", one.line())
            return 2
        if log_level is None:
            set_level(level_of(config))
        try:
            async with await Kube.open(options.kubeconfig, options.context) as kube:
                app = App(options, kube, file)
                servers = open_servers(app)
                signals.follow(app)
                if not await app.run(servers.run()):
                    break
        except (AccessError, KeysError, OSError) as error:
            log.error("cannot start: %s", explain_failure(error) or error)
            return 1
    log.info("ended")
    return 0


class _Signals:
    """End in order at the first signal, whichever App there is at that moment; at once at the second."""

    def __init__(self) -> None:
        self.asked = False
        self._app: App | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._take, number)

    def follow(self, app: App) -> None:
        """Say whom to end."""
        self._app = app
        if self.asked:
            app.stop()

    def _take(self, number: signal.Signals) -> None:
        if self.asked:
            os._exit(128 + number)
        self.asked = True
        if self._app is not None:
            self._app.stop()


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
