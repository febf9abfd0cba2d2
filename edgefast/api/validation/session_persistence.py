"""Session persistence: rules about sessionPersistence, each with its CEL twin for the CRD.

In: parts of routes, BackendTrafficPolicies and XBackends. Out: violations.
Source: CEL of Gateway API v1.6 and v1.7 SessionPersistence. Fields of both releases together are
invalid: no release has both.
Must never: refuse what the API accepts and only this product lacks; that goes to the status.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.backendtrafficpolicy import TrafficSession
from edgefast.api.model.session_persistence import Session, SessionPersistence
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

_PERMANENT = (
    "(!has(self.{0}) || !has(self.{0}.lifetimeType) || self.{0}.lifetimeType != 'Permanent')"
)
_LASTS = f"has(self.absoluteTimeout) || ({_PERMANENT.format('cookie')} && {_PERMANENT.format('cookieConfig')})"
_READS_LASTS = ("cookie", "cookie_config", "absolute_timeout")
_OF_TYPE = (
    "(!has(self.cookie) && !has(self.cookieConfig) || !has(self.type) || self.type != 'Header') && "
    "(!has(self.header) || has(self.type) && self.type == 'Header')"
)
_ONE_RELEASE = "(!has(self.sessionName) && !has(self.cookieConfig)) || (!has(self.cookie) && !has(self.header))"


@BOOK.on(Session, "cookie", "absolute_timeout")
@BOOK.on(SessionPersistence, *_READS_LASTS)
@BOOK.on(
    TrafficSession,
    *_READS_LASTS,
    cel=_LASTS,
    message="absoluteTimeout must be set with lifetimeType Permanent",
)
def check_lifetime(one: Session) -> Iterable[Violation]:
    """A cookie that outlasts its client's session has to end."""
    older = one.cookie_config if isinstance(one, SessionPersistence) else None
    message = (part.lifetime_type for part in (one.cookie, older) if part is not None)
    if "Permanent" in message and one.absolute_timeout is None:
        return (Violation(("absoluteTimeout",), "Required", "with lifetimeType Permanent"),)
    return ()


@BOOK.on(Session, "type", "cookie", "header")
@BOOK.on(SessionPersistence, "type", "cookie", "header")
def check_type(one: Session) -> Iterable[Violation]:
    """What is said is what is served."""
    if one.cookie is not None and one.type == "Header":
        yield Violation(("cookie",), "Forbidden", "with type Header")
    if one.header is not None and one.type == "Cookie":
        yield Violation(("header",), "Forbidden", "with type Cookie")


@BOOK.on(
    TrafficSession,
    "type",
    "cookie",
    "cookie_config",
    "header",
    cel=_OF_TYPE,
    message="cookie and cookieConfig are allowed only with type Cookie, header only with type "
    "Header",
)
def check_own_type(one: TrafficSession) -> Iterable[Violation]:
    """The same; of v1.6, whose API takes it, too."""
    yield from check_type(one)
    if one.cookie_config is not None and one.type == "Header":
        yield Violation(("cookieConfig",), "Forbidden", "with type Header")


@BOOK.on(SessionPersistence, "cookie", "header", "session_name", "cookie_config")
@BOOK.on(
    TrafficSession,
    "cookie",
    "header",
    "session_name",
    "cookie_config",
    cel=_ONE_RELEASE,
    message="sessionName and cookieConfig are not allowed together with cookie and header",
)
def check_release(one: SessionPersistence) -> Iterable[Violation]:
    """A name is said once."""
    part = "cookie" if one.cookie is not None else "header" if one.header is not None else ""
    for message, name in ((one.session_name, "sessionName"), (one.cookie_config, "cookieConfig")):
        if part and message is not None:
            yield Violation((name,), "Forbidden", f"use {part}")
