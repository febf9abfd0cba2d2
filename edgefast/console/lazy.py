"""LazyConsole: a console that loads its modules at the first request.

In: a `Source`. Out: the routes of a `Console`. The page's files are served unchanged. The first request for an answer imports the
`Console` and its modules (explanations, comparisons: 100 ms, 10 MiB) in a thread.
Must never: create an answer itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from edgefast.console.files import PREFIX, page_routes
from edgefast.console.source import Source
from edgefast.httpd.server import Handler, Reply, Request

if TYPE_CHECKING:
    from edgefast.console.console import Console

__all__ = ["APIS", "LazyConsole"]

#: Paths below `/console/api/` that a Console answers.
APIS = (
    "overview",
    "tree",
    "node",
    "search",
    "problems",
    "reason",
    "limits",
    "counters",
    "members",
    "changes",
    "explain",
)


class LazyConsole:
    """Routes of a console that is imported at its first request."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._console: Console | None = None

    @property
    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Routes of the page, its files and its answers."""
        found = dict(page_routes())
        for name in APIS:
            found[("GET", f"{PREFIX}api/{name}")] = self._answer
        return found

    async def _answer(self, request: Request) -> Reply:
        if self._console is None:
            await asyncio.to_thread(import_module, "edgefast.console.console")
        if self._console is None:  # another request may have made it meanwhile
            from edgefast.console.console import Console

            self._console = Console(self._source)
        return await self._console.answers[request.path](request)
