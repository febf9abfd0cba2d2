"""Table: ir.Fleet -> resources for proxies, and back for dump and explain.

In: the IR. Out: `Shards` (named, versioned bytes) and `Delta` (what changed). csrc/table*.c builds
and reads the blobs of virtual hosts, and csrc/route.c matches them: the code that the proxy runs.
Pure: same input, same bytes.
"""

from edgefast.table.blob import (
    BlobError,
    decode_blob,
    decode_rules,
    decode_virtual_host,
)
from edgefast.table.compile import compile_fleet
from edgefast.table.match import Hit, Matcher, Request, match
from edgefast.table.redacted import describe_blob
from edgefast.table.shards import Delta, Resource, Shards, diff

__all__ = [
    "BlobError",
    "Delta",
    "Hit",
    "Matcher",
    "Request",
    "Resource",
    "Shards",
    "compile_fleet",
    "decode_blob",
    "decode_rules",
    "decode_virtual_host",
    "describe_blob",
    "diff",
    "match",
]
