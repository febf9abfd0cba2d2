"""Blob: reads blobs back into rules and entries, for dump, explain and tests.

In: bytes of a "virtual_host" or "fragment" resource. Out: `Blob`, ir.VirtualHost, or plain values.
Every blob goes through ef_table_check first: bytes from a network or a disk are never trusted
before.
Must never: be used to serve requests; it makes an object of everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from edgefast import ir
from edgefast._csrc import ffi, lib

_decode_rule = msgspec.msgpack.Decoder(ir.Rule).decode
_RANK = {"exact": 0, "regex": 1, "prefix": 2}
_ERRORS = {
    lib.EF_T_SHORT: "it is cut short",
    lib.EF_T_MAGIC: "it is not a table",
    lib.EF_T_VERSION: "its format has another version",
    lib.EF_T_CHECKSUM: "its checksum is wrong",
    lib.EF_T_BOUNDS: "a part is out of range or refers to a missing one",
    lib.EF_T_LIMIT: "it exceeds a limit",
}


class BlobError(ValueError):
    """The bytes are no blob that can be read; the message says why."""


class Blob(msgspec.Struct, frozen=True):
    """What one blob holds. Entries are numbered as in the matcher's hits: regex paths first, then as they were given."""

    key: str  # the resource's name
    fragments: int  # 1: whole
    fragment: int | None  # None: a root
    rules: tuple[ir.Rule, ...]
    entries: tuple[ir.Entry, ...]


def decode_blob(data: bytes) -> Blob:
    """Return everything in a blob. Raises BlobError."""
    view = open_blob(data)
    blob = view[0]
    length = ffi.new("size_t *")
    key = lib.ef_blob_key(blob, length)
    return Blob(
        key=bytes(ffi.buffer(key, length[0])).decode(),
        fragments=lib.ef_blob_fragments(blob),
        fragment=None if blob.is_root else lib.ef_blob_fragment_index(blob),
        rules=_read_rules(blob),
        entries=tuple(_read_entries(blob)),
    )


def decode_rules(data: bytes) -> tuple[ir.Rule, ...]:
    """Return the rules in a blob, without what leads to them. Raises BlobError."""
    view = open_blob(data)
    return _read_rules(view[0])


def decode_virtual_host(root: bytes, fragments: Iterable[bytes] = ()) -> ir.VirtualHost:
    """Return the virtual host that a root and its fragments (in any order) were compiled from.

    A rule that several fragments hold comes once. Entries are in an order of precedence: for one path the original
    one; between paths that cannot match one request alike, any. Raises BlobError, also when the pieces do not belong
    together.
    """
    first = decode_blob(root)
    parts = [decode_blob(data) for data in fragments]
    wanted = range(first.fragments) if first.fragments > 1 else []
    if first.fragment is not None or {part.fragment for part in parts} != {*wanted}:
        raise BlobError(f"{first.key}: not a root with all of its {first.fragments} fragments")
    if any(
        part.fragments != first.fragments or not part.key.startswith(f"{first.key}#")
        for part in parts
    ):
        raise BlobError(f"{first.key}: fragments of another cut or virtual host")
    numbers: dict[ir.Rule, int] = {}
    entries = []
    for part in (first, *sorted(parts, key=lambda part: part.fragment or 0)):
        for entry in part.entries:
            number = numbers.setdefault(part.rules[entry.rule], len(numbers))
            entries.append(ir.Entry(match=entry.match, rule=number))
    listener, _, hostname = first.key.rpartition("/")
    return ir.VirtualHost(
        listener=listener, hostname=hostname, rules=tuple(numbers), entries=order_entries(entries)
    )


def order_entries(entries: Iterable[ir.Entry]) -> tuple[ir.Entry, ...]:
    """Return the entries of all blobs of a host in an order of precedence (see `decode_virtual_host`)."""
    return tuple(sorted(entries, key=lambda entry: _order(entry.match)))


def _order(match: ir.Match) -> tuple[int, int]:
    """Precedence by path; entries of one path keep their order (sorting is stable), and so do all regexes."""
    return _RANK[match.kind], 0 if match.kind == "regex" else -len(match.path.encode())


def open_blob(data: bytes) -> tuple[Any, Any]:
    """Check a blob; return it as a C pointer, and what must live as long as that. Raises BlobError."""
    keep = ffi.from_buffer(data)
    address = ffi.cast("const uint8_t *", keep)
    if int(ffi.cast("uintptr_t", address)) % 8 != 0:
        keep = ffi.new("uint64_t[]", (len(data) + 7) // 8)
        ffi.memmove(keep, data, len(data))
        address = ffi.cast("const uint8_t *", keep)
    rc = lib.ef_table_check(address, len(data))
    if rc != 0:
        raise BlobError(f"not a usable blob: {_ERRORS.get(rc, rc)}")
    return ffi.cast("const struct ef_blob *", address), keep


def _read_rules(blob: Any) -> tuple[ir.Rule, ...]:
    """All rules of a checked blob."""
    length = ffi.new("size_t *")
    rules = []
    for number in range(lib.ef_blob_rules(blob)):
        payload = lib.ef_blob_rule(blob, number, length)
        rules.append(_decode_rule(bytes(ffi.buffer(payload, length[0]))))
    return tuple(rules)


# --- entries --------------------------------------------------------------------------------------------------------


def _read_entries(blob: Any) -> list[ir.Entry]:
    """All entries of a checked blob by their number."""
    base = ffi.cast("const uint8_t *", blob)
    entries: list[ir.Entry | None] = [None] * blob.n_cands

    def take(cand: Any, kind: str, path: str) -> None:
        entries[cand.entry] = ir.Entry(
            match=_read_match(blob, base, cand, kind, path), rule=cand.rule
        )

    length = ffi.new("size_t *")
    cands = ffi.cast("const ef_cand *", base + blob.cands_off)
    for number in range(blob.n_regex):
        pattern = lib.ef_blob_regex(blob, number, length)
        take(cands[number], "regex", _text(pattern, length[0]))
    slots = ffi.cast("const ef_slot *", base + blob.slots_off)
    for place in range(blob.n_slots):
        slot = slots[place]
        count = slot.n_exact + slot.n_prefix
        if count == 0:
            continue
        path, cands = _read_slot(base, slot, count)
        for number in range(count):
            take(cands[number], "exact" if number < slot.n_exact else "prefix", path)
    if None in entries:
        raise BlobError("not a usable blob: two entries have one number")
    return [entry for entry in entries if entry is not None]


def _read_slot(base: Any, slot: Any, count: int) -> tuple[str, Any]:
    """The path of a slot and its candidates: inside the slot what fits, else in its tail (csrc/table_layout.h)."""
    size = slot.path_len
    tail = base + slot.tail * 8
    inside = size <= lib.EF_SLOT_PATH
    path = _text(slot.path if inside else tail, size)
    if count == 1:
        return path, ffi.addressof(slot, "only")
    return path, ffi.cast("const ef_cand *", tail + (0 if inside else (size + 7) // 8 * 8))


def _read_match(blob: Any, base: Any, cand: Any, kind: str, path: str) -> ir.Match:
    preds = ffi.cast("const ef_pred *", base + blob.preds_off) + cand.pred
    values = []
    for number in range(cand.n_headers + cand.n_query):
        pred = preds[number]
        values.append(
            ir.ValueMatch(
                name=_text(base + pred.name_off, pred.name_len),
                value=_text(base + pred.value_off, pred.value_len),
                regex=bool(pred.is_regex),
            )
        )
    return ir.Match(
        kind=kind,  # type: ignore[arg-type]  # one of the three literals
        path=path,
        method=ffi.string(lib.ef_method_name(cand.method)).decode() if cand.method else "",
        headers=tuple(values[: cand.n_headers]),
        query=tuple(values[cand.n_headers :]),
    )


def _text(address: Any, length: int) -> str:
    return bytes(ffi.buffer(address, length)).decode() if length else ""
