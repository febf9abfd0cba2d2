"""PEM: reads every block of a certificate text, or refuses the text with the number of the broken block.

In: PEM bytes. Out: the certificates in their order, or an error text. Libraries skip a block with
damaged BEGIN or END lines, and a bundle then has fewer certificates than its text. This module
skips complete blocks of other kinds (keys, parameters).
Source: RFC 7468. Must never: quote the content of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cryptography import x509

__all__ = ["read_certificates"]

_KINDS = (b"CERTIFICATE", b"X509 CERTIFICATE")
_DASHES = b"-----"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # editors of Windows put it before the first line


def read_certificates(text: bytes) -> tuple[x509.Certificate, ...] | str:
    """Return the certificates, at least one, or what is wrong."""
    found: list[x509.Certificate] = []
    try:
        for block in _blocks(text):
            number = len(found) + 1
            try:
                found.append(x509.load_pem_x509_certificate(block))
                found[-1].public_key()
            except Exception:  # the library has errors of several families for foreign bytes
                return f"certificate {number} cannot be read"
    except _Broken as error:
        return f"certificate {len(found) + 1} cannot be read: {error}"
    return tuple(found) if found else "it has no certificate"


class _Mark(NamedTuple):
    """A BEGIN or END line, possibly with missing dashes."""

    whole: bool
    begins: bool
    kind: bytes


#: A longer line is no mark: the longest kinds of RFC 7468 have 25 characters.
_MARK_BYTES = 128


def _read_mark(line: bytes) -> _Mark | None:
    """Return the mark on a line, in time that grows with its length."""
    text = line.strip()
    if len(text) > _MARK_BYTES:
        return None
    inner = text.strip(b"-").strip()
    word, _, kind = inner.partition(b" ")
    kind = kind.strip()
    if word not in (b"BEGIN", b"END") or not kind:
        return None
    dashed = text.startswith(b"-") or text.endswith(b"-")
    if not dashed and b"CERTIFICATE" not in kind:
        return None
    whole = b"-" not in kind and text == b"".join((_DASHES, word, b" ", kind, _DASHES))
    return _Mark(whole, word == b"BEGIN", kind)


class _Broken(Exception):
    """The BEGIN and END lines are wrong; the text describes how."""


def _blocks(text: bytes) -> Iterator[bytes]:
    """Yield the blocks with certificates. Raises _Broken."""
    kind, lines = b"", [b""]
    # Files that were joined without a line end have END and BEGIN on one line.
    for number, line in enumerate(
        text.replace(_DASHES * 2, _DASHES + b"\n" + _DASHES).splitlines(), 1
    ):
        line = line.lstrip(_BYTE_ORDER_MARK)
        mark = _read_mark(line)
        if mark is None:
            if kind:
                lines.append(line.strip())
            continue
        where = f"line {number}"
        if not mark.whole:
            raise _Broken(f"{where} is not a whole BEGIN or END line")
        if mark.begins:
            if kind:
                raise _Broken(f"{where} begins a block before the previous one ends")
            kind, lines = mark.kind, [line.strip()]
            if kind.endswith(b"CERTIFICATE") and kind not in _KINDS:
                raise _Broken(
                    f"{where} begins a block that is not supported (supported: CERTIFICATE)"
                )
            continue
        if kind != mark.kind:
            raise _Broken(f"{where} ends a block without a BEGIN line")
        if kind in _KINDS:
            yield b"\n".join((*lines, line.strip(), b""))
        kind = b""
    if kind:
        raise _Broken("the text ends before its END line")
