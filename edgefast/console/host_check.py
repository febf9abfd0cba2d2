"""Host check: accepts only Host values that no DNS server can resolve to this machine.

In: the value of a Host header.
Out: True for localhost and loopback addresses.
Must never: resolve a name.
"""

from __future__ import annotations

from edgefast.netaddr import read_address


def is_loopback(host: str) -> bool:
    """Tell whether a Host header is localhost or a loopback address, with any port."""
    name, colon, port = host.rpartition(":")
    name = name if colon and port.isdecimal() and not name.endswith(":") else host
    if name == "localhost":
        return True
    address = read_address(name.removeprefix("[").removesuffix("]"))
    return address is not None and address.is_loopback
