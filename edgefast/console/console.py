"""Console: the routes of the page, with caching and limits that protect a busy process.

In: a `Source`.
Out: handlers for an HttpServer, GET only. Host must name this machine, so that no name on the
network can resolve to it (DNS rebinding). Indexes and readings are created on request and released
after a while. A few answers run at a time, in threads, each from the state at its start.
Must never: change anything.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from edgefast.console.changes import Changes, list_changes
from edgefast.console.detail import describe_node
from edgefast.console.explain_form import explain_form, read_form, serve
from edgefast.console.files import HEADERS, PREFIX, page_routes, refuse_host
from edgefast.console.index import Index
from edgefast.console.limits import list_limits
from edgefast.console.live_metrics import Meter
from edgefast.console.overview import count_all, list_busiest
from edgefast.console.problem_index import ProblemIndex
from edgefast.console.reader import Reader
from edgefast.console.rows import PAGE, Sort, cut_page, list_children, make_row
from edgefast.console.source import Source
from edgefast.console.state import State
from edgefast.diagnostics.problem import Problem
from edgefast.diagnostics.reasons.catalogue import brief
from edgefast.explain import RequestSpecError, Served
from edgefast.httpd.server import Handler, Reply, Request

log = logging.getLogger(__name__)

IDLE = 300.0  # seconds after the last request until memory is let go of
_READ_EVERY = 1.0  # seconds between readings of counters, at least
_AT_ONCE = 2  # answers that are made
_PATIENCE = 5.0  # seconds for a place among them
_DEADLINE = 15.0  # seconds for one answer
_LIVE = 3.0  # seconds that the word of workers is good for, or as long as it took to work it in

T = TypeVar("T")
Api = Callable[[State, Request], Awaitable[Any]]


class _Kept(msgspec.Struct):
    """What is remembered of one fleet."""

    reader: Reader
    meter: Meter
    state: State | None = None
    problems: tuple[Problem, ...] = ()
    served: Served | None = None
    served_until: float = 0.0
    changes: tuple[tuple[int, int | None], Changes] | None = None  # newest step, the one asked for


class NotThere(Exception):
    """What was asked for is not in the table; the text says what."""


class Console:
    """HTTP routes of the web console."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: dict[str, _Kept] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._turn = asyncio.Lock()  # of whoever makes a state
        self._threads = ThreadPoolExecutor(_AT_ONCE, "console")
        self._slow = ThreadPoolExecutor(1, "console-slow")  # what may take seconds, one at a time
        self._long: tuple[Hashable, asyncio.Future[Any]] | None = None  # what is at work there
        self._idle: asyncio.TimerHandle | None = None

    @property
    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Routes of the page, its files and its answers."""
        answers = {("GET", path): handler for path, handler in self.answers.items()}
        return {**page_routes(), **answers}

    @functools.cached_property
    def answers(self) -> Mapping[str, Handler]:
        """The handlers of the page's answers, by path (`lazy.APIS`)."""
        apis: Mapping[str, Api] = {
            "overview": self._overview,
            "tree": self._tree,
            "node": self._node,
            "search": self._search,
            "problems": self._problems,
            "reason": self._reason,
            "limits": self._limits,
            "counters": self._counters,
            "members": self._members,
            "changes": self._changes,
            "explain": self._explain,
        }
        return {f"{PREFIX}api/{name}": self._wrap(api) for name, api in apis.items()}

    # --- around every answer --------------------------------------------------------------------

    def _wrap(self, api: Api) -> Handler:
        async def handle(request: Request) -> Reply:
            if refusal := refuse_host(request):
                return refusal
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._places.acquire()
            except TimeoutError:
                return _json(503, {"error": "busy with other requests; try again"})
            try:
                async with asyncio.timeout(_DEADLINE):
                    state = await self._look(request.query.get("fleet", ""))
                    return _json(200, await api(state, request))
            except NotThere as error:
                return _json(404, {"error": str(error)})
            except (RequestSpecError, ValueError) as error:
                return _json(400, {"error": str(error)})
            except TimeoutError:
                return _json(503, {"error": f"no answer within {_DEADLINE:g} s"})
            finally:
                self._places.release()
                self._arm()

        return handle

    def _arm(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE, self._kept.clear)

    async def _look(self, fleet: str) -> State:
        """Return the state of a fleet; "" is the first there is."""
        fleets = self._source.fleets()
        name = fleet or (fleets[0] if fleets else "")
        for gone in self._kept.keys() - {*fleets, name}:
            del self._kept[gone]
        async with self._turn:
            table = self._source.table(name)
            if table is None:
                self._kept.pop(name, None)
                raise NotThere(f"no fleet {name}" if name else "nothing is served yet")
            kept = self._kept.get(name)
            if kept is None:
                kept = self._kept[name] = _Kept(Reader(), Meter(self._source.bounds))
            await self._read_counters(kept)
            old = kept.state
            if old is None or old.table.state != table.state:
                fleet_ = table.fleet
                if fleet_ is None:
                    fleet_ = await self._work(kept.reader.read, table.resources, name)
                index = await self._work(Index, fleet_)
                old = None
            else:
                index, table = old.index, old.table
            problems = (*self._source.problems(), *kept.reader.problems())
            if old is None or kept.problems != problems:
                marks = await self._work(ProblemIndex, index, problems)
                old = State(name, table, index, marks, kept.meter.window)
                kept.problems, kept.served = problems, None
            kept.state = msgspec.structs.replace(old, numbers=kept.meter.window)
            return kept.state

    async def _read_counters(self, kept: _Kept) -> None:
        now = asyncio.get_running_loop().time()
        if self._source.bounds and (kept.meter.at is None or now - kept.meter.at >= _READ_EVERY):
            counters = await self._work(self._source.count)
            await self._work(kept.meter.take, asyncio.get_running_loop().time(), counters)

    async def _work(self, do: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, do, *arguments)

    async def _work_long(
        self, key: Hashable, keep: Callable[[T], None], do: Callable[..., T], *arguments: Any
    ) -> T:
        """Do what may take longer than anybody waits: it goes on without them, and whoever asks again joins it.

        Work of another key waits in front of the thread, not in its queue: nobody may be there any more when it is its turn.
        """
        while self._long is not None and self._long[0] != key:
            await asyncio.wait((self._long[1],))
        if self._long is None:

            def end(ended: asyncio.Future[T]) -> None:
                self._long = None
                if not ended.cancelled() and ended.exception() is None:
                    keep(ended.result())

            future = asyncio.get_running_loop().run_in_executor(self._slow, do, *arguments)
            future.add_done_callback(end)  # before those that wait are woken
            self._long = key, future
        found: T = await asyncio.shield(self._long[1])
        return found

    # --- answers --------------------------------------------------------------------------------

    async def _overview(self, state: State, _: Request) -> Any:
        source, table, numbers = self._source, state.table, state.numbers
        members = source.members()
        errors = sum(one.severity == "error" for one in state.marks.all)
        return {
            "kind": source.kind,
            "fleet": state.fleet,
            "fleets": list(source.fleets())[:PAGE],
            "facts": source.facts(),
            "table": {"version": table.version, "accepted": table.accepted},
            "now": time.time(),
            "counts": count_all(state.index),
            "busiest": await self._work(list_busiest, state),
            "problems": {"errors": errors, "warnings": len(state.marks.all) - errors},
            "members": {
                "total": len(members),
                "good": sum(one.state == "good" for one in members),
            },
            "numbers": {
                "bounds": source.bounds,
                "seconds": round(numbers.seconds, 1),
                "rate": numbers.rate_all(),
                "unmatched": numbers.growth("no_route", "no_listener", "misdirected"),
                "connections": numbers.total("connections_active"),
                "active": numbers.total("requests_active"),
            }
            if source.bounds
            else None,
        }

    async def _tree(self, state: State, request: Request) -> Any:
        query = request.query
        node = _find(state, query.get("node", ""))
        sort = msgspec.convert(query.get("sort", "name"), Sort)
        bad = query.get("only") == "problems"
        opened = query.get("open", "").split("\n")[:PAGE]
        page, places = await self._work(
            list_children, state, node, *_range(request), sort, bad, opened
        )
        return {"version": state.table.version, "page": page, "places": places}

    async def _node(self, state: State, request: Request) -> Any:
        node = _find(state, request.query.get("id", ""))
        if not node.id:
            raise ValueError("missing id of a node")
        return await self._work(describe_node, state, node)

    async def _search(self, state: State, request: Request) -> Any:
        words = _words(request)

        def work() -> Any:
            found = state.index.search(words)
            return cut_page(
                found,
                *_range(request),
                lambda node: {
                    "row": make_row(state, node),
                    "path": [one.name for one in node.path()[1:-1]],
                },
            )

        return await self._work(work)

    async def _problems(self, state: State, request: Request) -> Any:
        words, severity = _words(request).lower().split(), request.query.get("severity", "")

        def work() -> Any:
            found = [
                one
                for one in state.marks.all
                if severity in ("", one.severity)
                and all(word in f"{one.text} {one.source}".lower() for word in words)
            ]
            return cut_page(found, *_range(request), lambda one: one)

        return await self._work(work)

    async def _reason(self, _: State, request: Request) -> Any:
        return brief(_words(request))

    async def _limits(self, state: State, request: Request) -> Any:
        return await self._work(list_limits, state, _words(request), *_range(request))

    async def _counters(self, _: State, request: Request) -> Any:
        """Live counters, with the values that clients sent; those at their end come first."""
        reported = await self._source.counters()
        if reported is None:
            raise NotThere("only proxies have counters")
        if isinstance(reported, str):
            return {"why_not": reported, "total": 0, "offset": 0, "rows": []}
        words = _words(request).lower().split()
        found = [
            one
            for one in reported
            if all(
                word in f"{one['limit']} {one['route']} {one['values']}".lower() for word in words
            )
        ]
        return cut_page(found, *_range(request), lambda one: one)

    async def _members(self, state: State, request: Request) -> Any:
        words = _words(request).lower().split()
        found = [
            one
            for one in self._source.members()
            if all(
                word in f"{one.group} {one.name} {one.version} {one.said}".lower() for word in words
            )
        ]
        found.sort(key=lambda one: one.state == "good")
        return cut_page(found, *_range(request), lambda one: one)

    async def _changes(self, state: State, request: Request) -> Any:
        history = self._source.past(state.fleet).look()
        number = request.query.get("step")
        wanted = _number(number) if number else None
        requested = history.steps[0].number if history.steps else 0, wanted
        kept = self._kept.get(state.fleet)
        if kept is not None and kept.changes is not None and kept.changes[0] == requested:
            return kept.changes[1]

        def keep(found: Changes) -> None:
            if kept is not None:
                kept.changes = requested, found

        key = "changes", state.fleet, requested
        return await self._work_long(key, keep, list_changes, history, wanted)

    async def _explain(self, state: State, request: Request) -> Any:
        requested = [
            request.query.get(key, "") for key in ("method", "url", "headers", "source", "sni")
        ]
        spec = read_form(*requested)
        served = await self._serve(state)
        key = "explain", state.index, *requested
        return await self._work_long(key, lambda _: None, explain_form, served, state, spec)

    async def _serve(self, state: State) -> Served:
        """Return what is served, with the word of workers: that of a moment ago is good enough."""
        now = asyncio.get_running_loop().time()
        kept = self._kept.get(state.fleet)
        if kept is not None and kept.served is not None and now < kept.served_until:
            return kept.served
        live = await self._source.live()
        problems = tuple(self._source.problems())

        def keep(served: Served) -> None:
            if kept is not None and kept.state is not None and kept.state.index is state.index:
                ended = asyncio.get_running_loop().time()
                kept.served, kept.served_until = served, ended + max(_LIVE, ended - now)

        return await self._work_long(("serve", state.index), keep, serve, state, live, problems)


def _json(status: int, value: object) -> Reply:
    return Reply(status, msgspec.json.encode(value), "application/json", HEADERS)


def _find(state: State, id_: str) -> Any:
    node = state.index.find(id_)
    if node is None:
        raise NotThere(f"{id_} was removed from the table")
    return node


def _range(request: Request) -> tuple[int, int]:
    offset = _number(request.query.get("offset", "0"))
    return offset, min(PAGE, max(1, _number(request.query.get("limit", str(PAGE)))))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f'"{text[:20]}" is not a number')
    return int(text)


def _words(request: Request) -> str:
    return request.query.get("q", "")[:200]
