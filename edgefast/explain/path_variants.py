"""Path variants: other paths that servers may read a path as; Deny rules also match these.

In: a path in normal form. Out: the same with all of its escapes decoded, and that without what
comes after ";" in its segments. The twin of core/policy/path_variants.pyx. Must never: be used for
an Allow rule.
"""

from __future__ import annotations

import re

from edgefast._csrc import ffi, lib

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_PARAMETERS = re.compile(rb"(?:;|%3[Bb])[^/]*")
_SLASHES = re.compile(rb"//+")


def read_path(path: bytes) -> tuple[bytes, ...] | None:
    """Return them; None: it cannot be told."""
    if b"%" not in path and b";" not in path:
        return (path,)
    out, size = ffi.new("uint8_t[]", len(path) + 1), ffi.new("size_t *")
    if lib.ef_path_unescape_slashes(path, len(path), out, len(path), size) < 0:
        return None
    whole = bytes(ffi.buffer(out, size[0]))
    return (_unescape(whole), _unescape(_PARAMETERS.sub(b"", whole)))


def unescape_path(path: str) -> bytes:
    """Return a rule's path with its escapes read."""
    return _unescape(path.encode())


def _unescape(path: bytes) -> bytes:
    return _SLASHES.sub(b"/", _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), path))
