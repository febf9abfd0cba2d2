"""PushServer: the ports of the config stream, their streams and server keys.

In: `Fleets`, keys in a folder, the API server's token reviews.
Out: streams for authenticated peers: 18000 (mutual TLS, or TLS and tokens in Gateway Namespace
mode), 18001 (TLS and tokens; closed in the other mode), and the replicas' own port.
Must never: be started before every fleet was published once; it would refuse unknown fleets.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from controller.certs.policy import CertificatePolicy
from controller.xds_server.auth_interface import Admission, RejectAll, StreamAuth
from controller.xds_server.certificate_auth import CertificateAuth
from controller.xds_server.credentials import ServerKeys
from controller.xds_server.fleets import Fleets
from controller.xds_server.limits import KEYS_EVERY, STREAMS_PER_POD
from controller.xds_server.refusal import Refusals, Refused
from controller.xds_server.reports import REPORT, receive_reports
from controller.xds_server.stream import Counts, Deadlines, Stream
from controller.xds_server.token_auth import TokenAuth
from controller.xds_server.tokens import Review, Tokens, audience_of
from controller.xds_server.transport import Call, Listening, Serve, listen
from edgefast.httpd.address import Address
from edgefast.xds.messages import METHOD

__all__ = ["PushServer"]


class PushServer:
    """The ports of the config stream and their streams. `counts` and `refusals` are for metrics."""

    def __init__(
        self,
        fleets: Fleets,
        certs: Path,
        *,
        namespace: str,
        name: str = "edge-gateway",
        domain: str = "cluster.local",
        review: Callable[[str, Sequence[str]], Awaitable[Review]],
        policy: CertificatePolicy | None = None,
        clock: Callable[[], float] = time.time,
        deadlines: Deadlines | None = None,
    ) -> None:
        """`certs`: folder of tls.crt, tls.key, ca.crt; `namespace`, `name`: of the controller and its Service.

        `review(token, audiences)`: `Kube.token_review`. `clock`: Unix time. Raises KeysError.
        """
        self.counts = Counts()
        self.refusals = Refusals(time.monotonic)
        self.on_acked: Callable[[str, float], None] = _nobody
        self.keys = ServerKeys(certs)
        self.tokens = Tokens(review, audience_of(name, namespace, domain), clock)
        self._fleets = fleets
        self._namespace = namespace
        self._policy = policy or CertificatePolicy()
        self._clock = clock
        self._deadlines = deadlines or Deadlines()
        self._streams: set[Stream] = set()
        self._of_pods: Counter[tuple[str, str]] = Counter()  # streams by fleet and pod
        self._ports: list[Listening] = []

    async def serve_certificates(self, address: Address) -> Address:
        """Serve fleets with client certificates; returns the address bound. Raises OSError."""
        gate = CertificateAuth(self.keys, self._namespace, self._clock, self._policy)
        return await self._listen(address, True, gate, METHOD, self._serve_fleet)

    async def serve_tokens(self, address: Address) -> Address:
        """Serve fleets with tokens of their ServiceAccounts; as above."""
        gate = TokenAuth(self.tokens, self._clock)
        return await self._listen(address, False, gate, METHOD, self._serve_fleet)

    async def serve_nobody(self, address: Address) -> Address:
        """Refuse everybody with a word on why; as above."""
        return await self._listen(address, False, RejectAll(), METHOD, self._serve_fleet)

    async def serve_replicas(self, address: Address) -> Address:
        """Take the reports of other replicas; as above."""
        gate = CertificateAuth(self.keys, self._namespace, self._clock, replicas=True)
        return await self._listen(address, True, gate, REPORT, self._serve_report)

    async def run(self) -> None:
        """Follow the keys and the policy, and end the streams that are no longer allowed; until cancelled."""
        number = (self.keys.number, self._policy.refresh())
        while True:
            await asyncio.sleep(KEYS_EVERY)
            await asyncio.to_thread(self.keys.refresh)
            if (now := (self.keys.number, self._policy.refresh())) != number:
                number = now
                await self.recheck()

    async def recheck(self) -> None:
        """Look at the credentials of all open streams again, all at once: a look may have to ask."""
        async with asyncio.TaskGroup() as tasks:
            for stream in tuple(self._streams):
                tasks.create_task(_recheck(stream))

    async def stop(self, grace: float = 1.0) -> None:
        """Take no new streams; end the open ones after `grace` seconds. Proxies go to another replica."""
        async with asyncio.TaskGroup() as tasks:
            for port in self._ports:
                tasks.create_task(port.stop(grace))
        self._ports.clear()

    async def _listen(
        self, address: Address, mutual: bool, gate: StreamAuth, method: str, serve: Serve
    ) -> Address:
        port = await listen(
            address,
            self.keys,
            mutual=mutual,
            gate=gate,
            method=method,
            serve=serve,
            refusals=self.refusals,
        )
        self._ports.append(port)
        return port.address

    async def _serve_fleet(self, call: Call, admission: Admission) -> None:
        stream = Stream(
            call,
            admission,
            self._fleets,
            self.counts,
            self._deadlines,
            self._clock,
            self._acked,
        )
        pod = (admission.fleet, admission.pod)
        if admission.pod and self._of_pods[pod] >= STREAMS_PER_POD:
            raise Refused(
                "crowded", "UNAVAILABLE", f"the pod has {STREAMS_PER_POD} streams already"
            )
        self._of_pods[pod] += 1
        self._streams.add(stream)
        try:
            await stream.run()
        finally:
            self._streams.discard(stream)
            self._of_pods[pod] -= 1
            if not self._of_pods[pod]:
                del self._of_pods[pod]

    async def _serve_report(self, call: Call, admission: Admission) -> None:
        await receive_reports(call, admission, self._fleets)

    def _acked(self, fleet: str, seconds: float) -> None:
        self.on_acked(fleet, seconds)


async def _recheck(stream: Stream) -> None:
    try:
        await stream.admission.check()
    except Refused as refused:
        stream.end(refused)


def _nobody(_fleet: str, _seconds: float) -> None:
    """Nobody counts."""
