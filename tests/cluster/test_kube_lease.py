"""Lease against a real API server: one leader at most, at every moment, and soon another one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from cluster.cable import laid
from cluster.world.apiserver import ApiServer
from controller.kube.apis import APIS
from controller.kube.client import Kube
from controller.kube.lease import Lease, LeaseTimes
from tests.controller.waiting import running, until
from tests.support.manifest import manifest

LEASES = APIS["coordination.k8s.io/v1", "Lease"]
#: As 15/10/2 s, faster, and so long that a slow machine does not lose a Lease.
TIMES = LeaseTimes(duration=6.0, deadline=4.0, retry=0.3)
#: Where nobody may wait for the end of a Lease.
LONG = LeaseTimes(duration=60.0, deadline=40.0, retry=0.3)


@contextlib.asynccontextmanager
async def watched(*leases: Lease) -> AsyncIterator[list[str]]:
    """Look all the time who leads; two at once fail the test. Gives the leaders in order, each as it is told."""
    leaders: list[str] = []

    def look() -> None:
        now = [one.identity for one in leases if one.leading]
        assert len(now) < 2, now
        if now and now != leaders[-1:]:
            leaders.append(now[0])

    async def look_always() -> None:
        while True:
            look()
            await asyncio.sleep(0.002)

    def on_change(told: Callable[[], None]) -> Callable[[], None]:
        def tell() -> None:
            look()
            told()

        return tell

    # Looking from time to time alone would miss one that leads for a moment only.
    for one in leases:
        one.on_change = on_change(one.on_change)
    async with running(look_always()):
        yield leaders


async def test_one_leads_and_gives_the_lease_back(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("lease")
    path = LEASES.path(namespace, "n")
    async with await Kube.open(apiserver.kubeconfig) as kube:
        changes: list[bool] = []
        first = Lease(kube, namespace, "n", "one_1", LONG)
        first.on_change = lambda: changes.append(first.leading)
        second = Lease(kube, namespace, "n", "two_2", LONG)
        async with watched(first, second) as leaders:
            task = asyncio.create_task(first.run())
            await until(lambda: first.leading, "leading")
            async with running(second.run()):
                await until(lambda: second.holder == "one_1", "the second has seen the first")
                began = apiserver.admin.get(path)["spec"]
                await until(
                    lambda: apiserver.admin.get(path)["spec"]["renewTime"] > began["renewTime"],
                    "renewed",
                )
                lease = apiserver.admin.get(path)["spec"]
                assert lease["leaseDurationSeconds"] == 60 and lease["leaseTransitions"] == 0
                assert lease["acquireTime"] == began["acquireTime"]
                task.cancel()
                await asyncio.wait([task])
                given_back = time.monotonic()
                await until(lambda: second.leading, "the second leads")
                # Soon: it need not wait for the duration.
                assert time.monotonic() - given_back < LONG.duration / 2
                assert apiserver.admin.get(path)["spec"]["leaseTransitions"] == 1
            assert leaders == ["one_1", "two_2"] and changes == [True, False]
        assert apiserver.admin.get(path)["spec"]["holderIdentity"] == ""


async def test_who_cannot_renew_stops_before_another_begins(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("lease")
    at = apiserver.plane.server
    async with laid(at.host, at.port) as cable, await Kube.open(apiserver.kubeconfig) as kube:
        async with await Kube.open(cable.kubeconfig(apiserver.kubeconfig)) as cabled:
            first = Lease(cabled, namespace, "n", "one", TIMES)
            second = Lease(kube, namespace, "n", "two", TIMES)
            async with watched(first, second) as leaders, running(first.run()):
                await until(lambda: first.leading, "leading")
                async with running(second.run()):
                    await until(lambda: second.holder == "one", "seen")
                    cable.freeze()
                    await until(lambda: not first.leading, "stopped")
                    # Of its own accord: nobody else can have told it.
                    assert leaders == ["one"] and not second.leading
                    await until(lambda: second.leading, "the second leads")
                    cable.mend()
                    await until(lambda: first.holder == "two", "the first has seen it")
                    assert leaders == ["one", "two"] and not first.leading


async def test_a_deleted_lease_is_made_again_by_the_leader(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("lease")
    path = LEASES.path(namespace, "n")
    async with await Kube.open(apiserver.kubeconfig) as kube:
        lease = Lease(kube, namespace, "n", "one", TIMES)
        async with watched(lease), running(lease.run()):
            await until(lambda: lease.leading, "leading")
            apiserver.admin.delete(path)
            await until(lambda: apiserver.admin.find(path), "made again")
            assert lease.leading


async def test_somebody_elses_lease_is_waited_for(apiserver: ApiServer) -> None:
    namespace = apiserver.namespace("lease")
    spec = {
        "holderIdentity": "other",
        "leaseDurationSeconds": 2,
        # Of a clock that is far off: nobody may believe it.
        "renewTime": "2001-01-01T00:00:00.000000Z",
        "acquireTime": "2001-01-01T00:00:00.000000Z",
        "leaseTransitions": 7,
    }
    apiserver.admin.create(manifest(f"Lease {namespace}/n", spec))
    async with await Kube.open(apiserver.kubeconfig) as kube:
        lease = Lease(kube, namespace, "n", "one", TIMES)
        began = time.monotonic()
        async with running(lease.run()):
            await until(lambda: lease.holder == "other", "seen")
            await until(lambda: lease.leading, "taken over")
            assert time.monotonic() - began >= 2.0
            assert lease.transitions == 8
