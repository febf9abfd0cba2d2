"""Envoy's words for a scenario's policy: a filter of HTTP that is off for the plain route.

In: the name of a policy. Out: filters, routes, clusters. Must never give it less to do than the others have: the same ranges, key, service, level, endpoints.
"""

from copy import deepcopy
from typing import Any

from bench.credentials import AUDIENCE, ISSUER, make_key_set
from bench.login_provider import CALLBACK, CLIENT_ID, CLIENT_SECRET, HMAC_SECRET, get_issuer
from bench.policy_ranges import list_ranges

_TYPE = "type.googleapis.com/envoy.extensions."
_RBAC, _JWT = "envoy.filters.http.rbac", "envoy.filters.http.jwt_authn"
_AUTH, _COMPRESSOR = "envoy.filters.http.ext_authz", "envoy.filters.http.compressor"
_OAUTH = "envoy.filters.http.oauth2"
_SESSION = "envoy.filters.http.stateful_session"
_KEPT = "/get/kept"
_TOKENS = 100  # of its cache, which is off unless it is asked for
_LIBRARIES = {
    "gzip": (
        "gzip.compressor.v3.Gzip",
        {"compression_level": "COMPRESSION_LEVEL_1", "window_bits": 15},
    ),
    "br": ("brotli.compressor.v3.Brotli", {"quality": 1}),
    "zstd": ("zstd.compressor.v3.Zstd", {"compression_level": 1}),
}

Object = dict[str, Any]


def _typed(name: str, kind: str, **fields: Any) -> Object:
    return {"name": name, "typed_config": {"@type": _TYPE + kind, **fields}}


def list_filters(policy: str) -> list[Object]:
    """Before the router."""
    if policy == "cidr":
        ranges = [one.split("/") for one in list_ranges()]
        principals = [
            {"direct_remote_ip": {"address_prefix": address, "prefix_len": int(bits)}}
            for address, bits in ranges
        ]
        rule = {"permissions": [{"any": True}], "principals": principals}
        return [
            _typed(
                _RBAC,
                "filters.http.rbac.v3.RBAC",
                rules={"action": "ALLOW", "policies": {"p": rule}},
            )
        ]
    if policy == "jwt":
        provider = {
            "issuer": ISSUER,
            "audiences": [AUDIENCE],
            "local_jwks": {"inline_string": make_key_set()},
            "forward": True,
            "jwt_cache_config": {"jwt_cache_size": _TOKENS},
        }
        rule = {"match": {"prefix": _KEPT}, "requires": {"provider_name": "login"}}
        kind = "filters.http.jwt_authn.v3.JwtAuthentication"
        return [_typed(_JWT, kind, providers={"login": provider}, rules=[rule])]
    if policy == "extauth":
        uri = {"uri": "http://127.0.0.1", "cluster": "auth", "timeout": "10s"}
        service = {"server_uri": uri, "path_prefix": "/auth"}
        return [_typed(_AUTH, "filters.http.ext_authz.v3.ExtAuthz", http_service=service)]
    if policy == "session":
        kind = "http.stateful_session.header.v3.HeaderBasedSessionState"
        state = _typed("envoy.http.stateful_session.header", kind)
        state["typed_config"]["name"] = "x-session"
        kind = "filters.http.stateful_session.v3.StatefulSession"
        return [_typed(_SESSION, kind, session_state=state)]
    if policy == "oidc":
        config = {
            "token_endpoint": {"cluster": "b0", "uri": f"{get_issuer()}/token", "timeout": "3s"},
            "authorization_endpoint": f"{get_issuer()}/authorize",
            "redirect_uri": f"http://%REQ(:authority)%{CALLBACK}",
            "redirect_path_matcher": {"path": {"exact": CALLBACK}},
            "signout_path": {"path": {"exact": "/get/kept/logout"}},
            "credentials": {
                "client_id": CLIENT_ID,
                "token_secret": {"name": "token"},
                "hmac_secret": {"name": "hmac"},
            },
            "forward_bearer_token": True,
            "auth_scopes": ["openid"],
        }
        return [
            {**_typed(_OAUTH, "filters.http.oauth2.v3.OAuth2", config=config), "disabled": True}
        ]
    if policy in _LIBRARIES:
        kind, fields = _LIBRARIES[policy]
        library = _typed(policy, "compression." + kind, **fields)
        return [
            _typed(_COMPRESSOR, "filters.http.compressor.v3.Compressor", compressor_library=library)
        ]
    return []


def _off(policy: str) -> Object:
    """What a route says that the filter leaves alone."""
    if policy == "cidr":
        return {_RBAC: {"@type": _TYPE + "filters.http.rbac.v3.RBACPerRoute"}}
    if policy == "extauth":
        return {
            _AUTH: {"@type": _TYPE + "filters.http.ext_authz.v3.ExtAuthzPerRoute", "disabled": True}
        }
    if policy == "session":
        kind = "filters.http.stateful_session.v3.StatefulSessionPerRoute"
        return {_SESSION: {"@type": _TYPE + kind, "disabled": True}}
    if policy in _LIBRARIES:
        kind = "filters.http.compressor.v3.CompressorPerRoute"
        return {_COMPRESSOR: {"@type": _TYPE + kind, "disabled": True}}
    return {}  # tokens are asked for by path


def list_routes(policy: str, plain: list[Object]) -> list[Object]:
    """The route that the policy holds for, before those that it has no effect for."""
    kept = deepcopy(plain[0])
    kept["match"] = {"path_separated_prefix": _KEPT}
    if policy == "hash":
        kept["route"] = {
            "cluster": "hashed",
            "hash_policy": [{"header": {"header_name": "x-user-id"}}],
        }
    if policy == "oidc":  # as Envoy Gateway does: off, but for its routes
        kind = "type.googleapis.com/envoy.config.route.v3.FilterConfig"
        kept["typed_per_filter_config"] = {_OAUTH: {"@type": kind, "config": {}}}
    others = (
        [{**one, "typed_per_filter_config": off} for one in plain]
        if (off := _off(policy))
        else plain
    )
    return [kept, *others]


def list_secrets(policy: str) -> list[Object]:
    """Those that filters name."""
    given = {"token": CLIENT_SECRET, "hmac": HMAC_SECRET} if policy == "oidc" else {}
    return [
        {"name": name, "generic_secret": {"secret": {"inline_string": one}}}
        for name, one in given.items()
    ]


def list_clusters(policy: str, first: Object) -> list[Object]:
    """Beside the backends: the service that is asked, or the same endpoints chosen by a key."""
    if policy not in ("extauth", "hash"):
        return []
    more = deepcopy(first)
    more["name"] = more["load_assignment"]["cluster_name"] = (
        "auth" if policy == "extauth" else "hashed"
    )
    if policy == "hash":
        more["lb_policy"] = "MAGLEV"  # cheaper for a request than its ring
    return [more]
