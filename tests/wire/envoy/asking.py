"""What is asked of both proxies, and what of their answers is compared.

In: a question. Out: what came of it: status, the headers that policies decide about, the backend's body or that it is the proxy's own,
and what the backend was asked. Must never compare the words of a proxy's own error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from origin.answers import response
from origin.message import Message
from wire.harness.client import Client

#: Headers of answers that policies decide about. Of a challenge only its scheme.
_TOLD = ("location", "content-encoding", "vary", "etag", "content-type", "set-cookie", "x-why")
_ASKED = ("authorization", "cookie", "x-api-key", "x-client", "x-user", "x-sub", "x-role")
MARK = "x-origin"


@dataclass(frozen=True)
class Ask:
    """One request, on a connection of its own."""

    target: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: bytes = b""
    chunked: bool = False
    source: str | None = None
    name: str = ""

    def __str__(self) -> str:
        if self.name:
            return self.name
        said = [
            self.method,
            self.target,
            *(f"{name}: {value[:40]}" for name, value in self.headers),
        ]
        said += [f"{len(self.body)} bytes"] if self.body else []
        said += ["chunked"] if self.chunked else []
        return " ".join(said + ([f"from {self.source}"] if self.source else []))


@dataclass(frozen=True)
class Answer:
    """What is compared."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str  # "": the proxy's own words, or none
    asked: tuple[str, ...]  # the backend: method, target, headers


def answer_as_told(message: Message) -> bytes:
    """The backend: `/status/N`, `/type/T/M` (a content type), `/size/N`; it repeats what it was asked."""
    parts = message.target.partition(b"?")[0].decode("latin-1").split("/")
    said = dict(zip(parts[1::2], parts[2::2], strict=False))
    status = int(said.get("status", "200"))
    kind = said.get("type", "text-plain").replace("-", "/", 1)
    headers = [("content-type", kind), (MARK, "backend")]
    if "etag" in said:
        headers.append(("etag", f'"{said["etag"]}"'))
    if "vary" in said:
        headers.append(("vary", said["vary"]))
    if "encoded" in said:
        headers.append(("content-encoding", said["encoded"]))
    if "control" in said:
        headers.append(("cache-control", said["control"]))
    asked = [message.method.decode(), message.target.decode("latin-1")]
    asked += [
        f"{n.decode()}: {v.decode('latin-1')}" for n, v in message.headers if n.decode() in _ASKED
    ]
    asked.append(f"{len(message.body)} bytes")
    headers.append(("x-asked", json.dumps(asked)))
    if status == 204:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"HTTP/1.1 204 No\r\n{lines}\r\n".encode()
    body = b"b" * int(said.get("size", "6"))
    return response(body, status, headers, head=message.method == b"HEAD" or status == 304)


def ask(port: int, host: str, one: Ask) -> Answer:
    """Of either proxy."""
    with Client(("127.0.0.1", port), source=one.source) as client:
        got = client.request(
            one.method, one.target, host, one.headers, one.body, chunked=one.chunked
        )
    from_afar = bool(got.values(MARK))
    told = []
    for name in _TOLD:
        if name == "content-type" and not from_afar and got.status >= 400:
            continue  # of its own words
        values = got.values(name)
        if name == "vary":  # one list, in however many lines
            values = [", ".join(values).lower()] if values else []
        told += [(name, value) for value in values]
    told += [("www-authenticate", one.partition(" ")[0]) for one in got.values("www-authenticate")]
    asked = tuple(json.loads(got.values("x-asked")[0])) if got.values("x-asked") else ()
    body = got.body.decode("latin-1") if from_afar and not got.values("content-encoding") else ""
    return Answer(got.status, tuple(told), body, asked)
