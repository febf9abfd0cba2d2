"""Session: one connection to a cluster for a command line, in its own event loop.

In: `Where`.
Out: `Kube`, opened at the first request; coroutines run in the loop, which runs until `close` and
keeps connections and credentials. Every connection error becomes a LiveError of one line.
Must never: be used from two threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from controller.cli.installation import InstallationError
from controller.kube.access import AccessError, open_access
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from edgefast.cli.live import LiveError, Where

__all__ = ["Session"]

T = TypeVar("T")


class Session:
    """One connection to a cluster, in its own event loop, for a command."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._runner = asyncio.Runner()
        self._kube: Kube | None = None
        self._server = ""

    async def kube(self) -> Kube:
        """Return the connection to the API server, opened once."""
        if self._kube is None:
            access = await open_access(self._where.kubeconfig, self._where.context)
            self._kube = Kube(access)
            self._server = access.host
        return self._kube

    @property
    def server(self) -> str:
        """Address of the API server, once it was asked."""
        return self._server

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the event loop; LiveError when the cluster does not let us."""
        try:
            return self._runner.run(work)
        except BaseExceptionGroup as group:
            error = _first(group)
            if isinstance(error, ApiError):
                raise LiveError(self._write_message(error)) from None
            raise
        except ApiError as error:
            raise LiveError(self._write_message(error)) from None
        except (AccessError, InstallationError) as error:
            raise LiveError(str(error)) from None

    def close(self) -> None:
        """Close all connections."""
        if self._kube is not None:
            self._runner.run(self._kube.close())
        self._runner.close()

    def _write_message(self, error: ApiError) -> str:
        return f"{self._server or 'the API server'}: {error}"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group that is none itself."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
