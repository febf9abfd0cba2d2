"""Bandwidth: BackendTrafficPolicy spec.bandwidthLimit -> ir.Bandwidth.

In: the field. Out: bytes and a period; a problem for every mistake.
Must never: round a limit to no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgefast import ir
from edgefast.api.edge.backendtrafficpolicy import BandwidthLimit
from edgefast.api.model.units import parse_size
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.translate.report.report import Report

__all__ = ["translate_bandwidth"]

#: Milliseconds.
_PERIODS: Mapping[str, int] = {"Second": 1000, "Minute": 60_000, "Hour": 3_600_000}
_SCOPES: tuple[str, ...] = ("Response",)
_MOST = 1 << 40


def translate_bandwidth(
    given: BandwidthLimit | None, report: Report, path: str
) -> ir.Bandwidth | None:
    """Translate a limit; None: no limit. If the report refuses a field, the result must not be used."""
    if given is None:
        return None
    one = given.response
    if one.scope not in _SCOPES:
        _refuse_word(report, f"{path}.response.scope", one.scope, _SCOPES)
    if one.limit.unit not in _PERIODS:
        _refuse_word(report, f"{path}.response.limit.unit", one.limit.unit, _PERIODS)
    unlimited = 0
    if one.unlimited_bytes is not None:
        unlimited = _read(one.unlimited_bytes, 0, report, f"{path}.response.unlimitedBytes")
    return ir.Bandwidth(
        amount=_read(one.limit.value, 1, report, f"{path}.response.limit.value"),
        period=_PERIODS.get(one.limit.unit, 1000),
        unlimited=unlimited,
    )


def _read(given: int | str, least: int, report: Report, path: str) -> int:
    try:
        size = parse_size(given)
    except ValueError:
        size = -1
    if not least <= size <= _MOST:
        message = f"{given} (expected {least} to 1Ti)"
        report.refuse(path, "Invalid", message, condition="Invalid")
        return max(least, 1)
    return size


def _refuse_word(report: Report, path: str, word: str, known: Iterable[str]) -> None:
    message, hint = supported_text(word, known), did_you_mean(word, known)
    report.refuse(path, "NotSupported", message, hint, condition="Invalid")
