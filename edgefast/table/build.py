"""Build: BlobBuilder, entries and rule payloads -> the bytes of one blob, through csrc/table_build.c.

In: plain values that are already encoded. Out: bytes that ef_table_check accepts, and what was left
out and why. Memory for the C side is reused from blob to blob and grows on its request. One builder
serves one thread.
Must never: know the IR, or decide which entries go where.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from edgefast._csrc import ffi, lib

KIND = {"exact": lib.EF_PATH_EXACT, "prefix": lib.EF_PATH_PREFIX, "regex": lib.EF_PATH_REGEX}

_FIRST_WORK = 256 * 1024
_NO_MEMORY: int = lib.EF_T_NO_MEMORY
_REFUSALS = {
    lib.EF_T_PATH: "no request can meet this path (absolute, no trailing slash, "
    f"at most {lib.EF_MAX_SEGMENTS - 1} segments in a prefix)",
    lib.EF_T_LIMIT: "a path, header or query match is too long, or there are too many of them",
}


class Predicate(NamedTuple):
    """A header or query predicate; header names in lower case."""

    name: bytes
    value: bytes
    regex: bool


class BlobEntry(NamedTuple):
    """One entry: `rule` counts in the payloads given with it; method is an enum ef_method, 0 for any."""

    rule: int
    kind: int
    path: bytes
    method: int
    headers: Sequence[Predicate]
    query: Sequence[Predicate]


class Depths(NamedTuple):
    """Which depths hold paths: bit sets and the longest Exact path, as csrc/table_layout.h has them."""

    prefix: int
    exact: int
    longest: int


class BuildError(Exception):
    """The blob as a whole cannot be built; the message says why."""


class _NeedsMemory(Exception):
    """The work memory is too small: start again with more."""


class BlobBuilder:
    """Builds one blob after the other."""

    def __init__(self) -> None:
        self._state: Any = ffi.new("uint64_t[]", (lib.ef_build_sizeof() + 7) // 8)
        self._build: Any = ffi.cast("ef_build *", self._state)
        self._grow(_FIRST_WORK)

    def _grow(self, size: int) -> None:
        self._size = size
        self._work_memory = ffi.new("uint64_t[]", size // 8)
        self._out_memory = ffi.new("uint64_t[]", size // 8)
        self._work = ffi.cast("uint8_t *", self._work_memory)
        self._out = ffi.cast("uint8_t *", self._out_memory)

    def build(
        self,
        key: bytes,
        payloads: Iterable[bytes],
        entries: Iterable[BlobEntry],
        *,
        fragments: int = 1,
        fragment: int = -1,
        depths: Iterable[Depths] = (),
    ) -> tuple[bytes, dict[int, str]]:
        """Return the blob, and why entries (by place) were left out.

        `fragment` is -1 for a root, whose `depths` are those of its fragments. Raises BuildError.
        """
        payloads, entries, depths = list(payloads), list(entries), list(depths)
        while True:
            try:
                return self._try_build(key, payloads, entries, fragments, fragment, depths)
            except _NeedsMemory:
                self._grow(self._size * 2)

    def _try_build(
        self,
        key: bytes,
        payloads: list[bytes],
        entries: list[BlobEntry],
        fragments: int,
        fragment: int,
        depths: list[Depths],
    ) -> tuple[bytes, dict[int, str]]:
        build = self._build
        is_root = fragment < 0
        index = 0 if is_root else fragment
        _require(
            lib.ef_build_begin(
                build, self._work, self._size, key, len(key), fragments, index, is_root
            )
        )
        for prefix, exact, longest in depths:
            _require(lib.ef_build_depths(build, prefix, exact, longest))
        build_rule, build_entry, build_pred = (
            lib.ef_build_rule,
            lib.ef_build_entry,
            lib.ef_build_pred,
        )
        for payload in payloads:
            if build_rule(build, payload, len(payload)) < 0:
                raise _NeedsMemory
        refused: dict[int, str] = {}
        for place, (rule, kind, path, method, headers, query) in enumerate(entries):
            if headers or query:
                if too_long := _check_predicates(headers, query):
                    refused[place] = too_long
                    continue
            rc = build_entry(build, rule, kind, path, len(path), method, len(headers), len(query))
            if rc < 0:
                if rc not in _REFUSALS:
                    _require(rc)
                refused[place] = _REFUSALS[rc]
                continue
            for name, value, regex in (*headers, *query):
                _require(build_pred(build, name, len(name), value, len(value), regex))
        return self._finish(), refused

    def _finish(self) -> bytes:
        size = lib.ef_build_end(self._build, self._out, self._size)
        _require(size)
        return bytes(ffi.buffer(self._out, size))


def _check_predicates(headers: Sequence[Predicate], query: Sequence[Predicate]) -> str:
    """Why an entry's predicates do not fit into a blob, "" when they do: none may be half written."""
    if len(headers) > 255 or len(query) > 255:
        return _REFUSALS[lib.EF_T_LIMIT]
    for name, value, _ in (*headers, *query):
        if len(name) > 0xFFFF or len(value) > lib.EF_MAX_HEAD:
            return _REFUSALS[lib.EF_T_LIMIT]
    return ""


def _require(rc: int) -> None:
    if rc >= 0:
        return
    if rc == _NO_MEMORY:
        raise _NeedsMemory
    if rc == lib.EF_T_LIMIT:
        raise BuildError("too many paths that hash alike, or more than 65535 entries of one path")
    raise AssertionError(f"table builder: error {rc}")
