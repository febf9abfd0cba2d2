"""CertificateAuth: mutual TLS. The URI in the client's certificate determines the fleet (Controller Namespace mode, spec section 5).

In: the certificate that TLS has verified.
Out: an admission that ends with the certificate, when its authority is no longer trusted, or when
the configuration revokes it.
Must never: read any other field than the one URI, or trust a connection older than the present
authorities without another check.
"""

from __future__ import annotations

from collections.abc import Callable

from cryptography import x509

from controller.certs.identity import CONTROLLER, identify
from controller.certs.pair import uris_of
from controller.certs.policy import CertificatePolicy
from controller.xds_server.auth_interface import Connection, check_pod_of
from controller.xds_server.credentials import ServerKeys
from controller.xds_server.refusal import Refused
from edgefast.xds.messages import Node

__all__ = ["CertificateAuth"]


class CertificateAuth:
    """Admits fleets, or other replicas of the controller, never both."""

    def __init__(
        self,
        keys: ServerKeys,
        namespace: str,
        clock: Callable[[], float],
        policy: CertificatePolicy | None = None,
        *,
        replicas: bool = False,
    ) -> None:
        """`namespace`: the controller's, of its identities; `clock`: Unix time; `replicas`: admit those instead."""
        self._policy = policy or CertificatePolicy()
        self._keys = keys
        self._namespace = namespace
        self._clock = clock
        self._replicas = replicas

    async def admit(self, connection: Connection) -> _Admission:
        """Return what the credential allows (`StreamAuth`); raises Refused."""
        if not connection.certificate:
            raise Refused("no_credential", "UNAUTHENTICATED", "a client certificate is required")
        try:
            certificate = x509.load_pem_x509_certificate(connection.certificate)
            uris = uris_of(certificate)
        except ValueError:
            raise Refused(
                "certificate", "UNAUTHENTICATED", "the certificate is not valid"
            ) from None
        who = identify(uris[0], self._namespace) if len(uris) == 1 else None
        if who is None or (who == CONTROLLER) != self._replicas:
            raise Refused(
                "identity",
                "PERMISSION_DENIED",
                "the certificate does not name a fleet of this controller",
            )
        admission = _Admission(certificate, who, self._keys, self._policy, self._clock)
        await admission.check()
        return admission


class _Admission:
    def __init__(
        self,
        certificate: x509.Certificate,
        fleet: str,
        keys: ServerKeys,
        policy: CertificatePolicy,
        clock: Callable[[], float],
    ) -> None:
        self.fleet = fleet
        self.pod = ""
        self.expires = certificate.not_valid_after_utc.timestamp()
        self._starts = certificate.not_valid_before_utc.timestamp()
        self._certificate = certificate
        self._keys = keys
        self._clock = clock
        self._policy = policy
        self._allowed_at = 0  # `number` of the policy at which the certificate was not revoked
        self._trusted_at = 0  # number of the keys' state that trusts the certificate

    async def check(self) -> None:
        now = self._clock()
        if not self._starts <= now < self.expires:
            raise Refused("expired", "UNAUTHENTICATED", "the certificate is not valid now")
        number = self._keys.number
        if number != self._trusted_at:
            if not self._keys.trusts(self._certificate):
                raise Refused(
                    "revoked", "UNAUTHENTICATED", "the certificate's authority is not trusted"
                )
            self._trusted_at = number
        allowed = self._policy.refresh()
        if allowed != self._allowed_at:
            if self._policy.is_revoked(self.fleet, self._certificate):
                raise Refused(
                    "revoked", "UNAUTHENTICATED", "the certificate is revoked by the configuration"
                )
            self._allowed_at = allowed

    def check_node(self, node: Node) -> None:
        check_pod_of(self.fleet, node)
