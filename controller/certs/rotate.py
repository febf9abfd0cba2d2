"""Rotation: renews the authority, the controller's certificate and those of the fleets, each with overlap.

In: the Secrets of certgen, time.
Out: renewed Secrets (only the leader writes), the bundle that proxies trust, and the manifest of
every fleet's client Secret `<fleet>-xds`, unchanged until its renewal. `on_change` reports changed
manifests or a changed bundle.
Must never: issue a certificate for a fleet that another one can use, or write while not leading.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from controller.certs.authority_set import (
    AuthoritySet,
    Overlap,
    advance,
    decode_authority_set,
    encode_authority_set,
)
from controller.certs.certgen import CertgenError, authority_name, server_data
from controller.certs.identity import fleet_key, fleet_uri
from controller.certs.issue import is_client_good, is_server_good, issue_client
from controller.certs.pair import Pair, read_pair
from controller.certs.policy import CertificatePolicy
from controller.certs.secrets import SecretApi, Secrets, Stored, secret_manifest
from controller.kube.errors import ApiError

__all__ = ["Rotation", "client_secret_name"]

log = logging.getLogger("edgefast.controller.certs")

#: Seconds between two looks at the Secrets.
_EVERY = 60.0
#: Part of a certificate's life after which it is renewed.
_RENEW_AT = 2 / 3


def client_secret_name(fleet: str) -> str:
    """Return the name of the Secret with a fleet's client certificate, by the fleet's name."""
    return f"{fleet}-xds"


class _Client(msgspec.Struct, frozen=True):
    pair: Pair
    manifest: dict[str, Any]


class Rotation:
    """Renews the CA and the certificates of the controller and the fleets, with overlap.

    Call `load` before anything else.
    """

    def __init__(
        self,
        kube: SecretApi,
        namespace: str,
        *,
        name: str = "edge-gateway",
        domain: str = "cluster.local",
        leading: Callable[[], bool],
        policy: CertificatePolicy | None = None,
        overlap: Overlap | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`namespace`, `name`: of the controller and its Service; `leading`: whether we may write."""
        self.on_change: Callable[[], None] = _nobody
        self._secrets = Secrets(kube, namespace)
        self._namespace = namespace
        self._name = name
        self._domain = domain
        self._leading = leading
        self._policy = policy or CertificatePolicy()
        self._overlap = overlap or Overlap()
        self._clock = clock
        self._ring: AuthoritySet | None = None
        self._clients: dict[tuple[str, str], _Client] = {}
        self._wake = asyncio.Event()
        self._written: tuple[AuthoritySet, str] | None = None

    @property
    def bundle(self) -> str:
        """All authorities to trust, PEM: the `ca.crt` of every fleet."""
        ring = self._loaded
        if self._written is None or self._written[0] is not ring:
            self._written = (ring, ring.bundle)  # asked for at every change of any object
        return self._written[1]

    @property
    def _loaded(self) -> AuthoritySet:
        if self._ring is None:
            raise RuntimeError("load() comes first")
        return self._ring

    async def load(self) -> None:
        """Read the authority; raises CertgenError when there is none, ApiError when it cannot be read."""
        self._ring = (await self._read_ring())[1]

    async def run(self) -> None:
        """Look after everything, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_EVERY * random.uniform(0.8, 1.2)):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                await self.step()
            except ApiError as error:
                # Another replica may have written in between; the next look sees it.
                log.warning("certificates: check failed: %s", error)
            except CertgenError as error:
                log.error("%s", error)

    def look(self) -> None:
        """Have `run` look at once: this process leads from now on."""
        self._wake.set()

    async def step(self) -> None:
        """One look: read, renew what is due, forget what is to be issued anew. Raises ApiError, CertgenError."""
        now = self._clock()
        before = self._loaded.bundle
        stored, ring = await self._read_ring()
        if self._leading():
            ring = await self._renew_ring(stored, ring, now)
            await self._renew_server(ring, now)
        self._ring = ring
        due = [key for key, one in self._clients.items() if not self._is_good(key, one.pair)]
        for key in due:
            del self._clients[key]
        if ring.bundle != before:
            self._clients = {key: self._pack(key, one.pair) for key, one in self._clients.items()}
        if due or ring.bundle != before:
            self.on_change()

    # --- the fleets' certificates ---------------------------------------------------------------

    def client_secret(self, namespace: str, name: str) -> dict[str, Any]:
        """Return the manifest of the Secret with the client certificate of fleet `name` in `namespace`.

        The same object until it has to be renewed; copy before you change it.
        """
        key = (namespace, name)
        known = self._clients.get(key)
        if known is None:
            now = self._clock()
            after = self._policy.find_future(fleet_key(*key), now)
            if after is not None:
                log.warning(
                    "EdgeGateway provider.kubernetes.deploy.certificates.revoked fleet %s: issuedBefore %s is in the future; certificates "
                    "issued before now are refused, the one issued now is accepted; correct the time",
                    name,
                    after.strftime("%Y-%m-%dT%H:%M:%SZ"),
                )
            pair = issue_client(
                self._loaded.current,
                controller_namespace=self._namespace,
                namespace=namespace,
                name=name,
                now=now,
                life=self._policy.life,
                after=after,
            )
            known = self._clients[key] = self._pack(key, pair)
        return known.manifest

    async def adopt(self, fleets: Iterable[tuple[str, str]]) -> None:
        """Take over the certificates that (namespace, name) of fleets have, where they are good: for a new leader.

        Only fleets in the controller's own namespace have any. Raises ApiError.
        """
        for key in fleets:
            if key[0] != self._namespace:
                continue
            stored = await self._secrets.read(client_secret_name(key[1]))
            if stored is None:
                continue
            try:
                pair = read_pair(stored.data.get("tls.crt", ""), stored.data.get("tls.key", ""))
            except ValueError:
                continue
            if self._is_good(key, pair):
                self._clients[key] = self._pack(key, pair)

    def forget(self, fleets: Iterable[tuple[str, str]]) -> None:
        """Keep certificates of these fleets only: the others are gone."""
        kept = set(fleets)
        self._clients = {key: one for key, one in self._clients.items() if key in kept}

    def _is_good(self, key: tuple[str, str], pair: Pair) -> bool:
        uri, now = fleet_uri(self._namespace, *key), self._clock()
        good = is_client_good(pair, self._loaded.current, uri)
        if not good or pair.is_due(now, _RENEW_AT):
            return False
        return not self._policy.is_replaced(fleet_key(*key), pair.certificate)

    def _pack(self, key: tuple[str, str], pair: Pair) -> _Client:
        namespace, name = key
        data = {
            "ca.crt": self._loaded.bundle,
            "tls.crt": pair.certificate_pem,
            "tls.key": pair.key_pem,
        }
        return _Client(pair, secret_manifest(namespace, client_secret_name(name), data))

    # --- the controller's own -------------------------------------------------------------------

    async def _read_ring(self) -> tuple[Stored, AuthoritySet]:
        name = authority_name(self._name)
        stored = await self._secrets.read(name)
        if stored is None:
            raise CertgenError(
                f"Secret {self._namespace}/{name} is missing: run `edgefast-controller certgen`"
            )
        try:
            return stored, decode_authority_set(stored.data)
        except ValueError as error:
            raise CertgenError(f"Secret {self._namespace}/{name}: {error}") from None

    async def _renew_ring(self, stored: Stored, ring: AuthoritySet, now: datetime) -> AuthoritySet:
        changed = advance(ring, self._name, now, self._overlap)
        if changed is ring:
            return ring
        await self._secrets.replace(stored, encode_authority_set(changed))
        log.info(
            "authorities: %d trusted, %s",
            len(changed.trusted),
            "one announced" if changed.coming else "none announced",
        )
        return changed

    async def _renew_server(self, ring: AuthoritySet, now: datetime) -> None:
        """Renew the controller's certificate when it is due, not ours, or signed by a former authority."""
        stored = await self._secrets.read(self._name)
        data = stored.data if stored is not None else {}
        place = {"namespace": self._namespace, "name": self._name, "domain": self._domain}
        try:
            pair = read_pair(data.get("tls.crt", ""), data.get("tls.key", ""))
            good = is_server_good(pair, ring.current, **place)
            good = good and not pair.is_due(now, _RENEW_AT)
        except ValueError:
            good = False
        if good and data.get("ca.crt") == ring.bundle:
            return
        fresh = {**data, "ca.crt": ring.bundle} if good else server_data(ring, **place, now=now)
        if stored is None:
            await self._secrets.create(self._name, fresh)
        else:
            await self._secrets.replace(stored, fresh)
        log.info("the controller's certificate was %s", "kept" if good else "renewed")


def _nobody() -> None:
    """Nobody listens yet."""
