"""Fixtures of the proxy tests."""

from __future__ import annotations

from proxy.command import start

__all__ = ["start"]
