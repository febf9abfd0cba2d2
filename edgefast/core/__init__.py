"""The compiled request path: one Engine per worker process."""

from edgefast.core.engine import Engine

__all__ = ["Engine"]
