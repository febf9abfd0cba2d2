"""Notify: state messages of this process to a service manager (sd_notify(3)).

In: a state such as `READY=1`.
Out: one datagram to the socket in NOTIFY_SOCKET; without one, nothing.
Must never: fail the service or block it.
"""

from __future__ import annotations

import logging
import os
import socket

__all__ = ["manager_address", "notify"]

log = logging.getLogger(__name__)


def manager_address() -> str:
    """Return the address of the manager's socket as `connect` takes it; empty without a manager."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return ""
    return "\0" + address[1:] if address[0] == "@" else address


def notify(state: str) -> None:
    """Send a state; whoever does not listen misses nothing."""
    address = manager_address()
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.sendto(state.encode(), address)
        except OSError as error:
            log.debug("service manager: %s cannot be sent: %s", state, error)
