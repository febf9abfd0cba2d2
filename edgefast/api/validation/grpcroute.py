"""GRPCRoute: rules about GRPCRoute that HTTPRoute does not have: names of services and methods.

In: parts of a GRPCRoute. Out: violations. httproute.py, filter.py, reference.py and hostname.py
have the rules of both kinds.
Source: CEL of the Gateway API v1.6 GRPCRoute CRD.
Must never: refuse what the API accepts and only this product lacks; that goes to the status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast.api.gateway.grpcroute import GRPCMethodMatch
from edgefast.api.model.regex import explain_regex
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

_SERVICE = re.compile(r"\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*", re.IGNORECASE | re.ASCII)
_METHOD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@BOOK.on(GRPCMethodMatch, "type", "service", "method")
def check_method(one: GRPCMethodMatch) -> Iterable[Violation]:
    """A service, a method or both; exact ones are names as protocol buffers have them."""
    if one.service is None and one.method is None:
        yield Violation(("service",), "Required", "service, method or both")
    if one.type != "Exact":
        return
    if message := check_service_name(one.service):
        yield Violation(("service",), "Invalid", f'"{one.service}" ({message})')
    if message := check_method_name(one.method):
        yield Violation(("method",), "Invalid", f'"{one.method}" ({message})')


def check_service_name(service: str | None) -> str:
    """Return what is wrong with the name of a service, "" when nothing is."""
    if service is None or _SERVICE.fullmatch(service):
        return ""
    return "expected the full name of a service, such as shop.v1.Cart"


def check_method_name(method: str | None) -> str:
    """Return what is wrong with the name of a method, "" when nothing is."""
    if method is None or _METHOD.fullmatch(method):
        return ""
    return "expected the name of a method, such as AddItem"


@BOOK.on(GRPCMethodMatch, "type", "service", "method", late=True)
def check_expressions(one: GRPCMethodMatch) -> Iterable[Violation]:
    """Expressions are RE2; in a route that is otherwise sound only their rule is refused."""
    if one.type != "RegularExpression":
        return
    for name, value in (("service", one.service), ("method", one.method)):
        if value and (message := explain_regex(value)):
            yield Violation((name,), "UnsupportedValue", message)
