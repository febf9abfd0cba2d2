"""Ring: the authorities of one controller: the one that signs, the one to come, those that are still trusted.

In: a ring, a time. Out: the ring as it should be then, and its form in a Secret. A new authority is first announced
(trusted everywhere, signing nothing), then signs, and only then is the former one dropped: at every moment both ends
trust what the other shows. Must never drop an authority in the same step in which another begins to sign.
No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from cryptography import x509

from controller.certs.authority import make_authority
from controller.certs.pair import Pair, read_bundle, read_pair, write_pem

__all__ = ["Overlap", "Ring", "advance", "announce", "decode_ring", "encode_ring", "make_ring"]


class Overlap(msgspec.Struct, frozen=True):
    """When authorities change. Mounted Secrets and ConfigMaps reach every pod within minutes (kubelet's sync period)."""

    renew_at: float = 2 / 3  # part of an authority's life after which another one is announced
    announced: timedelta = timedelta(hours=1)  # before it signs
    retiring: timedelta = timedelta(hours=24)  # before the former one is dropped


class Ring(msgspec.Struct, frozen=True):
    """`since`: when this state began. `trusted`: all that certificates may be signed by, the signing one first."""

    current: Pair
    coming: Pair | None
    trusted: tuple[x509.Certificate, ...]
    since: datetime

    @property
    def bundle(self) -> str:
        """What both ends trust, as PEM."""
        return "".join(map(write_pem, self.trusted))


def make_ring(name: str, now: datetime) -> Ring:
    """Return a ring with a new authority of this name and nothing else."""
    pair = make_authority(name, now)
    return Ring(pair, None, (pair.certificate,), now)


def announce(ring: Ring, name: str, now: datetime) -> Ring:
    """Begin a change of authorities; nothing happens while one is under way."""
    if ring.coming is not None or len(ring.trusted) > 1:
        return ring
    coming = make_authority(name, now)
    return Ring(ring.current, coming, (*ring.trusted, coming.certificate), now)


def advance(ring: Ring, name: str, now: datetime, overlap: Overlap) -> Ring:
    """Return the ring as it should be now: at most one step further, the same object when nothing is due."""
    age = now - ring.since
    if ring.coming is not None:
        if age < overlap.announced:
            return ring
        rest = (one for one in ring.trusted if one != ring.coming.certificate)
        return Ring(ring.coming, None, (ring.coming.certificate, *rest), now)
    if len(ring.trusted) > 1:
        if age < overlap.retiring:
            return ring
        return Ring(ring.current, None, (ring.current.certificate,), now)
    if ring.current.is_due(now, overlap.renew_at):
        return announce(ring, name, now)
    return ring


def encode_ring(ring: Ring) -> dict[str, str]:
    """Return the data of the ring's Secret (type kubernetes.io/tls)."""
    data = {
        "tls.crt": ring.current.certificate_pem,
        "tls.key": ring.current.key_pem,
        "ca.crt": ring.bundle,
        "since": ring.since.isoformat(),
    }
    if ring.coming is not None:
        data["next.crt"] = ring.coming.certificate_pem
        data["next.key"] = ring.coming.key_pem
    return data


def decode_ring(data: Mapping[str, str]) -> Ring:
    """Read the data of a ring's Secret; raises ValueError that names the entry, never its content."""
    try:
        current = read_pair(data["tls.crt"], data["tls.key"])
        coming = read_pair(data["next.crt"], data["next.key"]) if "next.crt" in data else None
        trusted = read_bundle(data["ca.crt"]) if "ca.crt" in data else (current.certificate,)
        start = current.certificate.not_valid_before_utc
        since = datetime.fromisoformat(data["since"]) if "since" in data else start
    except KeyError as missing:
        raise ValueError(f"{missing.args[0]} is missing") from None
    if since.tzinfo is None:
        raise ValueError("since has no time zone")
    if current.certificate not in trusted:
        raise ValueError("ca.crt does not contain tls.crt")
    return Ring(current, coming, trusted, since)
