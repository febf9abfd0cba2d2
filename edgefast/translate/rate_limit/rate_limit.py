"""Rate limit: the RateLimitFilters of an HTTPRoute rule -> ir.RateLimits, in order.

In: RateLimitFilters and the names of their counters. Out: every mistake in a filter, and flat
limits. A limit has all headers and ranges of all selectors, in one order whatever order they came
in; a request must satisfy all.
Source: spec sections 2 (RateLimitFilter) and 8; established limits of the kind (16 rules, 8
selectors, 16 headers).
Must never: translate a filter that has mistakes; traffic that was meant to be limited must not
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

import msgspec

from edgefast import ir
from edgefast.api.edge.ratelimitfilter import (
    LocalRateLimitRule,
    RateLimitFilter,
    RateLimitHeaderMatch,
    RateLimitRule,
    RateLimitSelector,
)
from edgefast.api.kinds import ref_of
from edgefast.api.model.regex import explain_regex
from edgefast.diagnostics.problem import did_you_mean, supported_text
from edgefast.netaddr import parse_network
from edgefast.translate.rate_limit.counter import digest_limit, name_counter
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import refuse_unserved

#: Seconds in each unit; windows begin at multiples of it in Unix time.
UNITS = {
    "Second": 1,
    "Minute": 60,
    "Hour": 3600,
    "Day": 86_400,
    "Week": 7 * 86_400,
    "Month": 30 * 86_400,
    "Year": 365 * 86_400,
}
MAX_LIMITS = 64  # of one HTTPRoute rule: each may cost every request a counter
MAX_TEXT = 128 * 1024  # bytes of all conditions of one HTTPRoute rule: it must fit into a table
_MAX_RULES = 16
_MAX_SELECTORS = 8
_MAX_HEADERS = 16
_MAX_VALUE = 1024
_MAX_REQUESTS = 2**32 - 1
_MAX_EXCEPTS = 256
_MAX_FILL = 365 * 86_400  # seconds until an empty token bucket is full
_TYPES = ("Global", "Local")
_ALGORITHMS = ("FixedWindow", "SlidingWindow")
_HEADER_TYPES = ("Distinct", "Exact", "RegularExpression")
_SOURCE_TYPES = ("Distinct", "Exact")


def translate_rate_limits(
    filters: Sequence[RateLimitFilter], route: str, rule: str, report: Report, path: str
) -> tuple[ir.RateLimit, ...]:
    """Translate sound filters of one HTTPRoute rule; `route` and `rule` are parts of counters' names.

    `path` is the field path of the list of filters.
    """
    limits: list[ir.RateLimit] = []
    shared: set[int] = set()  # places of limits that all rules with their filter count together
    for found in filters:
        called = f"{found.metadata.namespace}/{found.metadata.name}"
        for at, one in enumerate(_rules_of(found)):
            if isinstance(one, LocalRateLimitRule) and one.shared:
                shared.add(len(limits))
            limits.append(_translate(one, f"{called}#{at}"))
    if len(limits) > MAX_LIMITS:
        message = f"{len(limits)} rate limits, at most {MAX_LIMITS} for one rule"
        report.refuse(path, "TooMany", message, condition="UnsupportedValue")
        return ()
    size = sum(map(_measure, limits))
    if size > MAX_TEXT:
        message = f"{size} bytes of conditions in rate limits, at most {MAX_TEXT} for one rule"
        report.refuse(path, "TooLong", message, condition="UnsupportedValue")
        return ()
    seen: Counter[str] = Counter()
    named = []
    for at, limit in enumerate(limits):
        digest = digest_limit(limit)
        if at in shared:
            # The place in the filter tells its limits apart, whatever route they are used on.
            counter = name_counter("", f"f={limit.name}", digest)
        else:
            seen[digest] += 1
            nth = f"-{seen[digest]}" if seen[digest] > 1 else ""
            counter = name_counter(route, rule, digest + nth)
        named.append(msgspec.structs.replace(limit, counter=counter))
    return tuple(named)


def _rules_of(found: RateLimitFilter) -> tuple[RateLimitRule | LocalRateLimitRule, ...]:
    if found.spec.local is not None:
        return found.spec.local.rules
    return found.spec.global_.rules if found.spec.global_ is not None else ()


def _translate(rule: RateLimitRule | LocalRateLimitRule, name: str) -> ir.RateLimit:
    """Flatten the selectors of one limit; its counter is named later."""
    headers: set[tuple[str, str, bool]] = set()
    distinct: set[str] = set()
    sources: set[str] = set()
    excepts: set[str] = set()
    for selector in rule.client_selectors:
        for header in selector.headers:
            if header.type == "Distinct":
                distinct.add(header.name.lower())
            else:
                regex = header.type == "RegularExpression"
                headers.add((header.name.lower(), header.value or "", regex))
        if selector.source_cidr is not None:
            if selector.source_cidr.value is not None:
                sources.add(str(parse_network(selector.source_cidr.value)))
            excepts.update(str(parse_network(one)) for one in selector.source_cidr.except_)
    made = ir.RateLimit(
        name=name,
        counter="",
        requests=rule.limit.requests if rule.limit is not None else 0,
        unit=UNITS[rule.limit.unit] if rule.limit is not None else 0,
        headers=tuple(ir.ValueMatch(*one) for one in sorted(headers)),
        distinct_headers=tuple(sorted(distinct)),
        sources=tuple(sorted(sources)),
        distinct_source=any(
            one.source_cidr is not None and one.source_cidr.type == "Distinct"
            for one in rule.client_selectors
        ),
        shadow=rule.shadow,
        excepts=tuple(sorted(excepts)),
    )
    if isinstance(rule, RateLimitRule):
        return msgspec.structs.replace(made, sliding=rule.algorithm == "SlidingWindow")
    if rule.limit is None:
        most = rule.max_parallel_requests or 0
        return msgspec.structs.replace(
            made, kind="Parallel", requests=most, status=rule.status_code
        )
    burst = rule.limit.requests if rule.burst is None else rule.burst
    return msgspec.structs.replace(
        made, kind="Bucket", burst=max(burst, 1), status=rule.status_code
    )


def _measure(limit: ir.RateLimit) -> int:
    texts = [*limit.distinct_headers, *limit.sources, *limit.excepts]
    texts += [text for one in limit.headers for text in (one.name, one.value)]
    return sum(len(text.encode()) for text in texts)


def check_rate_limit(limits: RateLimitFilter) -> Report:
    """Report every mistake in a RateLimitFilter; an API server with other CRDs may have let it in."""
    report = Report(ref_of(limits))
    refuse_unserved(
        limits, report, "requests to rules with the filter get 500", reason="NotSupported"
    )
    _check_word(limits.spec.type, _TYPES, report, "spec.type")
    field = "local" if limits.spec.type == "Local" else "global"
    other = limits.spec.global_ if field == "local" else limits.spec.local
    if other is not None:
        wrong = "global" if field == "local" else "local"
        report.refuse(f"spec.{wrong}", "Forbidden", f"with type {limits.spec.type}")
        return report
    rules = _rules_of(limits)
    if not rules:
        report.refuse(f"spec.{field}.rules", "Required", "at least one rule")
    _check_count(len(rules), "rules", _MAX_RULES, report, f"spec.{field}.rules")
    for at, rule in enumerate(rules):
        path = f"spec.{field}.rules[{at}]"
        selectors = rule.client_selectors
        where = f"{path}.clientSelectors"
        _check_count(len(selectors), "selectors", _MAX_SELECTORS, report, where)
        for index, selector in enumerate(selectors):
            _check_selector(selector, report, f"{where}[{index}]")
        if not report.refused:
            _check_apart(selectors, report, where)
        if rule.limit is not None:
            _check_number(rule.limit.requests, 0, report, f"{path}.limit.requests")
            _check_word(rule.limit.unit, UNITS, report, f"{path}.limit.unit")
        if isinstance(rule, RateLimitRule):
            _check_word(rule.algorithm, _ALGORITHMS, report, f"{path}.algorithm")
        else:
            _check_local(rule, report, path)
    return report


def _check_number(
    number: int, least: int, report: Report, path: str, most: int = _MAX_REQUESTS
) -> None:
    if not least <= number <= most:
        report.refuse(path, "Invalid", f"{number} (expected {least} to {most})")


def _check_local(rule: LocalRateLimitRule, report: Report, path: str) -> None:
    """Check what a local limit has besides."""
    _check_number(rule.status_code, 400, report, f"{path}.statusCode", 599)
    if rule.max_parallel_requests is not None:
        _check_number(rule.max_parallel_requests, 0, report, f"{path}.maxParallelRequests")
    if (rule.limit is None) == (rule.max_parallel_requests is None):
        report.refuse(path, "Invalid", "exactly one of limit and maxParallelRequests must be set")
        return
    if rule.burst is None:
        return
    where = f"{path}.burst"
    if rule.limit is None:
        report.refuse(where, "Forbidden", "without limit")
        return
    _check_number(rule.burst, 1, report, where)
    requests, unit = rule.limit.requests, UNITS.get(rule.limit.unit, 1)
    if requests and rule.burst * unit > _MAX_FILL * requests:
        message = f"an empty bucket of {rule.burst} tokens needs {rule.burst * unit // requests} s to fill (at most {_MAX_FILL})"
        report.refuse(where, "Invalid", message)


def _check_word(word: str, words: Iterable[str], report: Report, path: str) -> None:
    if word not in words:
        report.refuse(path, "NotSupported", supported_text(word, words), did_you_mean(word, words))


def _check_count(count: int, what: str, most: int, report: Report, path: str) -> None:
    if count > most:
        report.refuse(path, "TooMany", f"{count} {what}, at most {most}")


def _check_selector(selector: RateLimitSelector, report: Report, path: str) -> None:
    source = selector.source_cidr
    if not selector.headers and source is None:
        report.refuse(path, "Required", "headers or sourceCIDR")
    _check_count(len(selector.headers), "headers", _MAX_HEADERS, report, f"{path}.headers")
    names: set[str] = set()
    for at, header in enumerate(selector.headers):
        where = f"{path}.headers[{at}]"
        _check_header(header, report, where)
        if header.name.lower() in names:
            report.refuse(f"{where}.name", "Duplicate", f'"{header.name}"')
        names.add(header.name.lower())
    if source is not None:
        _check_word(source.type, _SOURCE_TYPES, report, f"{path}.sourceCIDR.type")
        if source.value is not None:
            _check_range(source.value, report, f"{path}.sourceCIDR.value")
        elif source.type != "Distinct":
            report.refuse(f"{path}.sourceCIDR.value", "Required", f"with type {source.type}")
        where = f"{path}.sourceCIDR.except"
        _check_count(len(source.except_), "ranges", _MAX_EXCEPTS, report, where)
        for at, text in enumerate(source.except_):
            _check_range(text, report, f"{where}[{at}]")


def _check_range(text: str, report: Report, path: str) -> None:
    try:
        parse_network(text)
    except ValueError:
        message = f'"{text}" (expected a range of addresses such as 10.0.0.0/8)'
        report.refuse(path, "Invalid", message)


def _check_apart(selectors: Sequence[RateLimitSelector], report: Report, path: str) -> None:
    """Tell of ranges that no address is in together: all selectors of a rule hold, so it counts nobody."""
    found = [
        one.source_cidr.value
        for one in selectors
        if one.source_cidr is not None and one.source_cidr.value is not None
    ]
    networks = [parse_network(one) for one in found]
    for (one, first), (other, second) in combinations(zip(found, networks, strict=True), 2):
        apart = first.version != second.version or not first.overlaps(second)
        if apart:
            message = (
                f"{one} and {other} have no address in common, so the rule never counts a request"
            )
            report.warn(path, "Invalid", message, "write a rule for each")
            return


def _check_header(header: RateLimitHeaderMatch, report: Report, path: str) -> None:
    _check_word(header.type, _HEADER_TYPES, report, f"{path}.type")
    if header.type == "Distinct":
        if header.value is not None:
            report.refuse(f"{path}.value", "Forbidden", "with type Distinct")
    elif header.value is None:
        report.refuse(f"{path}.value", "Required", f"with type {header.type}")
    elif len(header.value) > _MAX_VALUE:
        message = f"{len(header.value)} characters (at most {_MAX_VALUE})"
        report.refuse(f"{path}.value", "TooLong", message)
    elif header.type == "RegularExpression":
        message = explain_regex(header.value, header.name)
        if message:
            report.refuse(f"{path}.value", "Invalid", message)
