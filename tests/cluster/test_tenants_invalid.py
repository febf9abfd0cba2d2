"""200 kinds of invalid object at once: every other route keeps its 200s, each bad one is told what is wrong, and heals.

All are in one merged fleet with the sound ones, under a steady load of these; see invalid_*.py for the mistakes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cluster.installed import (
    GATEWAY,
    Installed,
    applications,
    backend_of,
    conditions_of,
    edge_proxy,
    gateway,
    installed,
    listener,
    route,
)
from cluster.invalid import Case, Ground, ground_objects
from cluster.invalid_gateways import gateway_cases
from cluster.invalid_routes import route_cases
from cluster.world.world import World

pytestmark = pytest.mark.timeout(600)

log = logging.getLogger(__name__)

SOUND = 10  # routes that must not notice anything
NUMBER = 200
KINDS = ("httproutes", "gateways", "gatewayclasses", "backendtlspolicies")


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
    pki = world.plane.site.pki
    certificate = {
        "tls.crt": (pki / "apiserver.crt").read_text(),
        "tls.key": (pki / "apiserver.key").read_text(),
        "ca.crt": (pki / "ca.crt").read_text(),
    }
    ground = Ground(namespace, other, "main", merged, release.controller, certificate)
    cases = [*route_cases(ground), *gateway_cases(ground)]
    assert len({one.name for one in cases}) == len(cases)
    assert len(cases) >= NUMBER, len(cases)
    closed = {**listener("closed", 8081), "allowedRoutes": {"kinds": [{"kind": "GRPCRoute"}]}}
    hosts = [f"sound-{number}.example" for number in range(SOUND)]
    release.admin.apply(
        *ground_objects(ground),
        gateway(
            namespace,
            "main",
            merged,
            listener(),
            listener("narrow", 8082, "narrow.example"),
            listener("held", 80, "held.mine.example"),
            closed,
        ),
        gateway(other, "eg", merged, listener(port=8083)),
        *(route(namespace, host.partition(".")[0], "main", [host]) for host in hosts),
    )
    address = release.address(namespace, "main")
    for host in hosts:
        release.wait_status(address, host)

    with world.client.load(f"http://{address}", hosts, rate=100) as answers:
        began = time.monotonic()
        _apply(release, [one for case in cases for one in case.wrong])
        applied = time.monotonic() - began
        _wait_told(release, namespace, cases, wrong=True)
        log.info(
            "%d mistakes: applied in %.1f s, all told %.1f s later",
            len(cases),
            *_times(began, applied),
        )
        assert not (found := _wrong_answers(release, address, cases)), found
        answers.wait_more(100)
        assert not answers.unexpected(200), "while all are wrong"

        began = time.monotonic()
        _apply(release, [one for case in cases for one in case.right])
        applied = time.monotonic() - began
        _wait_told(release, namespace, cases, wrong=False)
        log.info("mended in %.1f s, all told %.1f s later", *_times(began, applied))
        for case in cases:
            if case.kind == "httproutes":
                answer = release.wait_status(address, case.host)
                assert backend_of(answer) == namespace, case.name
        answers.wait_more(100)
    assert not answers.unexpected(200)
    assert "Traceback" not in release.controller_log()


def _times(began: float, applied: float) -> tuple[float, float]:
    """Return the seconds that applying took, and those since then."""
    return applied, time.monotonic() - began - applied


def _apply(release: Installed, manifests: Sequence[Any]) -> None:
    """Apply several at a time, those that others need first."""
    first = [one for one in manifests if one["kind"] in ("Service", "RateLimitFilter")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(release.admin.apply, first))
        list(pool.map(release.admin.apply, [one for one in manifests if one not in first]))


def _wait_told(release: Installed, namespace: str, cases: list[Case], *, wrong: bool) -> None:
    """Wait until every case has its condition, or has it no more and is sound."""
    deadline = time.monotonic() + 90
    while True:
        seen = {
            (kind, one["metadata"]["name"]): one
            for kind in KINDS
            for one in release.admin.items(_collection(kind, namespace))
        }
        left = {
            case.name: list(conditions_of(seen.get((case.kind, case.name))))
            for case in cases
            if not (_is_told if wrong else _is_healed)(case, seen.get((case.kind, case.name)))
        }
        if not left:
            return
        if time.monotonic() > deadline:
            shown = [f"{name}: {found}" for name, found in list(left.items())[:10]]
            raise AssertionError("\n".join([f"{len(left)} of {len(cases)}: {list(left)}", *shown]))
        time.sleep(0.1)


def _collection(kind: str, namespace: str) -> str:
    place = "" if kind == "gatewayclasses" else f"/namespaces/{namespace}"
    return f"/apis/{GATEWAY}{place}/{kind}"


def _is_told(case: Case, found: Any) -> bool:
    wanted = {"type": case.type, "status": case.status, "reason": case.reason}
    return any(
        wanted.items() <= one.items()
        and one["message"]
        and one["observedGeneration"] == found["metadata"]["generation"]
        for one in conditions_of(found)
    )


def _is_healed(case: Case, found: Any) -> bool:
    """Whether Accepted is True, in the present generation, and nothing of the mistake is left."""
    conditions = list(conditions_of(found))
    generation = found["metadata"]["generation"]
    good = [one for one in conditions if one["type"] == "Accepted" and one["status"] == "True"]
    return (
        bool(good)
        and all(one["observedGeneration"] == generation for one in conditions)
        and not any((one["type"], one["reason"]) == (case.type, case.reason) for one in conditions)
        and not any(one["type"] == "Programmed" and one["status"] != "True" for one in conditions)
    )


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
