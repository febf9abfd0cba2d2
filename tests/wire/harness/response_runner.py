"""Plays a response case: the backend's bytes whole, at every split point and byte by byte, each to a client of its own.

The test is the origin itself (`ManualOrigin`): it sends a first piece to all clients' requests, waits a turn of the worker,
and sends the second. In: case, proxy, origin. Out: an AssertionError unless every client saw what the case says, nothing
else, and the backend connections of bad answers were thrown away.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import NoReturn

from origin.manual import ManualOrigin, Turn
from wire.harness.cases import Case, Step
from wire.harness.client import Address, Client, NoResponse, build_request
from wire.harness.responses import BadResponse, Response
from wire.harness.runner import BATCH, Probe, Target, bytewise, split_points

NEXT = "/next"
NEXT_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-next: yes\r\n\r\nnext"


@dataclass
class Play:
    """One answer of the backend and what became of it."""

    way: str
    pieces: list[bytes]
    response: Response | None = None
    ended: str = ""


def run_response_case(case: Case, target: Target, address: Address, origin: ManualOrigin) -> None:
    """Play a case in all ways."""
    splits = [
        Play(f"split at {at}", [case.data[:at], case.data[at:]]) for at in split_points(case.data)
    ]
    groups = [[Play("whole", [case.data])], [Play("byte by byte", bytewise(case.data))]]
    groups += [splits[start : start + BATCH] for start in range(0, len(splits), BATCH)]
    probe = Probe(target)
    try:
        for group in groups:
            _play_group(case, group, address, probe, origin)
    finally:
        probe.close()


def _play_group(
    case: Case, group: list[Play], address: Address, probe: Probe, origin: ManualOrigin
) -> None:
    origin.drop_idle()
    probe.turn(fresh=True)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(address)) for _ in group]
        for index, client in enumerate(clients):
            client.expect(case.request)
            client.send(build_request(case.request, f"/r/{index}"))
        turns = _expect(case, origin, [f"/r/{index}" for index in range(len(group))])
        rounds = max(len(play.pieces) for play in group)
        for number in range(rounds):
            for turn, play in zip(turns, group, strict=True):
                if number < len(play.pieces):
                    turn.send(play.pieces[number])
            if number + 1 < rounds or case.end == "rst":
                probe.turn(fresh=False)
        for turn in turns:
            if case.end == "fin":
                turn.close()
            elif case.end == "rst":
                turn.reset()
        for client, play, turn in zip(clients, group, turns, strict=True):
            step = _check_client(case, play, client)
            if step.kind != "deliver" and case.end == "open" and not turn.dropped_by_proxy():
                fail(case, play, "the backend connection was kept after a bad answer")
        _check_next(case, group, clients, origin)


def _expect(case: Case, origin: ManualOrigin, targets: list[str]) -> list[Turn]:
    found = origin.expect(len(targets))
    missing = [target for target in targets if target.encode() not in found]
    assert not missing, f"{case.name}: requests did not reach the backend: {missing[:5]}"
    return [found[target.encode()] for target in targets]


def _check_client(case: Case, play: Play, client: Client) -> Step:
    alternatives = case.steps[0]
    try:
        play.response = client.read_response()
    except BadResponse as error:
        fail(case, play, str(error))
    except NoResponse as error:
        play.ended = client.ended
        if client.ended == "timeout":
            fail(case, play, f"neither an answer nor an end: {error}")
        for step in alternatives:
            if step.kind == "cut":  # ended within head or body: the client can tell
                return step
        fail(case, play, f"no response: {error}")
    play.ended = client.ended
    response = play.response
    for step in alternatives:
        if step.kind == "deliver" and response.status == _final_status(case.data):
            _check_delivered(case, play, response)
            return step
        if step.kind == "reject" and response.status in step.statuses:
            if response.value("server") != "edgefast":
                fail(case, play, "the error answer is not the proxy's own")
            return step
    fail(case, play, f"expected {' | '.join(map(str, alternatives))}")


def _final_status(data: bytes) -> int:
    # The first status that is not 1xx.
    statuses = [int(item) for item in re.findall(rb"HTTP/1\.[01] ([0-9]{3})", data)]
    return next((status for status in statuses if status >= 200), 0)


def _check_delivered(case: Case, play: Play, response: Response) -> None:
    body = b"" if case.request == "HEAD" else case.body or b""
    if response.body != body:
        fail(case, play, f"body {response.body[:200]!r} instead of {body[:200]!r}")
    if response.trailers:
        fail(case, play, f"trailers that the client did not ask for: {response.trailers}")
    if case.chunked is not None and (response.framing == "chunked") != case.chunked:
        fail(case, play, f"the body came framed by {response.framing}")
    for name in ("server", "date"):
        if response.value(name) is None:
            fail(case, play, f"no {name}")
    hop = {"keep-alive", "proxy-connection", "te", "trailer", *(i.decode() for i in case.absent)}
    for name in hop:
        if response.values(name):
            fail(case, play, f"{name} came through")
    for name, value in case.reply:
        if value not in response.values(name):
            fail(case, play, f"{name} is {response.values(name)}, not {value!r}")
    for interim in response.interim:
        if interim.status == 101 or interim.status >= 200:
            fail(case, play, f"interim {interim.status}")


def _check_next(case: Case, group: list[Play], clients: list[Client], origin: ManualOrigin) -> None:
    # The same clients where they may go on, and a new one, get the next answer and nothing that was left over.
    play = group[0]
    client = clients[0]
    if play.response is None or play.response.closes or client.ended:
        with Client(client.address) as fresh:
            _next(case, play, fresh, origin)
    else:
        _next(case, play, client, origin)


def _next(case: Case, play: Play, client: Client, origin: ManualOrigin) -> None:
    client.expect("GET")
    client.send(build_request("GET", NEXT))
    turn = origin.expect(1).get(NEXT.encode())
    if turn is None:
        fail(case, play, "the next request did not reach the backend")
    turn.send(NEXT_ANSWER)
    try:
        answer = client.read_response()
    except AssertionError as error:
        fail(case, play, f"the next request: {error}")
    if answer.body != b"next" or answer.value("x-next") != "yes":
        fail(case, play, f"the next request got {answer}")


def fail(case: Case, play: Play, why: str) -> NoReturn:
    """Raise with everything one needs to see."""
    sent = b"|".join(play.pieces) if len(play.pieces) < 4 else case.data
    shown = play.response and (
        play.response.status,
        play.response.headers,
        play.response.body[:300],
    )
    raise AssertionError(
        f"{case.name}, {play.way}: {why}\n"
        f"  backend sent {sent[:600]!r} then {case.end}\n"
        f"  client got   {shown}, complete {play.response and play.response.complete}\n"
        f"  ended        {play.ended}"
    )
