r"""Response rewrite: changes of Location, Refresh and Set-Cookie in responses of backends, a part of HTTPRouteFilter.

In: `gateway.edge.io/v1alpha1` documents. Out: Structs. The rules of nginx' proxy_redirect, proxy_cookie_domain and
proxy_cookie_path: of a list, the first rewrite that matches applies.
Must never: allow a character in a new value that ends the value or its header.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from edgefast.api.model.fields import Element, expects

#: Rewrites of one list, characters of an expression or text.
MAX_REWRITES = 8
MAX_REWRITE = 1024

#: Text that headers of this kind contain.
FROM = r"^[!-~]+\Z"
LOCATION_TO = r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@?#%\[\]]|\\[0-9]|\{(?:scheme|host)\})*\Z"
DOMAIN_TO = r"^(?:[-A-Za-z0-9._]|\\[0-9])*\Z"
PATH_TO = r"^(?:[-A-Za-z0-9/._~!$&'()*+,=:@%]|\\[0-9])*\Z"

_From = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_REWRITE,
        pattern=FROM,
        extra=expects("visible ASCII"),
        description="Text, or an RE2 expression.",
    ),
]
_PREFIX = "Prefix: text at the beginning of the value. RegularExpression: every match of the RE2 expression in the value."


class LocationRewrite(Element, frozen=True, kw_only=True):
    """A change of a URL in Location or Refresh."""

    type: Annotated[Literal["Prefix", "RegularExpression"], Meta(description=_PREFIX)] = "Prefix"
    from_: _From = field(name="from")
    to: Annotated[
        str,
        Meta(
            max_length=MAX_REWRITE,
            pattern=LOCATION_TO,
            extra=expects(r"characters of a URL, {scheme}, {host}, and \1 to \9 for groups"),
            description=r"Replacement. {scheme} and {host} are those of the request, \1 to \9 groups of the expression.",
        ),
    ]


class CookieDomainRewrite(Element, frozen=True, kw_only=True):
    """A change of the Domain of cookies."""

    type: Annotated[
        Literal["Exact", "RegularExpression"],
        Meta(
            description="Exact: the whole Domain without its first dot, in any case. RegularExpression: every match of the RE2 "
            "expression in it."
        ),
    ] = "Exact"
    from_: _From = field(name="from")
    to: Annotated[
        str,
        Meta(
            max_length=MAX_REWRITE,
            pattern=DOMAIN_TO,
            extra=expects(r"characters of a domain, and \1 to \9 for groups"),
            description=r'Replacement; \1 to \9 are groups of the expression. If the new Domain is "", the cookie has none.',
        ),
    ]


class CookiePathRewrite(Element, frozen=True, kw_only=True):
    """A change of the Path of cookies."""

    type: Annotated[Literal["Prefix", "RegularExpression"], Meta(description=_PREFIX)] = "Prefix"
    from_: _From = field(name="from")
    to: Annotated[
        str,
        Meta(
            max_length=MAX_REWRITE,
            pattern=PATH_TO,
            extra=expects(r"characters of a path, and \1 to \9 for groups"),
            description=r"Replacement; \1 to \9 are groups of the expression.",
        ),
    ]


class ResponseRewrite(Element, frozen=True, kw_only=True):
    """Changes of headers in responses of backends."""

    locations: Annotated[
        tuple[LocationRewrite, ...],
        Meta(
            max_length=MAX_REWRITES,
            description="Rewrites of Location and of the URL in Refresh. The first that matches applies.",
        ),
    ] = ()
    cookie_domains: Annotated[
        tuple[CookieDomainRewrite, ...],
        Meta(
            max_length=MAX_REWRITES,
            description="Rewrites of Domain in Set-Cookie. The first that matches applies.",
        ),
    ] = ()
    cookie_paths: Annotated[
        tuple[CookiePathRewrite, ...],
        Meta(
            max_length=MAX_REWRITES,
            description="Rewrites of Path in Set-Cookie. The first that matches applies.",
        ),
    ] = ()
