"""Identities: the URI in a certificate, which alone identifies its holder.

In: a fleet or the controller.
Out: `edge://<controller namespace>/fleet/<namespace>/<name>` or `edge://<controller
namespace>/controller`; the parsed identity of such a URI. One controller's authority signs for its
own namespace only, so a URI of another namespace is not an identity here.
Source: architecture D6 (the credential determines the fleet).
Must never: accept a spelling that it would not write.
"""

from __future__ import annotations

import re

__all__ = ["CONTROLLER", "controller_uri", "fleet_key", "fleet_uri", "identify", "split_key"]

#: What `identify` returns for the controller; no fleet has this key, for those have a slash.
CONTROLLER = "controller"

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)  # RFC 1123


def fleet_key(namespace: str, name: str) -> str:
    """Return the name of a fleet on the stream: `<namespace>/<name>`."""
    return f"{namespace}/{name}"


def split_key(fleet: str) -> tuple[str, str]:
    """Return (namespace, name) of a fleet's key."""
    namespace, _, name = fleet.partition("/")
    return namespace, name


def controller_uri(namespace: str) -> str:
    """Return the identity of the controllers of a namespace."""
    return f"edge://{namespace}/{CONTROLLER}"


def fleet_uri(controller_namespace: str, namespace: str, name: str) -> str:
    """Return the identity of a fleet's proxies."""
    return f"edge://{controller_namespace}/fleet/{namespace}/{name}"


def identify(uri: str, controller_namespace: str) -> str | None:
    """Return the fleet's key or CONTROLLER; None for anything that this controller did not name."""
    if uri == controller_uri(controller_namespace):
        return CONTROLLER
    parts = uri.split("/")
    if len(parts) != 6 or not all(_LABEL.fullmatch(one) for one in parts[4:]):
        return None
    namespace, name = parts[4:]
    if uri != fleet_uri(controller_namespace, namespace, name):
        return None
    return fleet_key(namespace, name)
