"""Annotation fields: what the annotations of one Ingress ask for, as a struct.

In: written by annotations.py and the modules that it reads with. Out: `Annotations` and its parts, with the defaults of ingress-nginx.
Must never: look up an object.
"""

from __future__ import annotations

import msgspec

from edgefast.api.edge.load_balancer import LoadBalancer
from edgefast.api.edge.response_rewrite import ResponseRewrite
from edgefast.translate.ingress.auth_url import AuthUrl
from edgefast.translate.ingress.backend_tls import BackendTls
from edgefast.translate.ingress.client_tls import ClientTls
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.error_annotations import ErrorPages
from edgefast.translate.ingress.limits import Limits
from edgefast.translate.ingress.snippet import Snippet

__all__ = ["Affinity", "Annotations", "BasicAuth", "Canary", "Cors", "Redirection"]


class Redirection(msgspec.Struct, frozen=True, kw_only=True):
    """temporal-redirect or permanent-redirect."""

    name: str  # of the annotation
    url: str
    code: int
    template: str = ""  # of redirect.location, for a URL with variables


class BasicAuth(msgspec.Struct, frozen=True, kw_only=True):
    """auth-type basic; `secret` is a name in the namespace of the Ingress."""

    secret: str
    is_map: bool  # auth-map: one key for each user


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """The canary-* annotations of an Ingress with canary: true."""

    weight: int = 0
    total: int = 100
    header: str = ""
    value: str = ""
    pattern: str = ""
    cookie: str = ""


class Cors(msgspec.Struct, frozen=True, kw_only=True):
    """The cors-* annotations of an Ingress with enable-cors: true."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]
    exposed: tuple[str, ...]
    credentials: bool
    max_age: int


class Affinity(msgspec.Struct, frozen=True, kw_only=True):
    """affinity: cookie."""

    name: str
    max_age: int  # seconds; 0: until the client's session ends
    path: str  # "" is the path of the location
    domain: str = ""
    same_site: str = ""  # "" or another word than those of RFC 6265bis: no attribute
    conditional: bool = False  # SameSite=None is left out for browsers that reject it
    secure: bool = False  # also without TLS
    change_on_failure: bool = False


class Annotations(msgspec.Struct, frozen=True, kw_only=True):
    """What the annotations of one Ingress ask for."""

    refused: str = ""  # the annotation for which the Ingress is not served, "" if it is
    closed: tuple[str, ...] = ()  # annotations for which its locations answer 503
    closes_host: bool = False  # all locations of its hosts, not only its own
    closes_no_auth: bool = False  # an auth-url that is not valid closes no-auth-locations, too
    rewrite: str = ""
    use_regex: bool = False
    ssl_redirect: bool = True
    force_ssl_redirect: bool = False
    preserve_trailing_slash: bool = False
    app_root: str = ""
    redirection: Redirection | None = None
    from_to_www: bool = False
    aliases: tuple[str, ...] = ()
    canary: Canary | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    own_lists: bool = False  # one of both lists is its own, not that of the ConfigMap
    basic: BasicAuth | None = None
    auth: AuthUrl | None = None  # of its own, or global-auth-url
    satisfy_any: bool = False
    cors: Cors | None = None
    body_size: int = 0  # bytes; 0: no limit
    read_timeout: int = 60  # seconds
    send_timeout: int = 60
    connect_timeout: int = 5
    retry_timeout: int = 0  # seconds of all tries together; 0: no limit
    tries: int = 3  # 0: no limit
    retry_codes: tuple[int, ...] = ()
    affinity: Affinity | None = None
    limits: Limits | None = None
    rate: int = 0  # limit-rate: KiB a second of a response; 0: no limit
    rate_after: int = 0  # limit-rate-after: first KiB of a response without a limit
    balancer: LoadBalancer | None = None  # load-balance, upstream-hash-by
    upstream_vhost: str = ""
    protocol: str = "HTTP"
    verifies_backend: bool = False  # proxy-ssl-verify
    backend_tls: BackendTls | None = None  # proxy-ssl-* with proxy-ssl-secret
    passthrough: bool = False  # ssl-passthrough
    client_tls: ClientTls | None = None  # auth-tls-*
    custom_headers: str = ""  # "namespace/name" or a name of a ConfigMap
    mirror: str = ""
    prefix_header: str = ""  # x-forwarded-prefix
    service_upstream: bool = False
    pages: ErrorPages = ErrorPages()
    snippet: Snippet = Snippet()
    responses: ResponseRewrite | None = None  # of backends: proxy-redirect-*, proxy-cookie-*
    port_in_redirects: bool = False  # redirects to HTTPS, and nginx' own, contain the port
    relative_redirects: bool = False  # a Location that begins with / stays a path
    notes: tuple[Note, ...] = ()
