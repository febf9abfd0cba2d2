"""Encodings for answers, as a BackendTrafficPolicy asks for them.

In: parts of BackendTrafficPolicy documents. Out: Structs. Their fields have the names that Envoy Gateway gives them.
Must never: be on by default: what an attacker can put beside a secret, encoding gives away (BREACH).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.resources.model.fields import Element, Size


class Encoder(Element, frozen=True, kw_only=True):
    """Settings of an encoding. It has none; the level is always 1."""


class Compressor(Element, frozen=True, kw_only=True):
    """An encoding for answers."""

    type: Annotated[
        Literal["Gzip", "Brotli", "Zstd"],
        Meta(description="Encoding: gzip, br or zstd at level 1."),
    ]
    min_content_length: Annotated[
        Size | None,
        Meta(
            description="Smallest answer in bytes that is encoded, if its length is known: 30 to 1Gi. "
            "Absent: 1024."
        ),
    ] = None
    gzip: Annotated[Encoder | None, Meta(description="No settings.")] = None
    brotli: Annotated[Encoder | None, Meta(description="No settings.")] = None
    zstd: Annotated[Encoder | None, Meta(description="No settings.")] = None
