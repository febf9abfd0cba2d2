"""PROXY protocol headers: sound ones with the address that counts after them, and those that nobody may believe (specification 2.1, 2.2)."""

from __future__ import annotations

import ipaddress
import struct

V2 = b"\r\n\r\n\x00\r\nQUIT\n"


def proxy_v2(source: str, command: int = 0x21, extra: bytes = b"") -> bytes:
    """A PROXY v2 block for TCP from `source`."""
    address = ipaddress.ip_address(source)
    other = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    family = 0x11 if address.version == 4 else 0x21
    body = address.packed + other.packed + struct.pack("!HH", 56324, 443) + extra
    return V2 + bytes([command, family]) + struct.pack("!H", len(body)) + body


V1 = b"PROXY TCP4 192.0.2.7 127.0.0.1 56324 443\r\n"
GOOD = {
    "v1-tcp4": (V1, "192.0.2.7"),
    "v1-tcp6": (b"PROXY TCP6 2001:db8::9 ::1 56324 443\r\n", "2001:db8::9"),
    "v1-tcp6-mapped": (b"PROXY TCP6 ::ffff:10.0.0.1 ::1 56324 443\r\n", "10.0.0.1"),
    "v1-tcp6-long": (b"PROXY TCP6 2001:DB8:0:0:0:0:0:9 ::1 56324 443\r\n", "2001:db8::9"),
    "v1-tcp6-not-local": (b"PROXY TCP6 fd::1 ::1 56324 443\r\n", "fd::1"),
    "v2-tcp6-mapped": (proxy_v2("::ffff:10.0.0.1"), "10.0.0.1"),
    "v2-tcp6-mapped-external": (proxy_v2("::ffff:192.0.2.1"), "192.0.2.1"),
    "v1-private": (b"PROXY TCP4 10.1.2.3 127.0.0.1 1 65535\r\n", "10.1.2.3"),
    "v1-unknown": (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    "v1-unknown-with-rest": (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", "127.0.0.1"),
    "v2-tcp4": (proxy_v2("192.0.2.8"), "192.0.2.8"),
    "v2-tcp6": (proxy_v2("2001:db8::8"), "2001:db8::8"),
    "v2-local": (V2 + b"\x20\x00\x00\x00", "127.0.0.1"),
    "v2-local-with-block": (proxy_v2("192.0.2.8", 0x20), "127.0.0.1"),
    "v2-tlv": (proxy_v2("192.0.2.8", extra=b"\x01\x00\x02h2\x04\x00\x01\x00"), "192.0.2.8"),
    "v2-unspecified": (V2 + b"\x21\x00\x00\x00", "127.0.0.1"),
}

BAD = {
    "v1-long": b"PROXY TCP4 " + b"1" * 120 + b"\r\n",
    "v1-port": b"PROXY TCP4 192.0.2.7 127.0.0.1 99999 443\r\n",
    "v1-no-port": b"PROXY TCP4 192.0.2.7 127.0.0.1\r\n",
    "v1-address": b"PROXY TCP4 192.0.2.777 127.0.0.1 1 2\r\n",
    "v1-family": b"PROXY TCP4 2001:db8::9 ::1 1 2\r\n",
    "v1-mapped-as-tcp4": b"PROXY TCP4 ::ffff:10.0.0.1 127.0.0.1 1 2\r\n",
    "v1-scope": b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
    "v1-lf": b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2\n",
    "v1-lower": b"proxy TCP4 192.0.2.7 127.0.0.1 1 2\r\n",
    "v1-udp": b"PROXY UDP4 192.0.2.7 127.0.0.1 1 2\r\n",
    "v1-blanks": b"PROXY  TCP4 192.0.2.7 127.0.0.1 1 2\r\n",
    "v1-twice": V1 + V1,
    "v2-version": V2 + b"\x31\x11\x00\x0c" + b"\x01" * 12,
    "v2-command": V2 + b"\x2f\x11\x00\x0c" + b"\x01" * 12,
    "v2-short": V2 + b"\x21\x11\x00\x04" + b"\x01" * 4,
    "v2-huge": V2 + b"\x21\x11\xff\xff" + b"\x01" * 65535,
    "v2-signature": b"\r\n\r\n\x00\r\nQUIX\n\x21\x11\x00\x0c" + b"\x01" * 12,
}
