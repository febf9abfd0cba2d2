"""Rate limits: RateLimitFilters are checked here in full, and not served yet.

In: a RateLimitFilter that a rule refers to. Out: every mistake in it. Until limits are enforced, a
rule that asks for one answers 500 and its status says so: traffic that was meant to be limited must
not pass unlimited.
Source: spec sections 2 (RateLimitFilter) and 8.
Must never: let such a rule through.
"""

from __future__ import annotations

import ipaddress

from edgefast.resources.kinds import ref_of
from edgefast.resources.ratelimitfilter import (
    RateLimitFilter,
    RateLimitHeaderMatch,
    RateLimitSelector,
)
from edgefast.translate.regex import check_regex
from edgefast.translate.report import Report

#: Ends the text of every rule's refusal until limits are enforced.
NOT_YET = "rate limits are not available yet; the rule answers 500"
_MAX_RULES = 16
_MAX_SELECTORS = 8
_MAX_HEADERS = 16


def check_rate_limit(limits: RateLimitFilter) -> Report:
    """Report every mistake in a RateLimitFilter."""
    report = Report(ref_of(limits))
    rules = limits.spec.global_.rules if limits.spec.global_ else ()
    if not rules:
        report.refuse("spec.global.rules", "Required", "at least one rule")
    if len(rules) > _MAX_RULES:
        report.refuse("spec.global.rules", "TooMany", f"{len(rules)} rules, at most {_MAX_RULES}")
    for at, rule in enumerate(rules):
        path = f"spec.global.rules[{at}]"
        if len(rule.client_selectors) > _MAX_SELECTORS:
            said = f"{len(rule.client_selectors)} selectors, at most {_MAX_SELECTORS}"
            report.refuse(f"{path}.clientSelectors", "TooMany", said)
        for index, selector in enumerate(rule.client_selectors):
            _check_selector(selector, report, f"{path}.clientSelectors[{index}]")
        if rule.limit.requests < 0:
            report.refuse(f"{path}.limit.requests", "Invalid", "must not be negative")
    return report


def _check_selector(selector: RateLimitSelector, report: Report, path: str) -> None:
    if len(selector.headers) > _MAX_HEADERS:
        said = f"{len(selector.headers)} headers, at most {_MAX_HEADERS}"
        report.refuse(f"{path}.headers", "TooMany", said)
    names: set[str] = set()
    for at, header in enumerate(selector.headers):
        where = f"{path}.headers[{at}]"
        _check_header(header, report, where)
        if header.name.lower() in names:
            report.refuse(f"{where}.name", "Duplicate", f'"{header.name}"')
        names.add(header.name.lower())
    if selector.source_cidr is not None:
        try:
            ipaddress.ip_network(selector.source_cidr.value, strict=False)
        except ValueError:
            said = f'"{selector.source_cidr.value}" is not an address range such as 10.0.0.0/8'
            report.refuse(f"{path}.sourceCIDR.value", "Invalid", said)


def _check_header(header: RateLimitHeaderMatch, report: Report, path: str) -> None:
    if header.type == "Distinct":
        if header.value is not None:
            report.refuse(f"{path}.value", "Forbidden", "with type Distinct")
    elif header.value is None:
        report.refuse(f"{path}.value", "Required", f"with type {header.type}")
    elif header.type == "RegularExpression":
        wrong = check_regex(header.value)
        if wrong:
            said = f'"{header.value}" is not an RE2 expression: {wrong}'
            report.refuse(f"{path}.value", "Invalid", said)
