"""Match: finds the rule of a request with the proxy's own C matcher; for explain, tests and benches.

In: resources (or Shards), a listener, a host, a `Request`. Out: `Hit`s in order of precedence, the
first is the answer. It uses the csrc/route.c, the RE2 and the order of virtual hosts of a worker,
so that explain reports what a proxy does.
Must never: normalise a path or parse a head; that comes before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from edgefast import ir
from edgefast._csrc import ffi, lib
from edgefast.api.model.regex import compile_regex
from edgefast.table.blob import Blob, BlobError, decode_blob, open_blob
from edgefast.table.shards import Key, Resource, Shards

#: What the name of a header predicate begins with that looks at cookies (csrc/table_layout.h, EF_COOKIE).
COOKIE = "cookie:"
_SCRATCH = (
    256 * 1024
)  # a value that a regex is matched against is no longer than a head: EF_MAX_HEAD


class Request(msgspec.Struct, frozen=True):
    """What the matcher sees of a request: a normalised path, the query without "?", header lines in order.

    Bytes that are no UTF-8 stand as surrogate escapes.
    """

    method: str = "GET"
    path: str = "/"
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Hit(msgspec.Struct, frozen=True):
    """One entry that takes the request."""

    virtual_host: str  # the resource's name
    match: ir.Match
    rule: ir.Rule
    prefix_len: int  # bytes of the path that a prefix covers


def match(shards: Shards, listener: str, host: str, request: Request) -> Hit | None:
    """Return the rule of a listener that answers a request to `host` (no port), None for 404."""
    return Matcher(shards.resources).match(listener, host, request)


def order_hostnames(host: str) -> Iterator[str]:
    """Virtual hosts that may take a host, the most specific first: itself, ever shorter wildcards, none."""
    host = host.lower()
    yield host
    at = host.find(".", 1)
    while at > 0:
        yield f"*{host[at:]}"
        at = host.find(".", at + 1)
    yield "*"


def find_listener(listeners: Iterable[ir.Listener], port: int, host: str) -> ir.Listener | None:
    """Return the listener of a port that owns a host: the most specific one (listener isolation)."""
    named: dict[str, ir.Listener] = {}
    for listener in listeners:
        if listener.port == port:
            named.setdefault(listener.hostname, listener)
    return next((named[name] for name in order_hostnames(host) if name in named), None)


class Matcher:
    """Reads resources as they are asked for and keeps them open."""

    def __init__(self, resources: Mapping[Key, Resource]) -> None:
        self._resources = resources
        self._hosts: dict[str, _Host | None] = {}
        self._scratch = ffi.new("uint8_t[]", _SCRATCH)

    def match(self, listener: str, host: str, request: Request) -> Hit | None:
        """Return the first hit, None when there is none. Raises BlobError for a damaged resource."""
        return next(self.matches(listener, host, request), None)

    def matches(self, listener: str, host: str, request: Request) -> Iterator[Hit]:
        """Yield every entry that takes the request, in the order of the proxy: the later ones explain the first."""
        call = Call(request)
        for hostname in order_hostnames(host):
            found = self._host(f"{listener}/{hostname}")
            if found is not None:
                yield from self._match_host(found, call)

    def match_host(self, listener: str, hostname: str, request: Request) -> Hit | None:
        """Return the first hit of one virtual host, whatever host was asked for."""
        found = self._host(f"{listener}/{hostname}")
        return next(self._match_host(found, Call(request)), None) if found is not None else None

    def _host(self, name: str) -> _Host | None:
        if name not in self._hosts:
            root = self._resources.get(("virtual_host", name))
            self._hosts[name] = _Host(root, self._resources) if root is not None else None
        return self._hosts[name]

    def _match_host(self, host: _Host, call: Call) -> Iterator[Hit]:
        route, hit = ffi.new("ef_route *"), ffi.new("ef_hit *")
        lib.ef_route_begin(route, host.vhost, call.request)
        while lib.ef_route_next(route, hit):
            if not self._regexes_hold(hit, call):
                continue
            blob = host.decode(hit.blob)
            entry = blob.entries[hit.candidate]
            yield Hit(host.name, entry.match, blob.rules[hit.rule], hit.prefix_len)

    def _regexes_hold(self, hit: Any, call: Call) -> bool:
        pred, value, length = ffi.new("ef_regex_pred *"), ffi.new("uint8_t **"), ffi.new("size_t *")
        for number in range(hit.regex_preds):
            lib.ef_route_pred(hit, number, pred)
            if pred.is_cookie:
                pattern = bytes(ffi.buffer(pred.pattern, pred.pattern_len))
                name = bytes(ffi.buffer(pred.name, pred.name_len))
                if not any(_full_match(pattern, one) for one in call.cookies(name)):
                    return False
                continue
            find = lib.ef_request_query if pred.is_query else lib.ef_request_header
            found = find(
                call.request, pred.name, pred.name_len, self._scratch, _SCRATCH, value, length
            )
            pattern = bytes(ffi.buffer(pred.pattern, pred.pattern_len))
            if found != 1 or not _full_match(pattern, bytes(ffi.buffer(value[0], length[0]))):
                return False
        if not hit.regex_path:
            return True
        text = lib.ef_blob_regex(hit.blob, hit.candidate, length)
        return _full_match(bytes(ffi.buffer(text, length[0])), call.path)


class _Host:
    """One virtual host: its open blobs as an ef_vhost."""

    def __init__(self, root: Resource, resources: Mapping[Key, Resource]) -> None:
        self.name = root.name
        try:
            pointer, keep = open_blob(root.data)
        except BlobError as error:
            raise BlobError(f"virtual host {root.name}: {error}") from None
        self._data = {_address(pointer): root.data}
        self._decoded: dict[int, Blob] = {}
        self._keep = [keep]
        count = lib.ef_blob_fragments(pointer)
        self._fragments = ffi.new("ef_blob const *[]", count)
        for index in range(count if count > 1 else 0):
            resource = resources.get(("fragment", f"{root.name}#{index}"))
            if resource is not None:
                part, keep = open_blob(resource.data)
                self._keep.append(keep)
                self._data[_address(part)] = resource.data
                self._fragments[index] = part
        self.vhost = ffi.new("ef_vhost *")
        self.vhost.root = pointer
        self.vhost.fragments = self._fragments if count > 1 else ffi.NULL
        self.vhost.n_fragments = count

    def decode(self, pointer: Any) -> Blob:
        """The blob that a hit is in."""
        address = _address(pointer)
        if address not in self._decoded:
            self._decoded[address] = decode_blob(self._data[address])
        return self._decoded[address]


def _full_match(pattern: bytes, text: bytes) -> bool:
    return compile_regex(pattern).fullmatch(text) is not None


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


class Call:
    """A request in the form of the C side: `request` is the ef_request; its values are read as the matcher reads them."""

    def __init__(self, request: Request) -> None:
        self.path = _encode(request.path)
        query = _encode(request.query)
        self._scratch: Any = None
        text = bytearray()
        self._spans = ffi.new("ef_span[]", max(1, len(request.headers)))
        for span, (name, value) in zip(self._spans, request.headers, strict=False):
            raw, message = _encode(name), _encode(value)
            span.name_off, span.name_len = len(text), len(raw)
            span.name_hash = lib.ef_name_hash(raw, len(raw))
            text += raw
            span.val_off, span.val_len = len(text), len(message)
            text += message
        self._keep = [ffi.from_buffer(bytes(each)) for each in (self.path, query, text)]
        path, query_at, base = self._keep
        self.request = ffi.new("ef_request *")
        self.request.path, self.request.path_len = ffi.cast("uint8_t *", path), len(self.path)
        self.request.query, self.request.query_len = ffi.cast("uint8_t *", query_at), len(query)
        self.request.method = lib.ef_method_lookup(request.method.encode(), len(request.method))
        self.request.n_spans = len(request.headers)
        self.request.base = ffi.cast("uint8_t *", base)
        self.request.spans = self._spans

    def header(self, name: str) -> bytes | None:
        """Return the value of a header (name in lower case), its lines joined with ","; None when there is none."""
        return self._read(lib.ef_request_header, name)

    def cookies(self, name: bytes) -> list[bytes]:
        """Return the values of the cookies of a name, in their order."""
        found, at = [], ffi.new("uint64_t *")
        value, length = ffi.new("uint8_t **"), ffi.new("size_t *")
        while lib.ef_request_cookie(self.request, name, len(name), at, value, length):
            found.append(bytes(ffi.buffer(value[0], length[0])))
        return found

    def parameter(self, name: str) -> bytes | None:
        """Return the decoded value of the first query parameter of a name; None when there is none."""
        return self._read(lib.ef_request_query, name)

    def _read(self, find: Any, name: str) -> bytes | None:
        if self._scratch is None:
            self._scratch = ffi.new("uint8_t[]", _SCRATCH)
        value, length, raw = ffi.new("uint8_t **"), ffi.new("size_t *"), name.encode()
        found = find(self.request, raw, len(raw), self._scratch, _SCRATCH, value, length)
        return bytes(ffi.buffer(value[0], length[0])) if found == 1 else None


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
