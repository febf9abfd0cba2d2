"""Backends for the examples: one small HTTP/1.1 server for every loopback endpoint that the given files name.

In: files with EndpointSlices, Backends and XBackends; the Service's (or Backend's) name becomes the server's name. Out: JSON that
tells what the backend received, so that a `curl` through the gateway shows what the gateway did. With `--run -- command`
the command runs beside the servers and its exit status is ours. It is for trying and testing: loopback only, TLS where a port's name is
`tls`, datagrams where its protocol is UDP (origin_layer4.py).

    GET /status/503     answers that status                 GET /flaky    503 the first time a request id is seen
    GET /delay/200      answers after so many milliseconds  GET /seen     the last requests received, not counting this one

Calls of gRPC are answered by origin_http2.py. A Service called auth is an authorisation service (origin_auth.py), one called idp an
identity provider (origin_idp.py).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

import h11
import yaml
from origin_auth import SERVICE as AUTH_SERVICE
from origin_auth import decide
from origin_idp import SERVICE as IDP_SERVICE
from origin_idp import answer as answer_login

IDLE_SECONDS = 120.0
FORM_BYTES = 8192  # of a body that is read, not only counted
KEPT_REQUESTS = 100
NOBODY = "127.0.0.77"  # an endpoint that is not there, of examples about those
HTTP2 = b"PRI * HTTP/2.0"  # what begins HTTP/2 (RFC 9113 3.4)


@dataclass(frozen=True)
class Place:
    """Where one server listens: an address and a port, or the path of a unix socket; and what is under HTTP/1.1 there."""

    service: str
    address: str
    port: int = 0
    under: Literal["tcp", "tls", "udp"] = "tcp"  # udp: there is no HTTP

    def __str__(self) -> str:
        if not self.port:
            return f"unix:{self.address}"
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else f"{self.address}:{self.port}"
        )


def find_places(documents: Iterator[Any]) -> Iterator[Place]:
    """All endpoints on this machine that the objects name."""
    for document in documents:
        match document:
            case {
                "kind": "EndpointSlice",
                "metadata": {"labels": labels},
                "endpoints": endpoints,
                "ports": ports,
            }:
                for endpoint in endpoints:
                    for address in endpoint["addresses"]:
                        for port in ports if address != NOBODY else ():
                            service = labels["kubernetes.io/service-name"]
                            yield Place(service, address, port["port"], _find_under(port))
            case {"kind": "Backend", "metadata": {"name": name}, "spec": {"endpoints": endpoints}}:
                for endpoint in endpoints:
                    match endpoint:
                        case {"ip": {"address": address, "port": port}}:
                            yield Place(name, address, port)
                        case {"fqdn": {"hostname": "localhost", "port": port}}:
                            yield Place(name, "127.0.0.1", port)
                        case {"unix": {"path": path}}:
                            yield Place(name, path)
            case {
                "kind": "XBackend",
                "metadata": {"name": name},
                "spec": {"externalHostname": {"hostname": "localhost"}, "port": {"number": port}},
            }:
                yield Place(name, "127.0.0.1", port)


def _find_under(port: dict[str, Any]) -> Literal["tcp", "tls", "udp"]:
    if port.get("protocol") == "UDP":
        return "udp"
    return "tls" if port.get("name") == "tls" else "tcp"


@dataclass
class Origin:
    """One server and what it has seen."""

    place: Place
    seen: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))
    known_ids: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))

    async def serve(self) -> object:
        """What listens; it ends with its last reference."""
        place, context = self.place, None
        if not place.port:
            return await asyncio.start_unix_server(self.on_connection, place.address)
        if place.under == "udp":
            from origin_layer4 import Datagrams

            return await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: Datagrams(place.service, str(place)), (place.address, place.port)
            )
        if place.under == "tls":
            from origin_layer4 import make_context

            context = make_context(place.service)
        return await asyncio.start_server(
            self.on_connection, place.address, place.port, ssl=context
        )

    async def on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            first = await asyncio.wait_for(reader.read(65536), IDLE_SECONDS)
            if first.startswith(HTTP2):
                await self.on_http2(first, reader, writer)
                return
            connection.receive_data(first)
            while await self.answer_one(connection, reader, writer):
                connection.start_next_cycle()
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the peer went away or spoke something else: nobody to tell
        except asyncio.CancelledError:
            pass  # the program ends
        finally:
            writer.close()

    async def on_http2(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            from origin_http2 import answer_calls
        except ImportError:
            print("origin: HTTP/2 needs a package more: .venv/bin/pip install h2", file=sys.stderr)
            return
        service = self.place.service
        await answer_calls(service, self.known_ids, first, reader, writer, IDLE_SECONDS)

    async def answer_one(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; False when the connection is done."""
        request: h11.Request | None = None
        body_bytes, body = 0, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if connection.they_are_waiting_for_100_continue:
                    writer.write(
                        connection.send(h11.InformationalResponse(status_code=100, headers=[]))
                        or b""
                    )
                data = await asyncio.wait_for(reader.read(65536), IDLE_SECONDS)
                connection.receive_data(data)
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body_bytes += len(event.data)
                body = (body + event.data)[:FORM_BYTES]
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                break
            else:
                return False
        status, content, more = await self.reply_to(request, body_bytes, body)
        payload = json.dumps(content, indent=1).encode() + b"\n"
        headers = [("content-type", "application/json"), ("content-length", str(len(payload)))]
        headers += more
        reason = HTTPStatus(status).phrase
        head = (
            connection.send(h11.Response(status_code=status, headers=headers, reason=reason)) or b""
        )
        body = b"" if request.method == b"HEAD" else connection.send(h11.Data(data=payload)) or b""
        end = connection.send(h11.EndOfMessage()) or b""
        writer.write(head + body + end)
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    async def reply_to(
        self, request: h11.Request, body_bytes: int, body: bytes
    ) -> tuple[int, Any, list[tuple[str, str]]]:
        path = request.target.decode("ascii", "replace")
        headers: dict[str, str] = {}
        for name, value in request.headers:
            key = name.decode("ascii")
            text = value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        if path == "/seen":
            return 200, list(self.seen), []
        told = {
            "service": self.place.service,
            "endpoint": str(self.place),
            "method": request.method.decode("ascii"),
            "path": path,
            "headers": headers,
            "body_bytes": body_bytes,
        }
        self.seen.append(told)
        if self.place.service == AUTH_SERVICE:
            status, more = decide(headers)
            return status, told, more
        if self.place.service == IDP_SERVICE:
            return answer_login(path, headers, body)
        match path.partition("?")[0].strip("/").split("/"):
            case [*_, "status", code] if code in {
                str(int(status)) for status in HTTPStatus if status >= 200
            }:
                return int(code), told, []
            case [*_, "delay", milliseconds] if milliseconds.isdecimal():
                await asyncio.sleep(min(int(milliseconds), 60_000) / 1000)
            case [*_, "flaky"]:
                request_id = headers.get("x-request-id", "")
                if request_id not in self.known_ids:
                    self.known_ids.append(request_id)
                    return 503, told, []
        return 200, told, []


async def run_beside(command: list[str]) -> int:
    """Run the command to its end, handing SIGINT and SIGTERM on to it once."""
    process = await asyncio.create_subprocess_exec(*command, start_new_session=True)

    def hand_on(number: int) -> None:
        if process.returncode is None:
            process.send_signal(number)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, hand_on, number)
    return await process.wait()


async def main() -> int:
    parser = argparse.ArgumentParser(description="Backends for the examples.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--run", action="store_true", help="run the command that follows -- beside the servers"
    )
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options, command = parser.parse_args(arguments[:cut]), arguments[cut + 1 :]

    try:
        found = [
            one
            for path in options.files
            for one in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])
        ]
        texts = [path.read_text() for path in found]
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    places = dict.fromkeys(
        place for text in texts for place in find_places(yaml.safe_load_all(text))
    )
    servers = []
    for place in places:
        try:
            servers.append(await Origin(place).serve())
        except OSError as error:
            print(
                f"origin {place.service}: cannot listen on {place}: {error.strerror}",
                file=sys.stderr,
            )
            return 1
        print(f"origin {place.service} listens on {place}", flush=True)
    if options.run:
        return await run_beside(command)
    print("origins are ready", flush=True)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
