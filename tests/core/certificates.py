"""Contexts of a small TLS site: one authority, one certificate for some names.

In: names. Out: contexts for its server and for clients that believe it. Keys are made per site and never leave the test.
"""

from __future__ import annotations

import ssl
import tempfile

from proxy.pki import Authority


class Site:
    """A certificate for these names."""

    def __init__(self, *names: str) -> None:
        authority = Authority()
        pair = authority.issue(*names)
        self._pem = pair.certificate + pair.key
        self._bundle = authority.bundle.decode()

    def server(self) -> ssl.SSLContext:
        """A new context that shows the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(self._pem)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def client(self) -> ssl.SSLContext:
        """A new context that believes it, and checks names."""
        return ssl.create_default_context(cadata=self._bundle)
