"""Keyring: the certificates and CA bundles of Secrets, ConfigMaps and ClusterTrustBundles, each parsed once.

In: the snapshot's Secrets, ConfigMaps and ClusterTrustBundles, and the keyring of the previous
translation.
Out: `ir.Secret` values with their facts, or an error text. The identity of the object is the cache
key, since parsing a private key takes a millisecond.
Must never: be used without a permitted reference; the callers check ReferenceGrants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from edgefast import ir
from edgefast.api.core.clustertrustbundle import ClusterTrustBundle
from edgefast.api.core.configmap import ConfigMap
from edgefast.api.core.secret import Secret
from edgefast.api.snapshot import Snapshot

if (
    TYPE_CHECKING
):  # the functions import them: without certificates `cryptography` is not loaded (25 ms, 8 MiB)
    from edgefast.translate.tls.certificate import Pair
    from edgefast.translate.tls.staple import Staple

TLS_TYPE = "kubernetes.io/tls"
STAPLE_KEY = "tls.ocsp-staple"


class Certified(msgspec.Struct, frozen=True):
    """A usable certificate with its key."""

    secret: ir.Secret
    pair: Pair
    staple: Staple | str | None = None  # beside the certificate; a text: what is wrong with it


_Use = tuple[str, str, str, str]  # purpose, kind, namespace, name
_Holder = Secret | ConfigMap | ClusterTrustBundle


class Keyring:
    """Parsed key material of one snapshot."""

    def __init__(self, snapshot: Snapshot, previous: Keyring | None) -> None:
        self._snapshot = snapshot
        self._known: dict[_Use, tuple[object, Certified | ir.Secret | str]] = {}
        if previous is not None:
            for use, known in previous._known.items():
                if self._holder(use[1], use[2], use[3]) is known[0]:
                    self._known[use] = known

    def certificate(self, namespace: str, name: str, *, any_type: bool = False) -> Certified | str:
        """Return the certificate of a Secret, or what is wrong with it; `any_type`: the type of the Secret does not matter."""
        secret = self._snapshot.secrets.get((namespace, name))
        if secret is None:
            return f"Secret {namespace}/{name} not found"
        use = ("any pair" if any_type else "pair", "Secret", namespace, name)
        if use not in self._known:
            self._known[use] = (secret, _certify(secret, any_type=any_type))
        found = self._known[use][1]
        assert not isinstance(found, ir.Secret)
        return found

    def bundle(self, kind: str, namespace: str, name: str) -> ir.Secret | str:
        """Return the CA bundle of a Secret or ConfigMap (key ca.crt) or ClusterTrustBundle, or what is wrong with it.

        The namespace of a ClusterTrustBundle is "".
        """
        holder = self._holder(kind, namespace, name)
        if holder is None:
            return f"{kind} {f'{namespace}/' if namespace else ''}{name} not found"
        use = ("bundle", kind, namespace, name)
        if use not in self._known:
            self._known[use] = (holder, _bundle(kind, holder))
        found = self._known[use][1]
        assert not isinstance(found, Certified)
        return found

    def clients(self, namespace: str, name: str) -> ir.Secret | str:
        """Return the authorities (ca.crt) and revocation lists (ca.crl) of a Secret for clients, or what is wrong with them."""
        secret = self._snapshot.secrets.get((namespace, name))
        if secret is None:
            return f"Secret {namespace}/{name} not found"
        use = ("clients", "Secret", namespace, name)
        if use not in self._known:
            self._known[use] = (secret, _clients(secret))
        found = self._known[use][1]
        assert not isinstance(found, Certified)
        return found

    def late(self, now: int) -> tuple[str, ...]:
        """Return which of the certificates that were asked for clients refuse at `now`, and why."""
        found = (
            (use, known.pair.check_time(now))
            for use, (_, known) in self._known.items()
            if isinstance(known, Certified)
        )
        return tuple(sorted(f"{'/'.join(use)}: {why}" for use, why in found if why))

    def _holder(self, kind: str, namespace: str, name: str) -> _Holder | None:
        if kind == "Secret":
            return self._snapshot.secrets.get((namespace, name))
        if kind == "ClusterTrustBundle":
            return self._snapshot.cluster_trust_bundles.get((namespace, name))
        return self._snapshot.config_maps.get((namespace, name))


def join_bundles(bundles: Iterable[ir.Secret]) -> ir.Secret | None:
    """Return one bundle for several (named by a digest of their names), None for none."""
    found = tuple({bundle.name: bundle for bundle in bundles}.values())
    if len(found) < 2:
        return found[0] if found else None
    digest = hashlib.blake2b("\n".join(one.name for one in found).encode(), digest_size=8)
    text = b"".join(one.ca for one in found)
    return ir.Secret(name=f"bundle/{digest.hexdigest()}", ca=text)


def _certify(secret: Secret, *, any_type: bool) -> Certified | str:
    from edgefast.translate.tls.certificate import parse_pair
    from edgefast.translate.tls.staple import parse_staple

    name = f"{secret.metadata.namespace}/{secret.metadata.name}"
    if secret.type != TLS_TYPE and not any_type:
        return f"Secret {name} has type {secret.type} (required: {TLS_TYPE})"
    chain, key = secret.value("tls.crt"), secret.value("tls.key")
    if not chain or not key:
        return f"Secret {name} lacks {'tls.key' if chain else 'tls.crt'}"
    pair = parse_pair(chain, key)
    if isinstance(pair, str):
        return f"Secret {name}: {pair}"
    served = ir.Secret(name=f"secret/{name}", certificate=pair.chain, private_key=pair.key)
    beside = secret.value(STAPLE_KEY)
    return Certified(served, pair, parse_staple(beside, pair.chain) if beside else None)


def _bundle(kind: str, holder: _Holder) -> ir.Secret | str:
    from edgefast.translate.tls.certificate import parse_bundle

    meta, field = holder.metadata, "ca.crt"
    name = f"{meta.namespace}/{meta.name}"
    text: bytes | None
    if isinstance(holder, ClusterTrustBundle):
        name, field = meta.name, "spec.trustBundle"
        text = holder.spec.trust_bundle.encode()
    elif isinstance(holder, Secret):
        text = holder.value("ca.crt")
    else:
        text = holder.data["ca.crt"].encode() if "ca.crt" in holder.data else None
        text = holder.binary_data.get("ca.crt") if text is None else text
    if not text:
        return f"{kind} {name} lacks {field}"
    read = parse_bundle(text)
    if isinstance(read, str):
        return f"{kind} {name}: {read}"
    return ir.Secret(name=f"{kind.lower()}/{name}", ca=read)


def _clients(secret: Secret) -> ir.Secret | str:
    from edgefast.translate.tls.certificate import check_revocation_lists

    found = _bundle("Secret", secret)
    if isinstance(found, str):
        return found
    lists = secret.value("ca.crl") or b""
    wrong = check_revocation_lists(lists) if lists else ""
    name = f"{secret.metadata.namespace}/{secret.metadata.name}"
    if wrong:
        return f"Secret {name}: ca.crl: {wrong}"
    return ir.Secret(name=f"clients/{name}", ca=found.ca, crl=lists)
