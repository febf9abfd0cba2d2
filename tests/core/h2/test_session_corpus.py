"""The corpus of whole sessions, played again on a real engine, and some changes of it; the rest is `make fuzz`."""

from __future__ import annotations

import random

from core.h2.sessionfuzz import CORPUS, change, read_corpus, replay
from core.pipes import PipeWorld

CHANGES = 150


async def test_corpus(pipes: PipeWorld) -> None:
    scripts = read_corpus(CORPUS)
    assert scripts
    seen = set().union(*await replay(pipes, scripts))
    # The corpus reaches what it is there for: answers, both ends of streams, refusals of all kinds, breaches.
    assert {"status 200", "status 302", "status 502", "reset 1", "reset 7", "goaway 0"} <= seen
    assert {"goaway 1", "goaway 11", "http2_breach_resets"} <= seen


async def test_changes(pipes: PipeWorld) -> None:
    pick, scripts = random.Random(1), read_corpus(CORPUS)
    await replay(pipes, [change(pick, scripts) for _ in range(CHANGES)])
