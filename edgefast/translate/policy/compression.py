"""Compression: BackendTrafficPolicy spec.compressor -> ir.Compression.

In: the fields. Out: encodings in order and the minimum length; a problem for every mistake.
Source: BackendTrafficPolicy, with the fields of Envoy Gateway.
Must never: enable an encoding that the policy does not list.
"""

from __future__ import annotations

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicySpec
from edgefast.api.model.units import parse_size
from edgefast.api.validation.traffic import check_spelling, check_types
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.translate.report.report import Report
from edgefast.translate.report.violation import refuse_violations

__all__ = ["translate_compression"]

_ENCODINGS: dict[str, ir.Encoding] = {"Gzip": "gzip", "Brotli": "br", "Zstd": "zstd"}
_MOST = 3
_LEAST, _LARGEST = 30, 1 << 30


def translate_compression(spec: BackendTrafficPolicySpec, report: Report) -> ir.Compression | None:
    """Translate it; None: nothing is said. Of what a report refuses nothing is to be used."""
    name = "compressor" if spec.compressor is not None else "compression"
    given = spec.compressor if spec.compressor is not None else spec.compression
    if given is None:
        return None
    refuse_violations((*check_spelling(spec), *check_types(spec)), report, "spec", "Invalid")
    if len(given) > _MOST:
        message = f"{len(given)} encodings, at most {_MOST}"
        report.refuse(f"spec.{name}", "TooMany", message, condition="Invalid")
    encodings: list[ir.Encoding] = []
    sizes: set[int] = set()
    for at, one in enumerate(given):
        where = f"spec.{name}[{at}]"
        if one.type not in _ENCODINGS:
            message, hint = supported_text(one.type, _ENCODINGS), did_you_mean(one.type, _ENCODINGS)
            report.refuse(f"{where}.type", "NotSupported", message, hint, condition="Invalid")
            continue
        encodings.append(_ENCODINGS[one.type])
        given_size = one.min_content_length
        if given_size is None:
            continue
        try:
            size = parse_size(given_size)
        except ValueError:
            size = 0
        if not _LEAST <= size <= _LARGEST:
            message = f"{given_size} (expected {_LEAST} to {_LARGEST})"
            report.refuse(f"{where}.minContentLength", "Invalid", message, condition="Invalid")
            continue
        sizes.add(size)
        if len(sizes) > 1:
            message = f"{given_size} (all encodings must have the same: {min(sizes)} is set before)"
            report.refuse(f"{where}.minContentLength", "Conflicted", message, condition="Invalid")
    made = ir.Compression(encodings=tuple(encodings))
    return ir.Compression(made.encodings, min(sizes)) if sizes else made
