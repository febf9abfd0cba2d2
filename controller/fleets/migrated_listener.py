"""Migrated listener: adds a listener to a fleet that its Gateway has left, beside the fleet's own listeners.

In: a listener in its earlier form, and the fleet's present listeners.
Out: the listener with the settings of the port (HTTP settings, connection limits), or nothing when
it conflicts. Alternatively its hostname, reserved by a listener without certificates
(translate/fleet/reserved_hostnames.py), so that no broader hostname of another Gateway receives its
requests. The rules for conflicts are those of merging (translate/fleet/merge.py).
Must never: take a port or hostname from the fleet's own listeners, or serve a listener with another
TLS mode than before.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgefast import ir
from edgefast.translate.gateway.protocol import family_of, has_port_alone, is_stream
from edgefast.translate.match.hostname import ANY

__all__ = ["find_migrated_listener", "reserve_listener"]


def find_migrated_listener(one: ir.Listener, there: Iterable[ir.Listener]) -> ir.Listener | None:
    """Return a listener as it can be served beside others, None when it cannot."""
    neighbours = _neighbours(one, there)
    if neighbours is None:
        return None
    for other in neighbours:
        # Protocols may differ, and only those who terminate have to agree on how.
        if one.tls and other.tls and _shake(one.tls) != _shake(other.tls):
            return None
        one = msgspec.structs.replace(one, http=other.http)
        if is_stream(one.protocol) and is_stream(other.protocol):
            one = msgspec.structs.replace(one, stream=other.stream)
    return one


def reserve_listener(one: ir.Listener, there: Iterable[ir.Listener]) -> ir.Listener | None:
    """Return a listener that holds a hostname beside others, None where nobody is, or there is no name to hold."""
    neighbours = _neighbours(one, there)
    if not neighbours or one.hostname == ANY:
        return None
    first = neighbours[0]
    tls = first.tls and msgspec.structs.replace(first.tls, certificates=())
    return msgspec.structs.replace(first, name=one.name, hostname=one.hostname, tls=tls)


def _neighbours(one: ir.Listener, there: Iterable[ir.Listener]) -> list[ir.Listener] | None:
    """Return the listeners on one's port, None when one has no place there at all, nor its hostname."""
    spot = (ir.transport_of(one), one.bind_port)
    found = [other for other in there if (ir.transport_of(other), other.bind_port) == spot]
    if found and has_port_alone(one.protocol):
        return None
    for other in found:
        if other.port != one.port or family_of(other.protocol) != family_of(one.protocol):
            return None
        if other.hostname == one.hostname:
            return None
    return found


def _shake(tls: ir.ListenerTls) -> object:
    return tls.min_version, tls.client_ca, tls.client_insecure_fallback
