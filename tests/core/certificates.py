"""Contexts of a small TLS site: one authority, one certificate for some names.

In: names. Out: contexts for its server, ours and another's, and for clients that believe it. Keys are made per site and never leave the test.
"""

from __future__ import annotations

import functools
import ssl
import tempfile

from edgefast.core import TlsContext
from proxy.pki import Authority


class Site:
    """A certificate for these names."""

    def __init__(self, *names: str, seconds: int = 0) -> None:
        """`seconds`: that it is valid from now on."""
        authority = Authority()
        pair = authority.issue(*names, seconds=seconds)
        self._pair = pair
        self._pem = pair.certificate + pair.key
        self.bundle = authority.bundle
        self._bundle = authority.bundle.decode()

    def choose(self, name: str) -> TlsContext:
        """The engine's side of it, whatever the name."""
        return self._context

    @functools.cached_property
    def _context(self) -> TlsContext:
        return self.make()

    def make(self, *, verify: str = "", lifetime: int = 7200) -> TlsContext:
        """A new context of the engine's that shows the certificate."""
        made = TlsContext(server=True, verify=verify, lifetime=lifetime)
        made.add_pair(self._pair.certificate, self._pair.key)
        return made

    def dialler(self) -> TlsContext:
        """A new context of the engine's for backends that show the certificate."""
        made = TlsContext(server=False)
        made.trust(self.bundle)
        return made

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
