"""200 kinds of invalid object at once: every other route keeps its 200s, each bad one is told what is wrong, and heals."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.installed import Installed, applications, backend_of, edge_proxy, installed, route
from cluster.invalid import Case, Ground, certificate_of, ground_gateways, ground_objects
from cluster.invalid_routes import route_cases
from cluster.invalid_statuses import apply_all, wait_told
from cluster.world.world import World

log = logging.getLogger(__name__)

SOUND = 10  # routes that must not notice anything
NUMBER = 200


@pytest.fixture(scope="module")
def release(world: World) -> Iterator[Installed]:
    """A release with a merged class, Backends allowed."""
    with installed(world, {"extensionApis": {"enableBackend": True}}) as made:
        made.admin.apply(
            edge_proxy(made.namespace, "merged", mergeGateways=True),
            made.gateway_class(made.namespace, (made.namespace, "merged")),
        )
        yield made


@pytest.fixture
def apps(world: World) -> Iterator[tuple[str, ...]]:
    """Two namespaces with a backend in each."""
    with applications(world, "bad", "other") as made:
        yield made


def test_two_hundred_mistakes_harm_nobody_else(release: Installed, apps: tuple[str, ...]) -> None:
    world, merged = release.world, release.namespace
    namespace, other = apps
    ground = Ground(namespace, other, "main", merged, release.controller, certificate_of(world))
    cases = list(route_cases(ground))
    assert len({one.name for one in cases}) == len(cases)
    assert len(cases) >= NUMBER, len(cases)
    hosts = [f"sound-{number}.example" for number in range(SOUND)]
    release.admin.apply(
        *ground_objects(ground),
        *ground_gateways(ground),
        *(route(namespace, host.partition(".")[0], "main", [host]) for host in hosts),
    )
    address = release.address(namespace, "main")
    for host in hosts:
        release.wait_status(address, host)

    with world.client.load(f"http://{address}", hosts, rate=100) as answers:
        began = time.monotonic()
        apply_all(release, [one for case in cases for one in case.wrong])
        applied = time.monotonic() - began
        wait_told(release, namespace, cases, wrong=True)
        log.info(
            "%d mistakes: applied in %.1f s, all told %.1f s later",
            len(cases),
            *_times(began, applied),
        )
        _wait_answers(release, address, cases)
        answers.wait_more(100)
        assert not answers.unexpected(200), "while all are wrong"

        began = time.monotonic()
        apply_all(release, [one for case in cases for one in case.right])
        applied = time.monotonic() - began
        wait_told(release, namespace, cases, wrong=False)
        log.info("mended in %.1f s, all told %.1f s later", *_times(began, applied))
        for case in cases:
            answer = release.wait_status(address, case.host)
            assert backend_of(answer) == namespace, case.name
        answers.wait_more(100)
    assert not answers.unexpected(200)
    assert "Traceback" not in release.controller_log()


def _times(began: float, applied: float) -> tuple[float, float]:
    """Return the seconds that applying took, and those since then."""
    return applied, time.monotonic() - began - applied


def _wait_answers(release: Installed, address: str, cases: list[Case]) -> None:
    """Wait until every host of an invalid route answers as it should: bad news is told before the proxies have it."""
    deadline = time.monotonic() + 60
    while found := _wrong_answers(release, address, cases):
        assert time.monotonic() < deadline, found


def _wrong_answers(release: Installed, address: str, cases: list[Case]) -> list[str]:
    """Return where a host of an invalid route answers otherwise than it should."""
    asked = [one for one in cases if one.answers]
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda one: release.ask(address, one.host).status, asked))
    return [
        f"{one.name}: {status}, not {one.answers}"
        for one, status in zip(asked, statuses, strict=True)
        if status != one.answers
    ]
