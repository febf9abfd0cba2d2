"""TLS towards the store: one context from PEM bytes in memory.

In: `ir.RateLimitStore`.
Out: an SSLContext that verifies the store's certificate and name, and presents the client
certificate if configured.
Must never: write the private key to a disk (OpenSSL reads it from an anonymous memory file that is
closed at once), or prompt for a passphrase.
"""

from __future__ import annotations

import os
import ssl

from edgefast import ir
from edgefast.rate_limit.error_reply import Refusal, Refused

__all__ = ["make_context"]


def make_context(config: ir.RateLimitStore) -> ssl.SSLContext:
    """Make the context; raises Refused when OpenSSL takes the CA, the certificate or the key not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False  # RFC 9110 4.3.4: subjectAltNames alone
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.ca:
        try:
            context.load_verify_locations(cadata=config.ca.decode("ascii"))
        except (ssl.SSLError, ValueError):
            raise Refused(Refusal("tls", "TLS: the CA is not a list of PEM certificates")) from None
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if config.certificate:
        _load_pair(context, config.certificate, config.private_key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, private_key: bytes) -> None:
    fd = os.memfd_create("edgefast-store-key", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(certificate.rstrip() + b"\n" + private_key.rstrip() + b"\n")
        context.load_cert_chain(f"/proc/self/fd/{fd}", password=_no_passphrase)
    except (OSError, ValueError):  # SSLError is an OSError
        raise Refused(
            Refusal("tls", "TLS: the client certificate or its key cannot be used")
        ) from None
    finally:
        os.close(fd)


def _no_passphrase() -> str:
    raise ValueError("encrypted")
