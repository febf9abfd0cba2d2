"""Processes that end while clients of HTTP/2 are busy with them: a worker is killed, another process takes over."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from origin.recording import RecordingOrigin
from proxy.command import Process, Start, gateway, gateway_class, route, save, start
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.certificates import Authority
from wire.harness.ports import free_port
from wire.http2.changing import Changing, running
from wire.http2.keeper import Keepers, Wants
from wire.http2.programs import check_go, go

__all__ = ["start"]

NAME = "x.test"


def held_by(victim: int, port: int) -> set[int]:
    """Ports of the clients whose connections a worker has accepted; it is stopped, so that this stays."""
    os.kill(victim, signal.SIGSTOP)
    while proc.state(victim) != "T":
        time.sleep(0.001)
    return {
        one.remote_port
        for one in proc.connections([victim])
        if one.local_port == port and one.state != "LISTEN"
    }


def test_a_worker_that_is_killed() -> None:
    """What was under way in it is lost, and nothing else."""
    with RecordingOrigin() as origin, Changing(origin.port, workers=2) as site:
        site.workers_may_die = True
        wants = [Wants(port=site.plain, hasty=bool(number % 2)) for number in range(6)]
        with Keepers(*wants) as tally:
            site.wait_until(lambda: tally.good > 300, "a beginning")
            victim = site.worker_pids[0]
            held = held_by(victim, site.plain)
            os.kill(victim, signal.SIGKILL)
            good = tally.good
            site.wait_until(lambda: victim not in site.worker_pids, "its end")
            site.wait_until(lambda: len(site.worker_pids) == 2, "another one")
            site.change()
            site.wait_until(lambda: tally.good > good + 300, "an end")
        assert set(tally.lost) <= held, (tally.lost, held)
        assert not tally.failures, tally.failures[:5]


def test_another_process_takes_over(start: Start, tmp_path: Path) -> None:
    """The old one tells its clients to go, and serves what they have asked for: Go's, and those who keep connections."""
    port, authority = free_port(), Authority()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    pair = authority.issue([NAME])
    secret = make.tls_secret("cert", pair.certificate, pair.key)

    def serve(mark: str, after: Process | None) -> Process:
        file = tmp_path / f"{mark}.yaml"
        save(file, gateway_class(), gateway(port, tls="cert"), route(mark), secret)
        order = ("--take-over",) if after else ()
        return start(
            "-f", str(file), "--workers", "2", "--drain-timeout", "30", *order, after=after
        )

    one = serve("old", None)
    one.wait_ready()
    command = go(port, NAME, trusted, 0, **{"until-eof": "true", "status": 302})
    wants = [
        Wants(
            port=port,
            name=NAME,
            tls=lambda: authority.client_context(alpn=["h2"]),
            status=302,
            hasty=hasty,
        )
        for hasty in (False, True, False, True)
    ]
    with running(command) as clients, Keepers(*wants) as tally:
        one.until(lambda: tally.good > 200, "a beginning")
        two = serve("new", one)
        assert one.process.wait(90) == 0, one.said
        good = tally.good
        two.until(lambda: tally.good > good + 200, "an end")
        said = str(clients.communicate(timeout=60)[0])
    assert not tally.failures and not tally.lost, (tally.failures[:5], tally.lost, one.said)
    assert len(tally.marks) == 2, tally.marks  # of the old one, and of the new one
    served = int(said.rpartition(" ")[2])
    assert served > 100
    check_go(said, served)
