"""The field of one row: every asked-for proxy in every variant, started, probed and kept alive.

In: peers, scenarios, the origin. Out: entrants that answered correctly, and for each other one
the reason why it takes no part. Must never leave a process behind: `open_field` stops them all.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.origins import Origins
from bench.peers.peer import Peer, PeerUnavailable, Running, Setup, find_free_port
from bench.probe import ProbeFailed, check_proxy
from bench.scenario import Scenario

Say = Callable[[str], None]


@dataclass(frozen=True)
class Bench:
    """What every measurement needs: who runs, how long, where."""

    peers: Sequence[Peer]
    seconds: float
    rounds: int
    quick: bool
    folder: Path
    origins: Origins
    say: Say


@dataclass(frozen=True)
class Variant:
    """One scenario of a row; `label` tells variants of the same proxy apart ("" if only one)."""

    label: str
    scenario: Scenario


@dataclass(frozen=True)
class Entrant:
    """A running proxy in one variant."""

    label: str
    variant: Variant
    running: Running


@dataclass
class Field:
    """Who takes part, and who does not and why, by label in table order."""

    entrants: list[Entrant] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def make_label(peer: Peer, variant: Variant) -> str:
    """`nginx`, or `nginx 10000` with variants."""
    return f"{peer.name} {variant.label}".strip()


def start_peer(bench: Bench, peer: Peer, scenario: Scenario, label: str) -> Running:
    """Start and probe one proxy in a folder of its own; PeerUnavailable or ProbeFailed."""
    folder = bench.folder / label.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    origins = bench.origins
    port, origin = find_free_port(scenario.stream == "udp"), origins.find(scenario)
    setup = Setup(scenario, folder, port, origin, origins.certificate)
    running = peer.start(setup)
    try:
        check_proxy(running)
    except BaseException:
        stop_peer(running)
        raise
    return running


def stop_peer(running: Running) -> None:
    """Stop a proxy and remove its folder (configurations of 100k routes and logs are large)."""
    running.stop()
    shutil.rmtree(running.setup.folder, ignore_errors=True)


@contextmanager
def open_field(bench: Bench, variants: Sequence[Variant]) -> Iterator[Field]:
    """All proxies in all variants, alive until the block ends."""
    result = Field()
    try:
        for peer in bench.peers:
            for variant in variants:
                label = make_label(peer, variant)
                own = replace(variant, scenario=peer.adapt(variant.scenario))
                try:
                    running = start_peer(bench, peer, own.scenario, label)
                except (PeerUnavailable, ProbeFailed, subprocess.SubprocessError) as error:
                    result.missing[label] = str(error)
                    bench.say(f"  {label}: left out: {error}")
                else:
                    result.entrants.append(Entrant(label, own, running))
        yield result
    finally:
        for entrant in result.entrants:
            stop_peer(entrant.running)
