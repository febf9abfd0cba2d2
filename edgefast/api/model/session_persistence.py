"""Session persistence: a client stays with the endpoint that served it first.

In: rules of HTTPRoutes and GRPCRoutes, BackendTrafficPolicies, XBackends. Out: Structs. `cookie`
and `header` are the fields of Gateway API v1.7, `sessionName` and `cookieConfig` those of v1.6; its
XBackend has no sessions.
Source: Gateway API v1.6 and v1.7 `shared_types.go`, GEP-1619.
Must never: authenticate a client; a client may give its cookie to others.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.api.model.fields import Duration, Element, HTTPHeaderName, expects

CookieName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_`|~]+\Z",
        extra=expects("the name of a cookie such as session"),
    ),
]
LifetimeType = Annotated[
    Literal["Session", "Permanent"],
    Meta(
        description="Session: until the client's session ends. Permanent: for absoluteTimeout, which "
        "is then required."
    ),
]


class SessionCookie(Element, frozen=True, kw_only=True):
    """The cookie of a session."""

    name: Annotated[
        CookieName | None,
        Meta(description="Name of the cookie. Absent: a name that is unique to the rule."),
    ] = None
    path: Annotated[str, Meta(max_length=1024, description="Its Path.")] = "/"
    lifetime_type: LifetimeType = "Session"


class SessionHeader(Element, frozen=True, kw_only=True):
    """The header of a session."""

    name: Annotated[
        HTTPHeaderName, Meta(description="Name of the header, in answers and in later requests.")
    ]


class CookieConfig(Element, frozen=True, kw_only=True):
    """What v1.6 says of the cookie."""

    lifetime_type: LifetimeType = "Session"


class Session(Element, frozen=True, kw_only=True):
    """Clients stay with the endpoint that served them first, as v1.7 says it."""

    type: Annotated[
        Literal["Cookie", "Header"],
        Meta(description="How clients send their session."),
    ] = "Cookie"
    absolute_timeout: Annotated[
        Duration | None, Meta(description="Longest lifetime of a session. Absent: no limit.")
    ] = None
    cookie: Annotated[
        SessionCookie | None, Meta(description="Settings of the cookie. Only with type Cookie.")
    ] = None
    header: Annotated[
        SessionHeader | None, Meta(description="Settings of the header. Only with type Header.")
    ] = None


class SessionPersistence(Session, frozen=True, kw_only=True):
    """The same, as v1.6 says it, too."""

    session_name: Annotated[
        Annotated[str, Meta(max_length=128)] | None,
        Meta(description="Name in the format of v1.6, instead of cookie and header."),
    ] = None
    cookie_config: Annotated[
        CookieConfig | None, Meta(description="Settings in the format of v1.6, instead of cookie.")
    ] = None
