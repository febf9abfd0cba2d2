"""Access log: spec.accessLog of an EdgeProxy -> ir.AccessLog.

In: the EdgeProxy's own spec, for the checks, and the merged spec, for the translation.
Out: problems with their field paths, and ir.AccessLog. The default line replaces an invalid
template: a slip costs no request and no line.
Must never: know the value of an operator; the engine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import msgspec

from edgefast import ir
from edgefast.api.edge.edgeproxy import (
    EdgeProxySpec,
    LogField,
    ProxyAccessLog,
    ProxyLogFilter,
)
from edgefast.api.model.units import parse_duration
from edgefast.translate.edgeproxy.log_format_parser import parse_template
from edgefast.translate.report.report import Report

LOG_FORMATS: tuple[str, ...] = ("json", "text")
LOG_FIELDS: tuple[str, ...] = get_args(LogField)


def check_access_log(log: ProxyAccessLog, report: Report) -> None:
    """Report every mistake in the templates of a line."""
    for path, text in _templates(log):
        for one in parse_template(text)[1]:
            report.refuse(f"spec.accessLog.{path}", one.reason, one.message, one.hint)
    if log.template is not None and not log.template.strip():
        report.refuse("spec.accessLog.template", "Invalid", "a line must not be empty")


def _templates(log: ProxyAccessLog) -> Iterator[tuple[str, str]]:
    if log.template is not None:
        yield "template", log.template
    for name, text in sorted((log.json or {}).items()):
        yield f"json.{name}", text


def translate_access_log(spec: EdgeProxySpec) -> ir.AccessLog:
    """Translate the access log of a merged spec."""
    log = spec.access_log
    assert log is not None
    bounds = log.filter or ProxyLogFilter()
    plain = ir.AccessLog(
        off=bool(log.off),
        sampling=(100 if log.sampling is None else log.sampling) / 100,
        min_status=bounds.min_status or 0,
        min_duration=parse_duration(bounds.min_duration or "0s"),
    )
    parsed = {path: parse_template(text) for path, text in _templates(log)}
    if any(mistakes for _, mistakes in parsed.values()):
        return plain
    members = [
        ir.LogMember(name=name, pieces=parsed[f"json.{name}"][0]) for name in sorted(log.json or {})
    ]
    text = parsed["template"][0] if log.template is not None and log.template.strip() else ()
    # Of a newer CRD some may be unknown: the engine takes none of those.
    fields = tuple(one for one in log.fields or () if one in LOG_FIELDS)
    return msgspec.structs.replace(plain, fields=fields, members=tuple(members), text=text)
