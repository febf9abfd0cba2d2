"""Messages and protocol of the config stream: delta xDS with edgefast's own resource types (architecture D6).

In: resources, names, versions.
Out: wire bytes, and plain values of wire bytes; ProtocolError for invalid bytes.
Must never: encode a resource twice. `encode_item` encodes it once, and every stream joins these
bytes (joined encodings of protobuf messages are the encoding of the merged message). Only this file
and protobuf.py use protobuf, and neither does I/O. Both ends exchange bytes with gRPC: method
METHOD, bidirectional, at most MESSAGE_LIMIT per message.

Opening. The proxy sends a request of each type in the order of `shards.TYPES`, then one of type
COMMIT. The first request contains `node`; each subscribes to ["*"]. `held` lists the proxy's
resources (name: version); for COMMIT it is {"table": version of the whole table, or empty}. A type
with too many names for one message has several; their contents are added (`encode_opening`). A
server that admits the proxy sends initial metadata WELCOME at once, before it reads. The proxy
waits for it for a moment, because gRPC hides the status of a stream that ends during a write. For
the same reason, the server refuses content of an opening, such as table formats, only when the
opening is complete.

Batch. After the opening, and whenever the fleet's table changes, the server sends
  puts in the order of TYPES, then removals in the reverse order (`encode_response`, cut by `cut_items`, `cut_names`),
  each with its own nonce. The last response contains the commit as its last resource, with the table's `Shards.version`.
  Most changes are therefore one message and one answer.
After an opening, the batch contains the differences to `held`, or only a commit (`encode_commit`)
when nothing differs. A proxy also accepts a lone commit after a batch. An empty or unknown version
counts as different. Only one batch is in progress: the server sends the next one after the answer
to the commit, with all changes since.

Answers. The answer to a response that commits is the answer to the commit. The proxy buffers until
the table is complete. Every resource's version must be the digest of its bytes, and the table's
version the digest of all resources. The table is complete with the commit at the latest, or when
the received resources have the version that the responses name (a partial batch does not). Then the
proxy applies it. After the commit it answers every response by its nonce, the commit last.
`refused` (the error_detail of xDS) is empty for an ACK. The answer to a response lists the refused
resources of that response; the answer to the commit lists all. The rest of the batch is in force.
Refusals of type COMMIT and name TABLE apply to the whole table (`Request.whole`): the previous
version is served, or some workers still serve it. A proxy may answer a commit again with its nonce
after a change (a late worker applied it, or a refused resource was applied). The newest answer
counts until the server sends another commit.
The answer to a commit may contain the node again, with other errors of the proxy (`troubles` in its
metadata, such as a failing counter store). The proxy sends it whenever it changes; an answer
without a node means no such errors.

Keys. Between batches, a server sends keys of session tickets to a proxy if its node requests them
(ticket_messages.py). The response has type TICKETS, gets no answer and is not part of any version.

Version. A node names its table formats together with the version of these rules (STREAM_VERSION).
Both ends treat a peer with another version like one with other table formats; the proxy keeps its
last table.

Mismatch. When the digest differs, the proxy refuses the commit with reason MISMATCH, ends the
stream and opens the next one with an empty `held`.

Ends. Either end may end the stream at any time, without effect on traffic. UNAUTHENTICATED and
PERMISSION_DENIED mean credentials. FAILED_PRECONDITION means that the server writes none of the
proxy's table formats. INVALID_ARGUMENT means a message that violates these rules. The proxy retries
after any other status. The proxy pings (KEEPALIVE_TIME); the server must allow it
(KEEPALIVE_MINIMUM). Silence of any length is allowed between batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from edgefast.table.shards import TYPES, Resource
from edgefast.xds import protobuf
from edgefast.xds.limits import IDENTITY_LIMIT, MESSAGE_FILL, REASON_LIMIT, TEXT_LIMIT
from edgefast.xds.proxy_problems import ProxyProblem, decode_proxy_problems, encode_proxy_problems
from edgefast.xds.rejections import (
    COMMIT,
    TABLE,
    Refused,
    decode_refusals,
    encode_refusals,
    find_whole,
)

__all__ = [
    "COMMIT",
    "METHOD",
    "STREAM_VERSION",
    "TABLE",
    "TICKETS",
    "TYPE_URLS",
    "WELCOME",
    "Node",
    "ProtocolError",
    "Request",
    "Response",
    "cut_items",
    "cut_names",
    "decode_request",
    "decode_response",
    "encode_commit",
    "encode_item",
    "encode_opening",
    "encode_request",
    "encode_response",
]

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
METHOD = f"/{SERVICE}/DeltaAggregatedResources"

#: Initial metadata of a server that lets a proxy in.
WELCOME = ("edge-welcome", "1")

#: Type of what is sent beside tables: a fleet's keys of session tickets (ticket_messages.py).
TICKETS = "ticket_keys"
#: Type of a resource (and COMMIT, TICKETS) -> its type URL.
TYPE_URLS: Mapping[str, str] = {
    type_: "type.googleapis.com/edge.v1." + type_.title().replace("_", "")
    for type_ in (*TYPES, COMMIT, TICKETS)
}
T = TypeVar("T")
_TYPES = {url: type_ for type_, url in TYPE_URLS.items()}
#: Raise it with every change of what messages mean that the other end would read otherwise or refuse.
STREAM_VERSION = 5
#: How a node names a table format among the features of xDS: with the stream's version, which have to be the same for both ends.
_FORMAT = f"edgefast.stream/{STREAM_VERSION}/"
#: How a node says that it takes keys of session tickets.
_TAKES_TICKETS = "edgefast.tickets/1"
#: Among a node's metadata.
_TROUBLES = "troubles"
#: Features that are looked at, of a node that lists more.
_FEATURES = 64
#: Characters of a product's version, and workers, that are believed.
_VERSION = 64
_WORKERS = 10_000
#: What protobuf adds to a string in a list or a pair in a map, at most.
_ENVELOPE = 16
#: gRPC's code for a request that was refused (google.rpc.Code INVALID_ARGUMENT).
_INVALID_ARGUMENT = 3


class ProtocolError(ValueError):
    """Bytes that are no message of this protocol; the text holds nothing of their content but names."""


class Node(msgspec.Struct, frozen=True):
    """Who opens the stream. What it says of itself is checked against its credential, never believed."""

    id: str  # the pod's name
    formats: tuple[str, ...] = ()  # of tables that it reads (edgefast.table.format)
    version: str = ""  # of the product
    workers: int = 0
    tickets: bool = False  # it takes a fleet's keys of session tickets


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a proxy says: an opening (no nonce) or an answer (the nonce of a response)."""

    type: str
    node: Node | None = None
    subscribe: tuple[str, ...] = ()
    held: Mapping[str, str] = {}  # name -> version
    nonce: str = ""
    refused: tuple[Refused, ...] = ()
    troubles: tuple[ProxyProblem, ...] = ()  # of a node, which an answer then names again

    @property
    def whole(self) -> str:
        """Why the table as a whole is not in force; "" when it is, resources in `refused` aside."""
        return find_whole(self.refused)


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says. A commit alone has neither puts nor removals; the version of what commits is the table's."""

    type: str
    puts: tuple[Resource, ...] = ()
    removed: tuple[str, ...] = ()
    nonce: str = ""
    version: str = ""
    commits: bool = False  # it closes its batch


# --- server to proxy --------------------------------------------------------------------------------


def encode_item(resource: Resource) -> bytes:
    """Return the bytes of one `resources` field of a response: to be made once and shared by all streams."""
    return _pack(resource.type, resource.name, resource.version, resource.data)


def encode_response(
    type_: str,
    items: Iterable[bytes],
    removed: Iterable[str],
    nonce: str,
    version: str,
    *,
    commits: bool = False,
) -> bytes:
    """Return a response of `items` (of `encode_item`) and names; `version` is the table's that is coming.

    `commits`: it is the last of its batch.
    """
    head = protobuf.DeltaDiscoveryResponse(
        type_url=TYPE_URLS[type_],
        removed_resources=removed,
        nonce=nonce,
        system_version_info=version,
    )
    end = (_pack(COMMIT, TABLE, version, b""),) if commits else ()
    return b"".join((head.SerializeToString(), *items, *end))


def encode_commit(version: str, nonce: str) -> bytes:
    """Return the response that closes a batch."""
    return encode_response(COMMIT, (), (), nonce, version, commits=True)


def cut_items(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut items into lists that fill a message of MESSAGE_FILL; a larger one is alone in its own."""
    return _cut(items, len)


def cut_names(names: Iterable[str]) -> Iterator[list[str]]:
    """Cut names of removed resources into lists that fill a message."""
    return _cut(names, lambda name: len(name.encode()) + _ENVELOPE)


def decode_response(data: bytes) -> Response:
    """Read a response; raises ProtocolError."""
    reported = protobuf.DeltaDiscoveryResponse()
    _parse(reported, data)
    type_ = _type_of(reported.type_url)
    puts: list[Resource] = []
    end: Resource | None = None  # the commit
    for one in reported.resources:
        held = _type_of(one.resource.type_url)
        if end is not None or held not in (type_, COMMIT):
            raise ProtocolError(f"a response of {type_} contains a resource of another type")
        _bound(one.name, one.version)
        found = Resource(held, one.name, one.version, one.resource.value)
        if held == COMMIT:
            end = found
        else:
            puts.append(found)
    _bound(reported.nonce, reported.system_version_info, *reported.removed_resources)
    if not reported.nonce:
        raise ProtocolError(f"a response of {type_} has no nonce")
    removed = tuple(reported.removed_resources)
    if end is None and type_ == COMMIT:
        raise ProtocolError(f"a commit without a {TABLE}")
    if end is not None and (end.name != TABLE or end.data or (type_ == COMMIT and removed)):
        raise ProtocolError(f"a commit does not contain exactly one {TABLE}")
    return Response(
        type=type_,
        puts=tuple(puts),
        removed=removed,
        nonce=reported.nonce,
        version=reported.system_version_info if end is None else end.version,
        commits=end is not None,
    )


# --- proxy to server --------------------------------------------------------------------------------


def encode_opening(
    node: Node, held: Mapping[tuple[str, str], str], version: str
) -> Iterator[bytes]:
    """Return the requests that open a stream.

    `held`: versions by (type, name); `version`: of the whole table, "" when it is not in force as it was sent.
    """
    by_type: dict[str, dict[str, str]] = {type_: {} for type_ in TYPES}
    for (type_, name), one in held.items():
        by_type[type_][name] = one
    by_type[COMMIT] = {TABLE: version} if version else {}
    who: Node | None = node
    for type_, versions in by_type.items():
        parts = _cut(versions.items(), _pair_size) if versions else ((),)
        for part in parts:
            request = Request(type=type_, node=who, subscribe=("*",), held=dict(part))
            yield encode_request(request)
            who = None


def encode_request(request: Request) -> bytes:
    """Return the bytes of one request."""
    reported = protobuf.DeltaDiscoveryRequest(
        type_url=TYPE_URLS[request.type],
        resource_names_subscribe=request.subscribe,
        initial_resource_versions=request.held,
        response_nonce=request.nonce,
    )
    if request.node is not None:
        reported.node.CopyFrom(_encode_node(request.node, request.troubles))
    if request.refused:
        message = encode_refusals(request.refused)
        reported.error_detail.CopyFrom(protobuf.Status(code=_INVALID_ARGUMENT, message=message))
    data: bytes = reported.SerializeToString()
    return data


def decode_request(data: bytes) -> Request:
    """Read a request; raises ProtocolError. Bound the sum of `held` over an opening yourself (TABLE_RESOURCES)."""
    reported = protobuf.DeltaDiscoveryRequest()
    _parse(reported, data)
    type_ = _type_of(reported.type_url)
    held = dict(reported.initial_resource_versions)
    _bound(reported.response_nonce, *reported.resource_names_subscribe, *held, *held.values())
    refused: tuple[Refused, ...] = ()
    if reported.HasField("error_detail"):
        # An answer that refuses is never read as one that accepts, whatever its text is.
        text = reported.error_detail.message
        name = TABLE if type_ == COMMIT else ""
        refused = decode_refusals(text) or (Refused(type_, name, text[:REASON_LIMIT]),)
    return Request(
        type=type_,
        node=_decode_node(reported.node) if reported.HasField("node") else None,
        troubles=decode_proxy_problems(reported.node.metadata.fields[_TROUBLES].string_value),
        subscribe=tuple(reported.resource_names_subscribe),
        held=held,
        nonce=reported.response_nonce,
        refused=refused,
    )


# --- parts ------------------------------------------------------------------------------------------


def _pack(type_: str, name: str, version: str, data: bytes) -> bytes:
    """Return the bytes of a response that has this resource and nothing else: one field."""
    reported = protobuf.DeltaDiscoveryResponse()
    one = reported.resources.add(name=name, version=version)
    one.resource.type_url = TYPE_URLS[type_]
    one.resource.value = data
    packed: bytes = reported.SerializeToString()
    return packed


def _parse(told: Any, data: bytes) -> None:
    try:
        told.ParseFromString(data)
    except DecodeError:
        raise ProtocolError("not a message of this protocol") from None


def _type_of(url: str) -> str:
    try:
        return _TYPES[url]
    except KeyError:
        raise ProtocolError(f"unknown type URL {url[:100]!r}") from None


def _bound(*texts: str) -> None:
    for one in texts:
        if len(one) > TEXT_LIMIT:
            raise ProtocolError(f"a name or version is longer than {TEXT_LIMIT} characters")


def _cut(things: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    part: list[T] = []
    filled = 0
    for one in things:
        more = size(one)
        if part and filled + more > MESSAGE_FILL:
            yield part
            part, filled = [], 0
        part.append(one)
        filled += more
    if part:
        yield part


def _pair_size(pair: tuple[str, str]) -> int:
    return len(pair[0].encode()) + len(pair[1]) + _ENVELOPE


def _encode_node(node: Node, problems: Sequence[ProxyProblem]) -> Any:
    reported = protobuf.Node(
        id=node.id, user_agent_name="edgefast", user_agent_version=node.version
    )
    reported.client_features.extend(_FORMAT + one for one in node.formats)
    if node.tickets:
        reported.client_features.append(_TAKES_TICKETS)
    reported.metadata.update({"workers": node.workers})
    if problems:
        reported.metadata.update({_TROUBLES: encode_proxy_problems(problems)})
    return reported


def _decode_node(told: Any) -> Node:
    if not told.id or len(told.id) > IDENTITY_LIMIT:
        raise ProtocolError(f"a node's id must have 1 to {IDENTITY_LIMIT} characters")
    features = tuple(told.client_features)[:_FEATURES]
    workers = told.metadata.fields["workers"].number_value
    return Node(
        id=told.id,
        formats=tuple(one.removeprefix(_FORMAT) for one in features if one.startswith(_FORMAT)),
        version=told.user_agent_version[:_VERSION],
        workers=int(workers) if 0 <= workers < _WORKERS else 0,
        tickets=_TAKES_TICKETS in features,
    )
