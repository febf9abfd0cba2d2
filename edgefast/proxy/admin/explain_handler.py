"""Explained: GET /explain of the admin server: why a request would get its answer from this proxy now.

In: method, url, headers (lines), source, sni, http10 and most as query fields.
Out: the documented JSON of docs/guides/explain.md. The proxy computes it itself because matches may
compare credentials, which its answers never contain. One explanation runs at a time, in a thread.
Must never: send a request.
"""

from __future__ import annotations

import asyncio

import msgspec

from edgefast.console.explain_form import read_form
from edgefast.console.reader import Reader
from edgefast.explain import Explanation, Live, RequestSpec, RequestSpecError, Served
from edgefast.explain.explain import explain
from edgefast.httpd.server import Reply, Request
from edgefast.proxy.admin.active_config import read_now, read_resources
from edgefast.proxy.admin.limit_list import LimitList
from edgefast.proxy.agent.agent import Agent
from edgefast.table import BlobError, Resource, Shards

__all__ = ["Explained"]

_PATIENCE = 5.0  # seconds for another explanation to end
_MOST = 1000  # candidates; an answer is written in memory
_DEFAULT = "10"


class Explained:
    """Answers GET /explain of the admin server."""

    def __init__(self, agent: Agent, limits: LimitList) -> None:
        self._agent = agent
        self._limits = limits
        self._turn = asyncio.Lock()

    async def on_explain(self, request: Request) -> Reply:
        """Explain one request."""
        query = request.query
        words = [query.get(name, "") for name in ("method", "url", "headers", "source", "sni")]
        most = query.get("most", _DEFAULT)
        if not (most.isascii() and most.isdecimal() and len(most) < 10):
            return Reply(400, b"most is no number\n")
        try:
            spec = read_form(*words, http10=query.get("http10") == "true")
        except RequestSpecError as error:
            return Reply(400, f"{error}\n".encode())
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._turn.acquire()
        except TimeoutError:
            return Reply(503, b"another request is being explained; try again\n")
        try:
            found = await self._explain(spec, min(int(most), _MOST))
        except BlobError as error:
            return Reply(503, f"{error}\n".encode())
        finally:
            self._turn.release()
        return Reply(200, msgspec.json.encode(found) + b"\n", "application/json")

    async def _explain(self, request: RequestSpec, most: int) -> Explanation:
        version = self._agent.ledger.current.version
        resources = dict(read_resources(self._agent))
        problems = tuple(
            one.line()
            for one in (*self._agent.source_problems, *self._agent.problems)
            if one.severity == "error"
        )
        live = await read_now(self._agent, self._limits)

        def work() -> Explanation:
            reader = Reader()
            fleet = reader.read(resources)
            # Without it a less specific host would seem to answer: the matcher refuses these bytes.
            for key in reader.unread:
                if key[0] == "virtual_host":
                    resources[key] = Resource(*key, resources[key].version, b"")
            unread = (one.line() for one in reader.problems())
            now: Live = msgspec.structs.replace(live, problems=(*unread, *problems))
            served = Served(fleet, Shards(resources, version), live=now, version=version)
            return explain(served, request, most=most)

        return await asyncio.to_thread(work)
