"""CertificatePolicy: the lifetime of fleet certificates, and which of them are revoked.

In: `provider.*.deploy.certificates` of the configuration, which may change at any time. Out: a lifetime, and whether a certificate is
revoked. A fleet is revoked by name and time: certificates that were issued before that time are refused, and the leader issues a new one.
If the time is in the future, the new certificate has a mark for it (issue.py): all replicas accept it, and the fleet stays connected.
Must never: accept an earlier certificate because an entry is in the future.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography import x509

from controller.certs.authority import SKEW
from controller.certs.issue import read_after
from edgefast.api.config.edgegateway import FleetCertificates
from edgefast.api.model.units import parse_duration

__all__ = ["CertificatePolicy"]


class CertificatePolicy:
    """Lifetime and revocation of fleet certificates, from the configuration."""

    def __init__(
        self,
        settings: Callable[[], FleetCertificates] = FleetCertificates,
        namespace: str = "",
    ) -> None:
        """`namespace`: of the controller, where fleets with certificates are."""
        self._settings = settings
        self._namespace = namespace
        self._known: FleetCertificates | None = None
        self._before: dict[str, datetime] = {}  # by the fleet's key
        #: Grows with each change of the settings: accepted certificates must be checked again.
        self.number = 0
        self._read()

    @property
    def life(self) -> timedelta:
        """The lifetime of a new certificate."""
        return timedelta(milliseconds=parse_duration(self._read().lifetime))

    def refresh(self) -> int:
        """Apply a change of the settings; return `number`."""
        self._read()
        return self.number

    def is_revoked(self, fleet: str, certificate: x509.Certificate) -> bool:
        """Tell whether a certificate of a fleet ("namespace/name") was issued before the fleet was revoked."""
        self._read()
        before = self._before.get(fleet)
        if before is None or certificate.not_valid_before_utc + SKEW >= before:
            return False
        after = read_after(certificate)
        return after is None or after < before

    def find_future(self, fleet: str, now: datetime) -> datetime | None:
        """Return the time of a fleet's revocation if it is in the future: a new certificate needs a mark for it."""
        self._read()
        before = self._before.get(fleet)
        return before if before is not None and before > now else None

    def is_replaced(self, fleet: str, certificate: x509.Certificate) -> bool:
        """Tell whether another certificate has to be issued: this one is revoked, or lives longer than is set."""
        lives = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        return lives > self.life + SKEW or self.is_revoked(fleet, certificate)

    def _read(self) -> FleetCertificates:
        settings = self._settings()
        if settings is not self._known:
            self._known = settings
            self._before = {
                f"{self._namespace}/{one.fleet}": _parse_time(one.issued_before)
                for one in settings.revoked
            }
            self.number += 1
        return settings


def _parse_time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
