"""Plays a case against a proxy: whole, at every split point, byte by byte, and pipelined between two good requests.

A split is only a split when the proxy has read the first piece before the second is sent. So after each piece a probe
goes to the proxy's `void` port: one worker serves its sockets in order, hence its answer to the probe says that the piece
was read. No sleeping; the splits of a case run side by side. In: case, proxy, origin. Out: `Outcome`s for the oracle.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from wire.harness.cases import Case, End, Step
from wire.harness.client import DEADLINE, Address, Client, NoResponse
from wire.harness.responses import BadResponse, Response

GOOD_BEFORE = b"GET /good/before HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"
GOOD_AFTER = b"GET /good/after HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"
GOOD = Step("forward", (200,))
BATCH = 100  # connections at a time
ALL_SPLITS = 700  # bytes: up to here every split point is tried, above the telling ones


class Target(Protocol):
    """What a case is played against."""

    @property
    def void(self) -> Address:
        """A port of the same worker that answers 404 by itself."""


@dataclass
class Outcome:
    """One play of a case: what was sent how, and what the client saw."""

    way: str
    pieces: list[bytes]
    steps: list[tuple[Step, ...]]  # due, per message
    good: list[bool]  # which of them are the harness's own requests
    methods: list[str]
    responses: list[Response] = field(default_factory=list)
    chosen: list[Step] = field(default_factory=list)  # the alternative that came true
    ended: str = ""
    fault: str = ""


class Probe:
    """Tells that a worker has read what was sent before."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client: Client | None = None

    def turn(self, *, fresh: bool) -> None:
        """Return after the worker has gone round; `fresh` also waits behind connections not accepted yet."""
        if fresh:
            self.close()
        for _ in range(2):
            if self._client is None:
                self._client = Client(self._target.void)
            try:
                answer = self._client.request("GET", "/probe")
            except NoResponse:  # its keep-alive time or request count has run out
                self.close()
                continue
            assert answer.status == 404, f"the void port answered {answer.status}"
            if answer.closes:
                self.close()
            return
        raise AssertionError("the void port does not answer")

    def close(self) -> None:
        """Drop the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None


def request_method(data: bytes) -> str:
    """The method a client believes to have sent (HEAD answers have no body)."""
    return "HEAD" if data.lstrip(b"\r\n").startswith(b"HEAD ") else "GET"


def split_points(data: bytes) -> list[int]:
    """Where to cut: everywhere, or in long inputs at both ends, around line ends and colons, and in between."""
    if len(data) <= ALL_SPLITS:
        return list(range(1, len(data)))
    marks = {*range(1, 160), *range(len(data) - 80, len(data))}
    marks |= {len(data) * part // 64 for part in range(1, 64)}
    lines = [at for at, byte in enumerate(data) if byte in b"\r\n:"]
    for at in lines[:: max(1, len(lines) // 48)]:
        marks |= {at, at + 1}
    return sorted(at for at in marks if 0 < at < len(data))


def bytewise(data: bytes) -> list[bytes]:
    """Single bytes; the middle of long inputs in pieces of 61 bytes, which is no divisor of anything."""
    if len(data) <= ALL_SPLITS:
        return [data[at : at + 1] for at in range(len(data))]
    head, tail = data[:300], data[-120:]
    middle = data[300:-120]
    pieces = [head[at : at + 1] for at in range(len(head))]
    pieces += [middle[at : at + 61] for at in range(0, len(middle), 61)]
    return pieces + [tail[at : at + 1] for at in range(len(tail))]


def plan(case: Case) -> Iterator[list[Outcome]]:
    """The plays of a case, in groups that run side by side."""
    steps = list(case.steps)
    plain = [False] * len(steps)
    methods = [request_method(case.data)] * len(steps)
    yield [Outcome("whole", [case.data], steps, plain, methods)]
    splits = [
        Outcome(f"split at {at}", [case.data[:at], case.data[at:]], steps, plain, methods)
        for at in split_points(case.data)
    ]
    for start in range(0, len(splits), BATCH):
        yield splits[start : start + BATCH]
    yield [Outcome("byte by byte", bytewise(case.data), steps, plain, methods)]
    if case.pipeline:
        after = case.end == "open"
        data = GOOD_BEFORE + case.data + (GOOD_AFTER if after else b"")
        steps = [(GOOD,), *steps, *([(GOOD,)] if after else [])]
        good = [True, *plain, *([True] if after else [])]
        methods = ["GET", *methods, *(["GET"] if after else [])]
        pieces = [GOOD_BEFORE, case.data, *([GOOD_AFTER] if after else [])]
        cut = Outcome("pipelined, cut behind each message", pieces, steps, good, methods)
        # A client that goes away need not get the answers it did not wait for.
        yield [Outcome("pipelined", [data], steps, good, methods), cut] if after else [cut]


def play(
    outcomes: list[Outcome],
    address: Address,
    probe: Probe,
    end: End,
    deadline: float = DEADLINE,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Run a group: all first pieces, a turn of the worker, all second pieces, ..., then read the answers."""
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(Client(address, deadline=deadline, tls=tls)) for _ in outcomes
        ]
        for client, outcome in zip(clients, outcomes, strict=True):
            client.expect(*outcome.methods)
        rounds = max(len(outcome.pieces) for outcome in outcomes)
        for number in range(rounds):
            for client, outcome in zip(clients, outcomes, strict=True):
                if number < len(outcome.pieces):
                    client.send(outcome.pieces[number])
                    if end != "open" and number == 0 and outcome.good[0]:
                        client.read_some()  # the answer of the good request, kept for later
            if number + 1 < rounds or end == "rst":
                probe.turn(fresh=number == 0)
                # A client that goes on sending may meet a reset once the proxy no longer waits for its end.
                for client in clients:
                    client.take_in()
        for client, outcome in zip(clients, outcomes, strict=True):
            if end == "fin":
                client.finish()
            elif end == "rst":
                client.reset()
                outcome.ended = "sent reset"
                continue
        for client, outcome in zip(clients, outcomes, strict=True):
            if end != "rst":
                _collect(client, outcome, patient=tls is None)


def _collect(client: Client, outcome: Outcome, *, patient: bool) -> None:
    # Reads the answer of each message until one of them ends the connection. TLS has no half-close: a proxy that lingers
    # keeps a patient client waiting for a second each time.
    try:
        for alternatives in outcome.steps:
            try:
                response = client.read_response()
            except NoResponse as error:
                outcome.ended = client.ended
                gone = next((step for step in alternatives if step.kind == "gone"), None)
                if gone is None or client.ended == "timeout":
                    outcome.fault = f"no response: {error}"
                else:
                    outcome.chosen.append(gone)
                return
            outcome.responses.append(response)
            step = choose(response, alternatives)
            if step is None:
                outcome.fault = f"got {response.status}"
                return
            outcome.chosen.append(step)
            if step.close and not patient:
                client.close()
                outcome.ended = "eof"
                return
            if step.close:
                if outcome.way != "whole":
                    client.finish()  # whole: the proxy must close by itself
                further = client.read_to_end()
                outcome.ended = client.ended
                if further:
                    outcome.fault = f"a further answer behind the last: {further}"
                return
        outcome.ended = client.ended or "open"
        if client.reader.rest or client.responses:
            outcome.fault = "a further answer behind the last"
    except BadResponse as error:
        outcome.fault = str(error)


def choose(response: Response, alternatives: tuple[Step, ...]) -> Step | None:
    """The alternative that a response belongs to."""
    for step in alternatives:
        if step.kind == "forward" and response.status == 200:
            return step
        if step.kind in ("reject", "abort") and response.status in step.statuses:
            return step
        if step.kind == "answer" and response.status in step.statuses and not response.closes:
            return step
        if step.kind == "gone" and response.status in (400, 408):
            return step
    return None
