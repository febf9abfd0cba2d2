"""The verdict on a case: error and close with nothing at the backend, or exactly one message equal to the reference parse.

In: the outcomes of one group of plays and everything the origin received meanwhile. Out: nothing, or an AssertionError that
shows input, answer and what the backend got. There is no third way; it must never accept one.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import NoReturn

from origin.message import Head, Malformed, parse_head
from origin.recording import Received, RecordingOrigin
from wire.harness.cases import Case, Step
from wire.harness.client import DEADLINE, Address, Client
from wire.harness.reference import HOP_BY_HOP, Expected, expected_messages, observed, parse
from wire.harness.responses import Response
from wire.harness.runner import GOOD_AFTER, GOOD_BEFORE, Outcome, Probe, Target, plan, play

_SENTINEL = b"/sentinel"
_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_GOOD = (parse(GOOD_BEFORE)[0], parse(GOOD_AFTER)[0])


def run_case(
    case: Case,
    target: Target,
    address: Address,
    origin: RecordingOrigin,
    *,
    strict: bool = True,
    deadline: float = DEADLINE,
) -> None:
    """Play a case in all ways and judge each group. `strict` also checks the product's own headers."""
    references = expected_messages(case)
    probe = Probe(target)
    origin.take()
    try:
        for group in plan(case):
            play(group, address, probe, case.end, deadline)
            received = settle(origin, address)
            judge(case, references, group, received, strict=strict)
    finally:
        probe.close()


def settle(origin: RecordingOrigin, address: Address, deadline: float = 20.0) -> Received:
    """Everything the plays caused at the origin: a request sent last has arrived, no message is half there."""
    with Client(address) as client:
        client.request("GET", _SENTINEL.decode())
    origin.turn()
    received = origin.take()
    end = time.monotonic() + deadline
    while received.open_partials and time.monotonic() < end:
        time.sleep(0.005)
        later = origin.take()
        received.messages += later.messages
        received.partials += later.partials
        received.faults += later.faults
        received.open_partials = later.open_partials
    received.messages = [item for item in received.messages if item.target != _SENTINEL]
    return received


def judge(
    case: Case,
    references: list[Expected],
    group: list[Outcome],
    received: Received,
    *,
    strict: bool = True,
) -> None:
    """Raise AssertionError unless the group came out as the case says."""
    expected: Counter[Expected] = Counter()
    cut_off = 0
    for outcome in group:
        if outcome.fault:
            fail(case, outcome, received, outcome.fault)
        if case.end == "rst":
            cut_off += 1
            continue
        cut_off += _check_client_side(case, references, outcome, received, expected, strict=strict)
    if received.faults:
        fail(case, group[0], received, f"the proxy sent no strict HTTP: {received.faults}")
    got = Counter(observed(message) for message in received.messages)
    if case.end == "rst":
        got -= Counter({_GOOD[0]: len(group)})
    if got != expected:
        fail(
            case, group[0], received,
            f"backend got {_show(got - expected)} too much, {_show(expected - got)} too little",
        )  # fmt: skip
    if received.open_partials:
        fail(case, group[0], received, "an unfinished message was left open at the backend")
    if len(received.partials) > cut_off:
        fail(case, group[0], received, "a message was cut off at the backend")
    for partial in received.partials:
        _check_partial(case, group[0], received, partial, references)
    if strict:
        for message in received.messages:
            _check_forwarded_headers(case, group[0], received, list(message.headers))


def _check_client_side(
    case: Case,
    references: list[Expected],
    outcome: Outcome,
    received: Received,
    expected: Counter[Expected],
    *,
    strict: bool,
) -> int:
    # Adds what this play must have sent to the backend; returns how many cut-off messages it may have caused.
    cut_off = 0
    own = 0
    for index, step in enumerate(outcome.chosen):
        response = outcome.responses[index] if index < len(outcome.responses) else None
        if step.kind == "forward":
            if outcome.good[index]:
                message = _GOOD[0] if index == 0 else _GOOD[1]
            elif own < len(references):
                message = references[own]
            else:
                fail(case, outcome, received, "forwarded, but the reference parse finds no message")
            expected[message] += 1
            assert response is not None
            if response.body != (b"" if message.method == b"HEAD" else message.target):
                fail(case, outcome, received, f"the answer is not this request's: {response!r}")
        elif step.kind in ("abort", "gone"):
            cut_off += 1
        own += not outcome.good[index]
        if response is not None:
            _check_answer(case, outcome, received, step, response, strict=strict)
    last = outcome.chosen[-1]
    if last.close and outcome.ended not in ("eof", "reset" if last.kind == "gone" else "eof"):
        fail(case, outcome, received, f"the connection ended by {outcome.ended or 'nothing'}")
    return cut_off


def _check_answer(
    case: Case,
    outcome: Outcome,
    received: Received,
    step: Step,
    response: Response,
    *,
    strict: bool,
) -> None:
    interim = [item.status for item in response.interim]
    if any(status != 100 for status in interim) or len(interim) > 1:
        fail(case, outcome, received, f"interim answers {interim}")
    if not strict:
        return
    if response.value("server") is None or response.value("date") is None:
        fail(case, outcome, received, "an answer without server or date")
    if step.kind in ("reject", "abort") and not response.closes:
        fail(case, outcome, received, "an error without `connection: close`")
    if step.kind == "answer" and response.closes and not step.close:
        fail(case, outcome, received, "the connection should stay open")
    if step.kind in ("reject", "abort", "answer") and response.value("server") != "edgefast":
        fail(case, outcome, received, "an own answer must say `server: edgefast`")
    if step.kind == "answer" and case.location:
        location = response.value("location") or ""
        if not re.fullmatch(case.location, location):
            fail(case, outcome, received, f"location {location!r} is not {case.location!r}")
    for name, value in case.reply if step.kind != "forward" else ():
        if response.value(name) != value:
            fail(case, outcome, received, f"{name} is {response.value(name)!r}, not {value!r}")


def _check_partial(
    case: Case, outcome: Outcome, received: Received, partial: bytes, references: list[Expected]
) -> None:
    # What an aborted request left at the backend must not be mistaken for a whole one.
    try:
        head: Head | None = parse_head(partial)
    except Malformed as error:
        fail(case, outcome, received, f"cut-off message is malformed: {error}")
    if head is not None and head.length < 0 and partial.endswith(b"\r\n0\r\n\r\n"):
        fail(case, outcome, received, "an aborted body was completed with a last chunk")


def _check_forwarded_headers(
    case: Case, outcome: Outcome, received: Received, headers: list[tuple[bytes, bytes]]
) -> None:
    names = [name for name, _ in headers]
    values = dict(headers)
    for name in (b"x-forwarded-for", b"x-forwarded-proto", b"x-request-id"):
        if names.count(name) != 1:
            fail(case, outcome, received, f"{name.decode()} must be there once: {headers}")
    if not _UUID.fullmatch(values[b"x-request-id"]):
        fail(case, outcome, received, f"x-request-id {values[b'x-request-id']!r} is no UUID")
    bad = (HOP_BY_HOP - {b"transfer-encoding", b"connection"}) | {b"expect", b"trailer"}
    if found := bad & set(names):
        fail(case, outcome, received, f"hop-by-hop headers reached the backend: {found}")
    if values.get(b"connection", b"keep-alive").lower() not in (b"keep-alive", b"close"):
        fail(case, outcome, received, f"connection: {values[b'connection']!r} at the backend")


def _show(messages: Counter[Expected]) -> str:
    shown = [f"{count} x {message}" for message, count in list(messages.items())[:3]]
    return "; ".join(shown) or "nothing"


def fail(case: Case, outcome: Outcome, received: Received, why: str) -> NoReturn:
    """Raise with everything one needs to see."""
    sent = b"|".join(outcome.pieces) if len(outcome.pieces) < 4 else case.data
    due = ", ".join(" | ".join(map(str, steps)) for steps in outcome.steps)
    lines = [
        f"{case.name}, {outcome.way}: {why}",
        f"  sent      {_cut(sent)} then {case.end}",
        f"  expected  {due}",
        f"  answers   {[(item.status, dict(item.headers), _cut(item.body)) for item in outcome.responses]}",
        f"  ended     {outcome.ended}",
        f"  backend   {[_cut(item.raw) for item in received.messages[:4]]}",
        f"  cut off   {[_cut(item) for item in [*received.partials, *received.open_partials][:4]]}",
    ]
    raise AssertionError("\n".join(lines))


def _cut(data: bytes) -> str:
    return repr(data) if len(data) <= 600 else f"{data[:400]!r}...{len(data)} bytes"
