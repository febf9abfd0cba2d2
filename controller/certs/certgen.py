"""certgen: creates the controller's authority and its own certificate, once; existing ones are kept.

In: access to the Secrets of the controller's namespace.
Out: Secrets `<name>-ca` (the set of authorities, with its keys) and `<name>` (tls.crt, tls.key,
ca.crt of the controller). `overwrite` replaces both at once and ends the trust in all earlier
certificates; use it for a compromised key. `rotate` announces a new authority; the running
controllers complete the rotation, with overlap (authority_set.py).
Source: gateway-api B2.
Must never: replace existing Secrets without one of these options.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from controller.certs.authority_set import (
    AuthoritySet,
    announce,
    decode_authority_set,
    encode_authority_set,
    make_authority_set,
)
from controller.certs.issue import issue_server
from controller.certs.secrets import SecretApi, Secrets, Stored
from controller.kube.errors import ApiError

__all__ = ["CertgenError", "authority_name", "certgen", "server_data"]


class CertgenError(Exception):
    """What is there cannot be used; the text says what to do."""


def authority_name(name: str) -> str:
    """Return the name of the authority's Secret."""
    return f"{name}-ca"


def server_data(
    ring: AuthoritySet, *, namespace: str, name: str, domain: str, now: datetime
) -> dict[str, str]:
    """Return the data of the controller's own Secret, with a new certificate."""
    pair = issue_server(ring.current, namespace=namespace, name=name, domain=domain, now=now)
    return {"ca.crt": ring.bundle, "tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}


async def certgen(
    kube: SecretApi,
    namespace: str,
    *,
    name: str = "edge-gateway",
    domain: str = "cluster.local",
    overwrite: bool = False,
    rotate: bool = False,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[str]:
    """Make what is missing; returns a line on each Secret. Raises CertgenError, ApiError."""
    secrets = Secrets(kube, namespace)
    now = clock()
    ca = authority_name(name)
    message = []
    stored = await secrets.read(ca)
    if stored is None or overwrite:
        ring = make_authority_set(name, now)
        verb = await _write(secrets, ca, stored, encode_authority_set(ring))
        if verb == "kept":  # somebody was faster
            stored = await secrets.read(ca)
            ring = _decode(namespace, ca, stored)
    else:
        ring = _decode(namespace, ca, stored)
        verb = "kept"
        if rotate:
            changed = announce(ring, name, now)
            if changed is not ring:
                await secrets.replace(stored, encode_authority_set(changed))
                ring, verb = changed, "has a new authority announced"
    message.append(f"Secret {namespace}/{ca} {verb}")
    server = await secrets.read(name)
    if server is None or overwrite:
        data = server_data(ring, namespace=namespace, name=name, domain=domain, now=now)
        verb = await _write(secrets, name, server, data)
    else:
        verb = "kept"
    message.append(f"Secret {namespace}/{name} {verb}")
    return message


async def _write(secrets: Secrets, name: str, old: Stored | None, data: dict[str, str]) -> str:
    if old is not None:
        await secrets.replace(old, data)
        return "replaced"
    try:
        await secrets.create(name, data)
    except ApiError as error:
        if not error.exists:
            raise
        return "kept"
    return "created"


def _decode(namespace: str, name: str, stored: Stored | None) -> AuthoritySet:
    try:
        return decode_authority_set(stored.data if stored is not None else {})
    except ValueError as error:
        raise CertgenError(
            f"Secret {namespace}/{name} is not a certificate authority of edgefast: {error}; "
            "delete it, or replace it with --overwrite"
        ) from None
