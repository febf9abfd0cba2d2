"""The compiled request path: one Engine per worker process."""

from edgefast.core.engine import Engine, TlsContext, TlsError, use_tickets

__all__ = ["Engine", "TlsContext", "TlsError", "use_tickets"]
