"""AuthoritySet: the authorities of one controller: the signing one, the next one, and those that are still trusted.

In: a set, a time.
Out: the set at that time, and its encoding in a Secret. A new authority is first announced (trusted
everywhere, signing nothing). Then it signs, and only then is the former one removed. At every
moment both ends trust each other's certificate. No I/O, no clock.
Must never: remove an authority in the same step in which another begins to sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
from cryptography import x509

from controller.certs.authority import make_authority
from controller.certs.pair import Pair, read_bundle, read_pair, write_pem

__all__ = [
    "Overlap",
    "AuthoritySet",
    "advance",
    "announce",
    "decode_authority_set",
    "encode_authority_set",
    "make_authority_set",
]


class Overlap(msgspec.Struct, frozen=True):
    """When authorities change. Mounted Secrets and ConfigMaps reach every pod within minutes (kubelet's sync period)."""

    renew_at: float = 2 / 3  # part of an authority's life after which another one is announced
    announced: timedelta = timedelta(hours=1)  # before it signs
    retiring: timedelta = timedelta(hours=24)  # before the former one is dropped


class AuthoritySet(msgspec.Struct, frozen=True):
    """`since`: when this state began. `trusted`: all that certificates may be signed by, the signing one first."""

    current: Pair
    coming: Pair | None
    trusted: tuple[x509.Certificate, ...]
    since: datetime

    @property
    def bundle(self) -> str:
        """What both ends trust, as PEM."""
        return "".join(map(write_pem, self.trusted))


def make_authority_set(name: str, now: datetime) -> AuthoritySet:
    """Return a ring with a new authority of this name and nothing else."""
    pair = make_authority(name, now)
    return AuthoritySet(pair, None, (pair.certificate,), now)


def announce(ring: AuthoritySet, name: str, now: datetime) -> AuthoritySet:
    """Begin a change of authorities; nothing happens while one is under way."""
    if ring.coming is not None or len(ring.trusted) > 1:
        return ring
    coming = make_authority(name, now)
    return AuthoritySet(ring.current, coming, (*ring.trusted, coming.certificate), now)


def advance(ring: AuthoritySet, name: str, now: datetime, overlap: Overlap) -> AuthoritySet:
    """Return the ring as it should be now: at most one step further, the same object when nothing is due."""
    age = now - ring.since
    if ring.coming is not None:
        if age < overlap.announced:
            return ring
        rest = (one for one in ring.trusted if one != ring.coming.certificate)
        return AuthoritySet(ring.coming, None, (ring.coming.certificate, *rest), now)
    if len(ring.trusted) > 1:
        if age < overlap.retiring:
            return ring
        return AuthoritySet(ring.current, None, (ring.current.certificate,), now)
    if ring.current.is_due(now, overlap.renew_at):
        return announce(ring, name, now)
    return ring


def encode_authority_set(ring: AuthoritySet) -> dict[str, str]:
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


def decode_authority_set(data: Mapping[str, str]) -> AuthoritySet:
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
    return AuthoritySet(current, coming, trusted, since)
