"""A minute of everything: a reload each second with certificates, routes, listeners and a port that change, a worker killed now and then,
and all the clients that people have at once. Nothing is lost but what was under way in a killed worker."""

from __future__ import annotations

import os
import signal
import time

import pytest

from origin.recording import RecordingOrigin
from wire.http2.changing import NAME, Changing, running
from wire.http2.keeper import Keepers, Wants
from wire.http2.programs import check_curl, check_go, curl, go, h2load
from wire.http2.test_endings import held_by

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

SECONDS = 60
KILLS = 3


def test_reloads_each_second() -> None:
    with RecordingOrigin() as origin, Changing(origin.port, 500, workers=2) as site:
        tls = lambda: site.authority.client_context(alpn=["h2"])  # noqa: E731
        wants = [
            Wants(port=site.tls if secret else site.plain, name=NAME, tls=tls if secret else None,
                  hasty=hasty, method="POST", body=bytes(5000))
            for secret in (False, True) for hasty in (False, True)
        ]  # fmt: skip
        gone = [Wants(port=site.extra, may_refuse=True, hasty=True)]
        during = {"until-eof": "true"}
        with (
            running(go(site.tls, NAME, site.trusted, 0, c=4, **during)) as by_tls,
            running(go(site.plain, NAME, None, 0, c=4, body=3000, **during)) as plain,
            Keepers(*wants, *gone) as tally,
        ):
            end, curls = time.monotonic() + SECONDS, 0
            while time.monotonic() < end:
                check_curl(site.during(curl(site.tls, NAME, site.trusted, 2000), pace=1.0), 2000)
                curls += 1
            said = [str(one.communicate(timeout=60)[0]) for one in (by_tls, plain)]
        for one in said:
            check_go(one, int(one.rpartition(" ")[2]))
        assert curls and not tally.failures and not tally.lost, (tally.failures[:5], tally.lost)
        assert tally.ended > 20, tally


@pytest.mark.parametrize("tls", [True, False])
def test_h2load_for_long(tls: bool) -> None:
    """Its connections end only when it has no more to ask."""
    count = 200_000
    with RecordingOrigin() as origin, Changing(origin.port, 1_000_000, workers=2) as site:
        port = site.tls if tls else site.plain
        said = site.during(h2load(port, NAME, count, tls=tls), pace=1.0)
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in said, said


def test_kills_between_reloads() -> None:
    with RecordingOrigin() as origin, Changing(origin.port, 500, workers=2) as site:
        site.workers_may_die = True
        wants = [Wants(port=site.plain, hasty=bool(number % 2)) for number in range(6)]
        held: set[int] = set()
        with Keepers(*wants) as tally:
            for _ in range(KILLS):
                good = tally.good
                site.change_while(lambda: tally.good < good + 3000, pace=1.0)  # noqa: B023
                victim = site.worker_pids[0]
                held |= held_by(victim, site.plain)
                os.kill(victim, signal.SIGKILL)
                site.wait_until(lambda: victim not in site.worker_pids, "its end")  # noqa: B023
                site.wait_until(lambda: len(site.worker_pids) == 2, "another one")
        assert set(tally.lost) <= held and not tally.failures, (tally.failures[:5], tally.lost)
