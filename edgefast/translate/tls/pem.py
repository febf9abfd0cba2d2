"""PEM texts of certificates: every block is read, or the text is refused by the number of the block that cannot be.

In: PEM bytes. Out: the certificates in their order, or what is wrong in words. Libraries pass over a block whose marks are damaged, and a
bundle then trusts or shows less than it says. Blocks of other kinds (keys, parameters) are passed over when they are whole.
Source: RFC 7468. Must never: quote what stands in a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

__all__ = ["read_certificates"]

#: A mark, or what was meant as one: dashes may be missing.
_MARK = re.compile(rb"[ \t]*(-*)[ \t]*(BEGIN|END)[ \t]+([A-Z0-9][A-Z0-9 ]*?)[ \t]*(-*)[ \t]*\r?")
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
            except (ValueError, UnsupportedAlgorithm):
                return f"certificate {number} cannot be read"
    except _Broken as error:
        return f"certificate {len(found) + 1} cannot be read: {error}"
    return tuple(found) if found else "it has no certificate"


class _Broken(Exception):
    """The text says what is wrong with the marks."""


def _blocks(text: bytes) -> Iterator[bytes]:
    """Give the blocks with certificates. Raises _Broken."""
    kind, lines = b"", [b""]
    for number, line in enumerate(text.splitlines(), 1):
        line = line.lstrip(_BYTE_ORDER_MARK)
        mark = _MARK.fullmatch(line)
        if mark is None or not (mark[1] or mark[4] or b"CERTIFICATE" in mark[3]):
            if kind:
                lines.append(line.strip())
            continue
        where = f"line {number}"
        if mark[1] != _DASHES or mark[4] != _DASHES:
            raise _Broken(f"{where} is not a whole BEGIN or END line")
        if mark[2] == b"BEGIN":
            if kind:
                raise _Broken(f"{where} begins a block before the last one has ended")
            kind, lines = mark[3], [line.strip()]
            if kind.endswith(b"CERTIFICATE") and kind not in _KINDS:
                raise _Broken(
                    f"{where} begins a block that is not supported (supported: CERTIFICATE)"
                )
            continue
        if kind != mark[3]:
            raise _Broken(f"{where} ends a block that has not begun")
        if kind in _KINDS:
            yield b"\n".join((*lines, line.strip(), b""))
        kind = b""
    if kind:
        raise _Broken("the text ends before its END line")
