"""Banner: the start message of `edgefast run`: what is served, where, with which problems, and commands to try.

In: an `Outcome`.
Out: text on standard error, because standard output is the access log, which programs may read as
JSON lines.
Must never: print the content of a resource, only names and addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import edgefast
from edgefast import ir
from edgefast.daemon.process import process_age
from edgefast.diagnostics.problem import Problem, ask_for_more
from edgefast.httpd.address import EVERYWHERE, Address
from edgefast.proxy.pipelines.example_commands import list_hosts, write_commands
from edgefast.proxy.pipelines.standalone import Outcome
from edgefast.proxy.sockets.bind_address import Place, host_of, is_of
from edgefast.translate.match.hostname import ANY

__all__ = ["Banner"]

_LAST_GOOD = "NOT ALL FILES CAN BE READ: serving the last good table from disk until they can"
_SHOWN_LISTENERS = 20
_SHOWN_PROBLEMS = 50
#: What a listener of layer 4 gives to its route, when that has no hostname.
_ANY_OF = {"TLS": "any name", "TCP": "all connections", "UDP": "all datagrams"}


class Banner:
    """Prints the first outcome whole, the later ones as what changed."""

    def __init__(
        self,
        workers: int,
        servers: dict[str, Address],
        say: Callable[[str, str], None],
        render: Callable[[Problem], str],
        age: Callable[[], float] = process_age,
    ) -> None:
        """`say` prints a line with a level, `render` writes a problem as one, `age` is the process's, in seconds."""
        self._workers = workers
        self._write_address = say
        self._render = render
        self._age = age
        self._servers = servers
        self._known: dict[Problem, None] = {}
        self._first = True

    def show(self, outcome: Outcome, bound: Sequence[Place]) -> None:
        """Print one outcome; `bound` are the places that are listened on."""
        if self._first:
            self._first = False
            self._show_start(outcome, bound)
        else:
            self._show_reload(outcome)
        self.show_problems(outcome.problems)
        if outcome.problems:
            errors = sum(one.severity == "error" for one in outcome.problems)
            warnings = len(outcome.problems) - errors
            counts = f"{_count(errors, 'problem')}, {_count(warnings, 'warning')}"
            self._write_message(f"{counts}; more about it: {ask_for_more(outcome.problems)}")

    def _write_message(self, line: str) -> None:
        self._write_address(line, "info")

    def show_problems(self, problems: Iterable[Problem]) -> None:
        """Print the problems that were not there the last time, and say which are gone."""
        now = dict.fromkeys(problems)
        new = [one for one in now if one not in self._known]
        solved = [one for one in self._known if one not in now]
        self._known = now
        for one in new[:_SHOWN_PROBLEMS]:
            self._write_address(self._render(one), one.severity)
        if len(new) > _SHOWN_PROBLEMS:
            self._write_message(
                f"... and {len(new) - _SHOWN_PROBLEMS} more: edgefast check shows all"
            )
        if solved:
            self._write_message(f"{_count(len(solved), 'problem')} solved")

    def _show_start(self, outcome: Outcome, bound: Sequence[Place]) -> None:
        read = f"{_count(outcome.objects, 'object')} in {_count(outcome.files, 'file')}"
        workers = _count(self._workers, "worker")
        state = f"ready in {self._age() * 1000:.0f} ms" if bound else "no listener is open"
        self._write_message(f"edgefast {edgefast.__version__}: {read}, {workers}, {state}")
        if outcome.fleet is None:
            self._write_address(_LAST_GOOD, "error")
        else:
            for line in _listener_lines(outcome.fleet, bound, outcome.closed):
                self._write_message(line)
        for name, address in self._servers.items():
            path = {"admin": "/dump", "metrics": "/metrics", "ready": "/ready"}[name]
            if address.host == EVERYWHERE:
                address = Address("localhost", address.port)
            self._write_message(f"  {name:<8} http://{address}{path}")
        if outcome.fleet is not None:
            lines = list(write_commands(outcome.fleet, outcome.shards, bound))
            if lines:
                self._write_message("try")
            for line in lines:
                self._write_message(f"  {line}")

    def _show_reload(self, outcome: Outcome) -> None:
        published = outcome.published
        if outcome.fleet is None:
            self._write_address(_LAST_GOOD, "error")
        elif not published.changed:
            self._write_message(f"files changed, the table did not ({outcome.took:.0f} ms)")
        elif published.acknowledged:
            self._write_message(f"table {published.version[:8]} is served ({outcome.took:.0f} ms)")
        elif published.served:
            self._write_message(
                f"table {published.version[:8]} was rolled back; {published.served[:8]} is served"
            )
        elif published.refused:
            what = _count(published.refused, "resource")
            self._write_message(
                f"table {published.version[:8]} is served without {what} that workers refused"
            )
        else:
            self._write_message(f"table {published.version[:8]}: some workers do not have it yet")


def _listener_lines(
    fleet: ir.Fleet, bound: Sequence[Place], closed: Collection[str]
) -> Iterator[str]:
    hosts = list_hosts(fleet)
    for route in fleet.stream_routes:
        hosts.setdefault(route.listener, []).append(route.hostname)
    for listener in fleet.listeners[:_SHOWN_LISTENERS]:
        places = [Address(host_of(one), one[1]) for one in bound if is_of(one, listener)]
        scheme = listener.protocol.lower()
        where = " ".join(f"{scheme}://{place}" for place in places) or "NOT LISTENING"
        served = hosts.get(listener.name, [])
        names = ", ".join(served[:4]) + (f" and {len(served) - 4} more" if len(served) > 4 else "")
        text = _ANY_OF.get(listener.protocol, "any host") if "*" in served else names or "no route"
        if listener.name in closed:
            text = _report_closed(listener)
        yield f"  {listener.name} on {where}: {text}"
    if len(fleet.listeners) > _SHOWN_LISTENERS:
        yield f"  ... and {len(fleet.listeners) - _SHOWN_LISTENERS} more listeners"


def _report_closed(listener: ir.Listener) -> str:
    """Say what becomes of requests to a listener that only keeps its place; its problem says why."""
    host = "any host" if listener.hostname == ANY else listener.hostname
    ends = listener.tls is not None and not listener.tls.certificates
    return f"CLOSED, {host} {'ends the TLS handshake' if ends else 'answers 404'}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
