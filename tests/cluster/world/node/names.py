"""The cluster's DNS: Services by name, over UDP and TCP, on the node's bridge address.

In: Services and EndpointSlices as the agent watches them. Out: A and SRV-less answers for `<service>.<namespace>.svc.
<domain>` (its cluster IP, or the ready endpoints of a headless one) and `<hostname>.<service>...`; NXDOMAIN otherwise.
Source: Kubernetes "DNS-Based Service Discovery"; RFC 1035 for the form.
Must never: ask anybody outside.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

from cluster.world import addresses as at

_HEAD = struct.Struct("!HHHHHH")
_A, _AAAA, _CNAME, _ANY = 1, 28, 5, 255
_TTL = 5
_NOERROR, _NXDOMAIN, _FORMERR = 0, 3, 1
_UDP_LIMIT = 512

Lookup = Callable[[str], list[str] | None]


class Names:
    """What names mean now."""

    def __init__(self) -> None:
        self._services: dict[tuple[str, str], dict[str, Any]] = {}
        self._slices: dict[tuple[str, str], dict[str, Any]] = {}

    def on_service(self, kind: str, obj: Any) -> None:
        """Take in an event of the Services."""
        _take(self._services, kind, obj)

    def on_slice(self, kind: str, obj: Any) -> None:
        """Take in an event of the EndpointSlices."""
        _take(self._slices, kind, obj)

    def lookup(self, name: str) -> list[str] | None:
        """Return the IPv4 addresses of a name, None when there is no such name."""
        parts = name.lower().rstrip(".").split(".")
        suffix = ["svc", *at.CLUSTER_DOMAIN.split(".")]
        if parts[-len(suffix) :] != suffix:
            return None
        *host, service, namespace = parts[: -len(suffix)] if len(parts) > 4 else ("", "")
        found = self._services.get((namespace, service))
        if found is None or len(host) > 1:
            return None
        address = found["spec"].get("clusterIP")
        if address and address != "None":
            return None if host else [address]
        addresses = sorted(self._endpoints(namespace, service, host[0] if host else None, found))
        return addresses if addresses or not host else None

    def _endpoints(
        self, namespace: str, service: str, host: str | None, obj: dict[str, Any]
    ) -> Iterable[str]:
        unready = obj["spec"].get("publishNotReadyAddresses")
        for (where, _), one in self._slices.items():
            labels = one["metadata"].get("labels") or {}
            if where != namespace or labels.get("kubernetes.io/service-name") != service:
                continue
            for endpoint in one.get("endpoints") or []:
                ready = (endpoint.get("conditions") or {}).get("ready") is not False
                if (ready or unready) and (host is None or endpoint.get("hostname") == host):
                    yield from endpoint["addresses"]


def _take(kept: dict[tuple[str, str], dict[str, Any]], kind: str, obj: Any) -> None:
    def key(one: Any) -> tuple[str, str]:
        return one["metadata"]["namespace"], one["metadata"]["name"]

    if kind == "SYNC":
        kept.clear()
        kept.update({key(one): one for one in obj})
    elif kind == "DELETED":
        kept.pop(key(obj), None)
    else:
        kept[key(obj)] = obj


def answer(query: bytes, lookup: Lookup, limit: int = 65535) -> bytes:
    """Return the answer to one DNS message."""
    identity, flags, count, *_ = _HEAD.unpack_from(query)
    try:
        name, end = _read_name(query, _HEAD.size)
        kind, _ = struct.unpack_from("!HH", query, end)
        question = query[_HEAD.size : end + 4]
    except (IndexError, struct.error, UnicodeDecodeError):
        return _HEAD.pack(identity, 0x8000 | _FORMERR, 0, 0, 0, 0)
    found = lookup(name) if count == 1 else None
    code = _NXDOMAIN if found is None else _NOERROR
    addresses = found if found and kind in (_A, _ANY) else []
    # response, authoritative, recursion desired as asked, recursion available
    head = 0x8480 | (flags & 0x0100) | code
    records = [
        struct.pack("!HHHIH4s", 0xC00C, _A, 1, _TTL, 4, bytes(map(int, one.split("."))))
        for one in addresses
    ]
    fitting = max((limit - _HEAD.size - len(question)) // 16, 0)
    if len(records) > fitting:
        records, head = records[:fitting], head | 0x0200
    body = b"".join(records)
    return _HEAD.pack(identity, head, 1, len(records), 0, 0) + question + body


def _read_name(message: bytes, at_byte: int) -> tuple[str, int]:
    labels = []
    while length := message[at_byte]:
        labels.append(message[at_byte + 1 : at_byte + 1 + length].decode("ascii"))
        at_byte += 1 + length
    return ".".join(labels), at_byte + 1


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, peer: tuple[str | Any, int]) -> None:
        if len(data) >= _HEAD.size and self._transport is not None:
            self._transport.sendto(answer(data, self._lookup, _UDP_LIMIT), peer)


async def serve(lookup: Lookup, host: str = at.POD_GATEWAY, port: int = 53) -> None:
    """Answer until cancelled."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack("!H", await reader.readexactly(2))
                text = answer(await reader.readexactly(size), lookup)
                writer.write(struct.pack("!H", len(text)) + text)
                await writer.drain()
        except (OSError, EOFError, struct.error):
            writer.close()

    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Datagrams(lookup), local_addr=(host, port))
    server = await asyncio.start_server(talk, host, port)
    await server.serve_forever()
