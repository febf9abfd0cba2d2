"""`python -m core.h2.sessionfuzz SECONDS [SEED]` in the folder tests: scripts of a whole session, changed at random, on a real engine.

In: the corpus beside this file (session/), and what earlier runs found worth keeping. Out: scripts that show something new, in build/fuzz/session;
one that breaks a rule in build/fuzz/session-finds, and an exit status of 1. What is new is told by frames, codes and counters, not by branches.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
import time
from pathlib import Path

import click

from core.h2.sessionscript import Behind, fleet_of, play
from core.pipes import PipeWorld

CORPUS = Path(__file__).parent / "session"
BUILD = Path(__file__).parents[3] / "build" / "fuzz"
PER_WORLD = 2000  # scripts
MOST = 300  # bytes of a script
_HANG = 60.0  # seconds for one script


def read_corpus(*folders: Path) -> list[bytes]:
    """Return the scripts of folders, in the order of their names."""
    return [one.read_bytes() for folder in folders for one in sorted(folder.glob("*"))]


def change(pick: random.Random, corpus: list[bytes]) -> bytes:
    """A script that is a little like one of these, or like two."""
    script = bytearray(pick.choice(corpus))
    for _ in range(pick.choice((1, 1, 2, 4, 8))):
        at = pick.randrange(len(script) + 1)
        match pick.randrange(6):
            case 0:
                script[at:at] = pick.randbytes(pick.randrange(1, 8))
            case 1:
                del script[at : at + pick.randrange(1, 8)]
            case 2 if at < len(script):
                script[at] = pick.randrange(256)
            case 3:
                other = pick.choice(corpus)
                start = pick.randrange(len(other) + 1)
                script[at:] = other[start:]
            case 4 if at < len(script):
                script[at] ^= 1 << pick.randrange(8)
            case _:
                part = script[at : at + pick.randrange(1, 30)]
                script[at:at] = part * pick.randrange(1, 4)
    return bytes(script[:MOST])


async def replay(pipes: PipeWorld, scripts: list[bytes]) -> list[set[str]]:
    """Play scripts one after the other."""
    pipes.apply(fleet_of(pipes))
    behind = Behind(pipes)
    return [await asyncio.wait_for(play(pipes, behind, one), _HANG) for one in scripts]


def _keep(folder: Path, script: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha1(script).hexdigest()[:16]
    path.write_bytes(script)
    return path


async def _fuzz(
    pipes: PipeWorld, corpus: list[bytes], known: set[str], pick: random.Random, end: float
) -> int:
    pipes.apply(fleet_of(pipes))
    behind = Behind(pipes)
    for played in range(PER_WORLD):
        if time.monotonic() > end:
            return played
        script = change(pick, corpus)
        try:
            seen = await asyncio.wait_for(play(pipes, behind, script), _HANG)
        except BaseException:
            click.echo(f"found: {_keep(BUILD / 'session-finds', script)}")
            raise
        if seen - known:
            known |= seen
            corpus.append(script)
            _keep(BUILD / "session", script)
    return PER_WORLD


@click.command()
@click.argument("seconds", type=float)
@click.argument("seed", type=int, required=False)
def main(seconds: float, seed: int | None) -> None:
    """Fuzz for SECONDS."""
    seed = time.time_ns() % 1_000_000 if seed is None else seed
    corpus = read_corpus(CORPUS, BUILD / "session")
    known: set[str] = set()
    total, pick, end = 0, random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < end:
        pipes = PipeWorld()
        try:
            if not total:
                for seen in pipes.loop.run_until_complete(replay(pipes, corpus)):
                    known |= seen
            total += pipes.loop.run_until_complete(_fuzz(pipes, corpus, known, pick, end))
            pipes.loop.run_until_complete(pipes.finish())
        finally:
            pipes.close()
    click.echo(
        f"session: {total} scripts, {len(corpus)} of them kept, {len(known)} kinds seen, seed {seed}"
    )


if __name__ == "__main__":
    sys.exit(main())
