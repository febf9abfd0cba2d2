"""The case files against nginx and haproxy: where both agree on an input, we agree with them or say why not.

A differential check of the table itself. It finds cases that are stricter than the world, and cases whose expectation is
a slip of the pen. A case that stands alone carries the reason in `peers:`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

import pytest

from origin.recording import RecordingOrigin
from wire.harness.cases import Case, load
from wire.harness.oracle import settle
from wire.harness.peers import Peer
from wire.harness.reference import Expected, expected_messages, observed
from wire.harness.runner import Outcome, Probe, play, request_method

Verdict = Literal["forward", "reject", "other"]
PATIENCE = 0.25  # seconds: a peer that says nothing so long waits for more of the message

ALL = [case for case in load("request") if case.listener == "web"]
BY_FILE = {
    name: list(cases)
    for name, cases in groupby(ALL, key=lambda case: "/".join(case.name.split("/")[:2]))
}


@pytest.fixture(scope="module")
def peers(origin: RecordingOrigin) -> Iterator[list[Peer]]:
    with Peer("nginx", origin.port) as nginx, Peer("haproxy", origin.port) as haproxy:
        yield [nginx, haproxy]


def verdict_of(
    peer: Peer, case: Case, expected: list[Expected], origin: RecordingOrigin
) -> Verdict:
    """What a peer does with the whole input."""
    methods = [request_method(case.data)] * 8
    outcome = Outcome("whole", [case.data], list(case.steps), [False] * 8, methods)
    probe = Probe(peer)
    try:
        play([outcome], peer.web, probe, case.end, PATIENCE)
    finally:
        probe.close()
    received = settle(origin, peer.web, 0.5)
    if not received.messages:
        return "reject"
    same = [observed(message) for message in received.messages] == expected[
        : len(received.messages)
    ]
    return "forward" if same else "other"


def due(case: Case) -> set[Verdict]:
    """What the case allows, in the same terms."""
    first = {step.kind for step in case.steps[0]}
    found: set[Verdict] = set()
    if "forward" in first:
        found.add("forward")
    if first - {"forward"}:
        found.add("reject")
    return found


@pytest.mark.parametrize("name", BY_FILE)
def test_peers_agree_or_the_case_says_why(
    name: str, peers: list[Peer], origin: RecordingOrigin
) -> None:
    """One case file at a time; all disagreements of a file are shown together."""
    alone: list[str] = []
    for case in BY_FILE[name]:
        expected = expected_messages(case)
        verdicts = {verdict_of(peer, case, expected, origin) for peer in peers}
        if len(verdicts) == 1 and not verdicts & due(case) and not case.peers:
            alone.append(f"{case.name}: we {sorted(due(case))}, they {verdicts.pop()}")
    assert not alone, "\n".join(alone)
