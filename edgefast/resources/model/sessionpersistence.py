"""Session persistence: clients that stay with the endpoint that served them first.

In: rules of HTTPRoutes and GRPCRoutes, BackendTrafficPolicies, XBackends. Out: Structs. `cookie` and `header` are the fields of Gateway API
v1.7, `sessionName` and `cookieConfig` those of v1.6, whose XBackend has no sessions.
Source: Gateway API v1.6 and v1.7 `shared_types.go`, GEP-1619.
Must never: be how a client is known; whoever has a cookie may give it to others.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgefast.resources.model.fields import Duration, Element, HTTPHeaderName, expects

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
        description="Until the client's session ends, or for absoluteTimeout, which has to be set then."
    ),
]


class SessionCookie(Element, frozen=True, kw_only=True):
    """The cookie of a session."""

    name: Annotated[
        CookieName | None,
        Meta(description="Its name; absent: one that is the rule's alone."),
    ] = None
    path: Annotated[str, Meta(max_length=1024, description="Its Path.")] = "/"
    lifetime_type: LifetimeType = "Session"


class SessionHeader(Element, frozen=True, kw_only=True):
    """The header of a session."""

    name: Annotated[
        HTTPHeaderName, Meta(description="Its name, in answers and in requests after them.")
    ]


class CookieConfig(Element, frozen=True, kw_only=True):
    """What v1.6 says of the cookie."""

    lifetime_type: LifetimeType = "Session"


class Session(Element, frozen=True, kw_only=True):
    """Clients stay with the endpoint that served them first, as v1.7 says it."""

    type: Annotated[
        Literal["Cookie", "Header"],
        Meta(description="How clients say where they were."),
    ] = "Cookie"
    absolute_timeout: Annotated[
        Duration | None, Meta(description="How long a session lasts; absent: without end.")
    ] = None
    cookie: Annotated[SessionCookie | None, Meta(description="With type Cookie only.")] = None
    header: Annotated[SessionHeader | None, Meta(description="With type Header only.")] = None


class SessionPersistence(Session, frozen=True, kw_only=True):
    """The same, as v1.6 says it, too."""

    session_name: Annotated[
        Annotated[str, Meta(max_length=128)] | None,
        Meta(description="The name as v1.6 says it; in place of cookie and header."),
    ] = None
    cookie_config: Annotated[
        CookieConfig | None, Meta(description="As v1.6 says it; in place of cookie.")
    ] = None
