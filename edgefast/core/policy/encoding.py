"""Encoding: chooses the encoding of an answer from Accept-Encoding, and makes encoders.

In: the value of Accept-Encoding, encodings in the order in which they are offered. Out: the chosen
one; an encoder of it.
Source: RFC 9110 12.5.3 (malformed parts of a field are ignored), RFC 1952, RFC 7932, RFC 8878.
Must never: choose one that its client refuses, load a library without need, or give one encoder to
two answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

__all__ = ["choose_encoding", "make_encoder"]

_LEVEL = 1
#: Bits of the windows: what gzip has at most, with its header; 64 KiB of the others, so that an encoder is small.
_GZIP_WINDOW, _GZIP_MEMORY = 16 + 15, 1
_WINDOW = 16
#: Contexts of zstd that are kept for the next answer; making one takes longer than encoding a small answer.
_IDLE_CONTEXTS = 8
_ALIASES = {"x-gzip": "gzip"}


@lru_cache(maxsize=256)
def choose_encoding(accepted: str, offered: tuple[str, ...]) -> str:
    """Return the encoding that a client likes best of those that are offered, the first of equals; "": it gets none."""
    weights: dict[str, float] = {}
    for part in accepted.split(","):
        name, *parameters = (one.strip(" \t") for one in part.split(";"))
        name = _ALIASES.get(name.lower(), name.lower())
        weight = _read_weight(parameters)
        if name and weight is not None:
            weights.setdefault(name, weight)
    others = weights.get("*", 0.0)
    found, best = "", 0.0
    for name in offered:
        weight = weights.get(name, others)
        if weight > best:
            found, best = name, weight
    plain = weights.get("identity")
    return found if plain is None or best >= plain else ""


def _read_weight(parameters: Sequence[str]) -> float | None:
    """Return a qvalue (RFC 9110 12.4.2), 1 where there is none; None: it is none."""
    for one in parameters:
        name, equals, value = one.partition("=")
        if name.strip(" \t").lower() != "q" or not equals:
            continue
        value = value.strip(" \t")
        whole, _, part = value.partition(".")
        if (
            whole not in ("0", "1")
            or len(part) > 3
            or (part and not (part.isascii() and part.isdigit()))
        ):
            return None
        weight = float(value)
        return weight if weight <= 1 else None
    return 1.0


class _Gzip:
    def __init__(self) -> None:
        from isal import isal_zlib

        self._made = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW, _GZIP_MEMORY)
        self._sync = isal_zlib.Z_SYNC_FLUSH
        self.put, self.finish = self._made.compress, self._made.flush

    def flush(self) -> bytes:
        return self._made.flush(self._sync)

    def close(self) -> None:
        """It is over, however."""


class _Brotli:
    def __init__(self) -> None:
        import brotli  # type: ignore[import-untyped]

        made = brotli.Compressor(quality=_LEVEL, lgwin=_WINDOW)
        self.put, self.flush, self.finish = made.process, made.flush, made.finish

    def close(self) -> None:
        """It is over, however."""


class _Zstd:
    _idle: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        import zstandard

        if self._idle:
            self._context = self._idle.pop()
        else:
            shape = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=_WINDOW)
            self._context = zstandard.ZstdCompressor(compression_params=shape)
        self._made = self._context.compressobj()
        self._block = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        self.put, self.finish = self._made.compress, self._made.flush

    def flush(self) -> bytes:
        return bytes(self._made.flush(self._block))

    def close(self) -> None:
        """Its context is the next one's, which begins it anew."""
        if len(self._idle) < _IDLE_CONTEXTS:
            self._idle.append(self._context)


_MAKERS: dict[str, type] = {"gzip": _Gzip, "br": _Brotli, "zstd": _Zstd}


def make_encoder(name: str) -> Any:
    """Return an encoder with put(data), flush() and finish(), each of which returns bytes, and close(), after which none is called."""
    return _MAKERS[name]()
