"""Who may read a table, as a real API server judges tokens; and certificates in its Secrets under least privilege."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster.world.apiserver import ApiServer
from controller.certs.authority_set import Overlap, make_authority_set
from controller.certs.certgen import certgen
from controller.certs.issue import issue_server
from controller.certs.pair import read_bundle, read_pair
from controller.certs.rotate import Rotation
from controller.kube.client import Kube
from controller.kube.errors import ApiError
from controller.xds_server.fleets import Fleets
from controller.xds_server.server import PushServer
from edgefast.xds.messages import METHOD, Request, encode_request
from tests.controller.waiting import until
from tests.controller.xds_server.loopback import (
    ANYWHERE,
    Ended,
    Proxy,
    ended,
    open_channel,
    shards_of,
    write_keys,
)

NAME = "edge-gateway"
FLEET_NAME = "edge-team-a-gw-0ac91f5a"
POD = f"{FLEET_NAME}-5d9c7-abcde"
TABLE = shards_of({"a": "1"})

REVIEWER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE-reviews}
rules:
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE-reviews}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAMESPACE-reviews}
subjects: [{kind: ServiceAccount, name: edge-gateway, namespace: NAMESPACE}]
"""
SECRETS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: certificates, namespace: NAMESPACE}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, create, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: certificates, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: certificates}
subjects: [{kind: ServiceAccount, name: edge-gateway, namespace: NAMESPACE}]
"""


class Gate:
    """A push server with the token port, and the cluster around it."""

    def __init__(self, apiserver: ApiServer, folder: Path) -> None:
        self.cluster = apiserver
        self.system = apiserver.namespace("gate")
        self.tenant = apiserver.namespace("team-a")
        self.fleet = f"{self.tenant}/{FLEET_NAME}"
        self.audience = f"{NAME}.{self.system}.svc.cluster.local"
        self.ring = make_authority_set(NAME, datetime.now(UTC))
        self.folder = folder / "keys"
        place = {"namespace": self.system, "name": NAME, "domain": "cluster.local"}
        pair = issue_server(self.ring.current, now=datetime.now(UTC), **place)
        write_keys(self.folder, self.ring, pair)
        apiserver.admin.apply(REVIEWER.replace("NAMESPACE", self.system))
        self.pod = self.make_pod(self.tenant, FLEET_NAME, POD)

    def make_pod(self, namespace: str, account: str, name: str) -> tuple[str, str]:
        """Create a pod of an account; returns its name and uid."""
        self.cluster.accounts.ensure(namespace, account)
        made = self.cluster.admin.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "serviceAccountName": account,
                    "containers": [{"name": "edge", "image": "edge"}],
                    "automountServiceAccountToken": False,
                },
            }
        )
        return name, made["metadata"]["uid"]

    def token(self, **more: Any) -> str:
        """Return a token as kubelet projects it into the fleet's pod."""
        given = {"audiences": [self.audience], "seconds": 600, "pod": self.pod, **more}
        place = given.pop("namespace", self.tenant), given.pop("account", FLEET_NAME)
        return self.cluster.accounts.token(*place, **given)

    async def reviewing(self, kube: Kube) -> None:
        """Wait until the role is in force."""
        async with asyncio.timeout(20):
            while True:
                try:
                    await kube.token_review("x", (self.audience,))
                    return
                except ApiError as error:
                    assert error.forbidden, error
                await asyncio.sleep(0.05)

    def open(self, token: str) -> Any:
        """Return a channel to the token port, and what a call with this token is told by."""
        return open_channel(self.address, self.ring.bundle, None), (
            ("authorization", f"Bearer {token}"),
        )

    async def refusal(self, token: str) -> Ended:
        """Return how a call with this token ends that says whose proxy it is, and no more."""
        channel, metadata = self.open(token)
        async with channel:
            call = channel.stream_stream(METHOD)(metadata=metadata)
            node = Proxy(call, POD).node
            return await ended(
                call, encode_request(Request(type="secret", node=node, subscribe=("*",)))
            )

    async def version(self, token: str) -> str:
        """Return the version of the table that a call with this token gets."""
        channel, metadata = self.open(token)
        async with channel:
            proxy = Proxy(channel.stream_stream(METHOD)(metadata=metadata), POD)
            await proxy.open()
            await proxy.take()
            return proxy.version

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve one fleet's table to tokens."""
        kubeconfig = self.cluster.kubeconfig_for(f"{self.system}/{NAME}")
        async with await Kube.open(kubeconfig) as kube:
            await self.reviewing(kube)
            self.fleets = Fleets("one_127.0.0.1")
            self.fleets.publish(self.fleet, TABLE)
            self.server = PushServer(
                self.fleets, self.folder, namespace=self.system, review=kube.token_review
            )
            self.address = await self.server.serve_tokens(ANYWHERE)
            try:
                yield
            finally:
                await self.server.stop(0)


async def test_the_fleets_own_token_reads_its_table(apiserver: ApiServer, tmp_path: Path) -> None:
    gate = Gate(apiserver, tmp_path)
    async with gate.serving():
        metadata = (("authorization", f"Bearer {gate.token()}"),)
        async with open_channel(gate.address, gate.ring.bundle, None) as channel:
            proxy = Proxy(channel.stream_stream(METHOD)(metadata=metadata), POD)
            await proxy.open()
            await proxy.take()
            assert proxy.version == TABLE.version
            await until(lambda: gate.fleets.acks(gate.fleet)[POD].version == TABLE.version)
            gate.fleets.publish(gate.fleet, shards_of({"a": "2"}))
            await proxy.take()
            assert gate.server.tokens.asked == 1
            proxy.call.cancel()


async def test_every_other_token_is_refused(apiserver: ApiServer, tmp_path: Path) -> None:
    gate = Gate(apiserver, tmp_path)
    other = apiserver.namespace("team-b")
    other_pod = gate.make_pod(other, FLEET_NAME, POD)
    other_fleet = gate.make_pod(gate.tenant, "default", "shell")
    sibling = gate.make_pod(gate.tenant, FLEET_NAME, POD[:-1] + "x")
    good = gate.token()
    head, body_, signature = good.split(".")
    tokens = {
        "of the API server": (gate.token(audiences=[]), "audience"),
        "of another audience": (gate.token(audiences=["vault"]), "audience"),
        "of another account": (gate.token(account="default", pod=other_fleet), "unknown_fleet"),
        "of another namespace": (gate.token(namespace=other, pod=other_pod), "unknown_fleet"),
        "of no pod": (gate.token(pod=None), "service_account"),
        "of another pod": (gate.token(pod=sibling), "node"),
        "truncated": (good[:-1], "token"),
        "signed by nobody": (f"{head}.{body_}.", "token"),
        "signed for something else": (
            f"{head}.{gate.token(account='default', pod=other_fleet).split('.')[1]}.{signature}",
            "token",
        ),
    }
    async with gate.serving():
        for kind, (token, cause) in tokens.items():
            before = gate.server.refusals.counts[cause]
            said = await gate.refusal(token)
            # gRPC's client says INTERNAL of a stream whose end meets its own write.
            assert said.code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "INTERNAL"), (kind, said)
            assert gate.server.refusals.counts[cause] == before + 1, (kind, said)
        assert sum(gate.server.refusals.counts.values()) == len(tokens)
        assert gate.server.counts.messages == 0
        assert await gate.version(good) == TABLE.version


@pytest.mark.parametrize("what", ["pods", "serviceaccounts"])
async def test_a_token_is_worth_nothing_without_its_pod_and_account(
    apiserver: ApiServer, tmp_path: Path, what: str
) -> None:
    gate = Gate(apiserver, tmp_path)
    token = gate.token()
    name = POD if what == "pods" else FLEET_NAME
    async with gate.serving():
        metadata = (("authorization", f"Bearer {token}"),)
        async with open_channel(gate.address, gate.ring.bundle, None) as channel:
            proxy = Proxy(channel.stream_stream(METHOD)(metadata=metadata), POD)
            await proxy.open()
            await proxy.take()
            path = f"/api/v1/namespaces/{gate.tenant}/{what}/{name}?gracePeriodSeconds=0"
            await asyncio.to_thread(gate.cluster.admin.delete, path)
            # The next review finds out: within a minute in life, at once here.
            async with asyncio.timeout(60):
                number = 1
                while proxy.version == gate.fleets.version(gate.fleet):
                    gate.server.tokens.forget()
                    gate.fleets.publish(gate.fleet, shards_of({"a": str(number := number + 1)}))
                    try:
                        await proxy.take()
                    except Ended as said:
                        assert said.code == "UNAUTHENTICATED"
                        break
                    await asyncio.sleep(0.1)  # the API server remembers tokens for 10 s itself
        gate.server.tokens.forget()
        said = await gate.refusal(token)
        assert said.code == "UNAUTHENTICATED"


async def test_certgen_and_rotation_with_three_verbs(apiserver: ApiServer, tmp_path: Path) -> None:
    """get, create and update on Secrets of one namespace are all that certificates need."""
    namespace = apiserver.namespace("certs")
    apiserver.admin.apply(SECRETS.replace("NAMESPACE", namespace))
    now = datetime.now(UTC)
    async with await Kube.open(apiserver.kubeconfig_for(f"{namespace}/{NAME}")) as kube:
        async with asyncio.timeout(20):
            while True:
                try:
                    said = await certgen(kube, namespace)
                    break
                except ApiError as error:
                    assert error.forbidden, error
                await asyncio.sleep(0.05)
        # Roles come into force one by one: what was made before counts as kept.
        assert len(said) == 2
        assert await certgen(kube, namespace) == [
            f"Secret {namespace}/{NAME}-ca kept",
            f"Secret {namespace}/{NAME} kept",
        ]
        clock = [now]
        rotation = Rotation(
            kube,
            namespace,
            leading=lambda: True,
            overlap=Overlap(announced=timedelta(hours=1), retiring=timedelta(hours=2)),
            clock=lambda: clock[0],
        )
        await rotation.load()
        await rotation.step()
        first = rotation.bundle
        # The fleet's Secret as the applier would write it is taken over by the next leader.
        manifest = rotation.client_secret(namespace, FLEET_NAME)
        await kube.create(manifest)
        other = Rotation(kube, namespace, leading=lambda: True, clock=lambda: clock[0])
        await other.load()
        await other.adopt([(namespace, FLEET_NAME), (namespace, "edge-none")])
        assert other.client_secret(namespace, FLEET_NAME)["data"] == manifest["data"]
        await certgen(kube, namespace, rotate=True)
        sizes = []
        for _ in range(4):
            await rotation.step()
            sizes.append(len(read_bundle(rotation.bundle)))
            clock[0] += timedelta(hours=1, minutes=1)
        assert sizes == [2, 2, 2, 1]
        assert rotation.bundle not in first and first not in rotation.bundle
        data = await _read(kube, namespace, NAME)
        assert data["ca.crt"] == rotation.bundle
        assert read_pair(data["tls.crt"], data["tls.key"])


async def _read(kube: Kube, namespace: str, name: str) -> dict[str, str]:

    found = await kube.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
    return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
