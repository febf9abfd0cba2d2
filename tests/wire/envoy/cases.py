"""The cases: a policy in our words, the same in Envoy's, and what is asked of both.

Our words are fields of SecurityPolicy, BackendTrafficPolicy and filters of a route; Envoy's are filters of HTTP and what the route says, as Envoy
Gateway would write them. Ports of `backend` and `auth` are the test's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any

from tests.auth.jwt import issuer
from wire.envoy.asking import Ask
from wire.envoy.envoy_proxy import Object, typed

TO_BACKEND: Object = {"route": {"cluster": "backend", "timeout": "15s"}}


@dataclass(frozen=True)
class Case:
    """One policy."""

    name: str
    asks: tuple[Ask, ...]
    security: Object = field(default_factory=dict)
    traffic: Object = field(default_factory=dict)
    route_filter: Object = field(default_factory=dict)  # spec of an HTTPRouteFilter
    objects: tuple[Object, ...] = ()
    filters: tuple[Object, ...] = ()
    route: Object = field(default_factory=lambda: TO_BACKEND)


def _rbac(action: str, *policies: Object) -> Object:
    rules = {"action": action, "policies": {f"p{at}": one for at, one in enumerate(policies)}}
    return typed("envoy.filters.http.rbac", "filters.http.rbac.v3.RBAC", rules=rules)


ANY: Object = {"any": True}

ADDRESSES = Case(
    "addresses",
    tuple(Ask(source=f"127.0.0.{last}") for last in (1, 2, 3, 4, 7, 8, 9))
    + (Ask("/a", (("x-forwarded-for", "127.0.0.9"),)), Ask("/a", (("x-forwarded-for", "127.0.0.1"),), source="127.0.0.9")),
    security={
        "authorization": {
            "defaultAction": "Deny",
            "rules": [{"action": "Allow", "principal": {"clientCIDRs": ["127.0.0.0/30", "127.0.0.8/32"]}}],
        }
    },
    filters=(
        _rbac(
            "ALLOW",
            {
                "permissions": [ANY],
                "principals": [
                    {"direct_remote_ip": {"address_prefix": "127.0.0.0", "prefix_len": 30}},
                    {"direct_remote_ip": {"address_prefix": "127.0.0.8", "prefix_len": 32}},
                ],
            },
        ),
    ),
)  # fmt: skip


def _header(name: str, value: str) -> Object:
    return {"header": {"name": name, "string_match": {"exact": value}}}


ROLES = Case(
    "roles",
    tuple(
        Ask(target, headers, method)
        for method in ("GET", "POST", "HEAD")
        for target in ("/", "/admin", "/admin/x", "/administer", "/ADMIN", "/a/../admin", "//admin", "/%61dmin", "/admin;x", "/admin/")
        for headers in ((), (("x-role", "ops"),))
    )
    + tuple(
        Ask("/", headers)
        for headers in (
            (("x-role", "OPS"),), (("X-Role", "admin"),), (("x-role", " ops "),), (("x-role", "ops,admin"),), (("x-role", "opsx"),),
            (("x-role", "ops"), ("x-role", "nobody")), (("x-role", "nobody"), ("x-role", "ops")), (("x_role", "ops"),), (("x-role", ""),),
        )
    ),
    security={
        "authorization": {
            "defaultAction": "Deny",
            "rules": [
                {"action": "Deny", "operation": {"methods": ["POST"], "path": {"type": "PathPrefix", "value": "/admin"}}},
                {"action": "Allow", "principal": {"headers": [{"name": "x-role", "values": ["ops", "admin"]}]}},
            ],
        }
    },
    filters=(
        _rbac(
            "DENY",
            {
                "permissions": [
                    {
                        "and_rules": {
                            "rules": [
                                _header(":method", "POST"),
                                {
                                    "uri_template": typed(
                                        "prefix",
                                        "path.match.uri_template.v3.UriTemplateMatchConfig",
                                        path_template="/admin/**",
                                    )
                                },
                            ]
                        }
                    },
                    {
                        "and_rules": {
                            "rules": [
                                _header(":method", "POST"),
                                {"url_path": {"path": {"exact": "/admin"}}},
                            ]
                        }
                    },
                ],
                "principals": [ANY],
            },
        ),
        _rbac("ALLOW", {"permissions": [ANY], "principals": [_header("x-role", "ops"), _header("x-role", "admin")]}),
    ),
)  # fmt: skip

# --- credentials ----------------------------------------------------------------------------------------------------

ISSUER = "https://issuer.test"
KEYS = json.dumps({"keys": [issuer.jwk("ES256", kid="one"), issuer.jwk("RS256", kid="two")]})


def _token(alg: str = "ES256", kid: str = "one", number: int = 0, **claims: Any) -> str:
    now = int(time.time())
    said = {"iss": ISSUER, "aud": "web", "sub": "jane", "iat": now, "exp": now + 3600, **claims}
    return issuer.token(alg, number, {"kid": kid}, **said).decode()


def _bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def _list_tokens() -> tuple[Ask, ...]:
    now = int(time.time())
    good = _token()
    head, payload, proof = good.split(".")
    none = issuer.b64(b'{"alg":"none","kid":"one"}').decode()
    tokens = {
        "good": good,
        "good RS256": _token("RS256", "two"),
        "of another key": _token(number=1),
        "of an unknown key": _token(kid="three"),
        "expired": _token(exp=now - 3600),
        "early": _token(nbf=now + 3600),
        "for others": _token(aud="other"),
        "for us and others": _token(aud=["other", "web"]),
        "for nobody": _token(aud=None),
        "of another issuer": _token(iss="https://other.test"),
        "of no issuer": _token(iss=None),
        "without end": _token(exp=None),
        "of another algorithm": _token("ES384", "one"),
        "without signature": f"{head}.{payload}.",
        "alg none": f"{none}.{payload}.",
        "of two parts": f"{head}.{payload}",
        "changed": f"{head}.{payload}x.{proof}",
        "badly signed": f"{head}.{payload}.{proof[:-4]}AAAA",
        "no JSON": "x.y.z",
        "empty": "",
        "short": "x",
    }
    asks = [Ask("/a?b=1", _bearer(one), name=name) for name, one in tokens.items()]
    asks += [
        Ask("/"),
        Ask("/", (("authorization", good),), name="without scheme"),
        Ask("/", (("authorization", f"Basic {good}"),), name="Basic"),
        Ask("/", (("authorization", f"bearer {good}"),), name="bearer"),
        Ask("/", (*_bearer(good), *_bearer(good)), name="twice"),
        Ask("/", (*_bearer(good), *_bearer("x.y.z")), name="two that differ"),
        Ask("/", (*_bearer(good), ("x-sub", "root")), name="good, and x-sub"),
        Ask("/", (*_bearer(good), ("X-SUB", "root")), name="good, and X-SUB"),
        Ask(f"/?access_token={good}", name="in the query"),
        Ask("/", _bearer(good), "POST", b"12345", name="good, with a body"),
        Ask("/", (), "POST", b"12345"),
    ]
    return tuple(asks)


_PROVIDER: Object = {
    "issuer": ISSUER,
    "audiences": ["web"],
    "local_jwks": {"inline_string": KEYS},
    "forward": True,
    "payload_in_metadata": "claims",
    "claim_to_headers": [{"header_name": "x-sub", "claim_name": "sub"}],
}
_JWT_FILTER = typed(
    "envoy.filters.http.jwt_authn",
    "filters.http.jwt_authn.v3.JwtAuthentication",
    providers={"login": _PROVIDER},
    rules=[{"match": {"prefix": "/"}, "requires": {"provider_name": "login"}}],
)
_OURS_JWT: Object = {
    "providers": [
        {
            "name": "login",
            "issuer": ISSUER,
            "audiences": ["web"],
            "localJWKS": {"type": "Inline", "inline": KEYS},
            "claimToHeaders": [{"header": "x-sub", "claim": "sub"}],
            "requireExpiration": False,  # as Envoy's require_expiration by default
        }
    ]
}

TOKENS = Case("tokens", _list_tokens(), security={"jwt": _OURS_JWT}, filters=(_JWT_FILTER,))


def _claim(name: str, match: Object) -> Object:
    path = [{"key": "claims"}, {"key": name}]
    return {"metadata": {"filter": "envoy.filters.http.jwt_authn", "path": path, "value": match}}


CLAIMS = Case(
    "claims",
    tuple(
        Ask("/", _bearer(_token(**claims)), name=f"claims {claims}")
        for claims in (
            {}, {"roles": ["staff"]}, {"roles": ["x", "staff"]}, {"roles": []}, {"roles": "staff"}, {"roles": ["Staff"]},
            {"plan": "gold"}, {"plan": "lead"}, {"plan": ["gold"]}, {"roles": {"staff": 1}}, {"roles": ["x"], "plan": "gold"}, {"roles": None},
        )
    )
    + (Ask("/"), Ask("/", _bearer("x.y.z"))),
    security={
        "jwt": _OURS_JWT,
        "authorization": {
            "defaultAction": "Deny",
            "rules": [
                {
                    "action": "Allow",
                    "principal": {"jwt": {"provider": "login", "claims": [{"name": "roles", "valueType": "StringArray", "values": ["staff"]}]}},
                },
                {"action": "Allow", "principal": {"jwt": {"provider": "login", "claims": [{"name": "plan", "values": ["gold", "silver"]}]}}},
            ],
        },
    },
    filters=(
        _JWT_FILTER,
        _rbac(
            "ALLOW",
            {
                "permissions": [ANY],
                "principals": [
                    _claim("roles", {"list_match": {"one_of": {"string_match": {"exact": "staff"}}}}),
                    _claim("plan", {"string_match": {"exact": "gold"}}),
                    _claim("plan", {"string_match": {"exact": "silver"}}),
                ],
            },
        ),
    ),
)  # fmt: skip


def _sha(password: str) -> str:
    return "{SHA}" + base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()


def _basic(pair: str, scheme: str = "Basic") -> tuple[tuple[str, str], ...]:
    return (("authorization", f"{scheme} {base64.b64encode(pair.encode()).decode()}"),)


_USERS = f"ann:{_sha('a:b')}\nbob:{_sha('b')}\n"
PASSWORDS = Case(
    "passwords",
    tuple(
        Ask("/", headers)
        for headers in (
            (), _basic("ann:a:b"), _basic("bob:b"), _basic("ann:b"), _basic("eve:b"), _basic("bob:"), _basic(":b"), _basic("bob"), _basic("BOB:b"),
            _basic("bob:b", "basic"), _basic("bob:b", "Bearer"), (("authorization", "Basic"),), (("authorization", "Basic !!"),),
            (("authorization", "Basic Ym9iOmI"),), (*_basic("bob:b"), ("x-user", "root")), (*_basic("bob:b"), *_basic("ann:b")),
        )
    ),
    security={"basicAuth": {"users": {"name": "users"}, "forwardUsernameHeader": "x-user"}},
    objects=(
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "users", "namespace": "default"},
            "stringData": {".htpasswd": _USERS},
        },
    ),
    filters=(
        typed(
            "envoy.filters.http.basic_auth",
            "filters.http.basic_auth.v3.BasicAuth",
            users={"inline_string": _USERS},
            forward_username_header="x-user",
        ),
    ),
)  # fmt: skip

KEYS_OF_CLIENTS = Case(
    "keys",
    tuple(
        Ask(target, headers)
        for target, headers in (
            ("/", ()), ("/", (("x-api-key", "ann-1"),)), ("/", (("X-API-Key", "bob-2"),)), ("/", (("x-api-key", "ANN-1"),)), ("/", (("x-api-key", ""),)),
            ("/", (("x-api-key", "ann-1"), ("x-client", "root"))), ("/?key=ann-1&b=2", ()), ("/?key=ann%2D1", ()), ("/?KEY=ann-1", ()), ("/?key=no", ()),
            ("/", (("cookie", "key=ann-1"),)), ("/", (("cookie", "a=b; key=bob-2; c=d"),)), ("/", (("cookie", "key=no"),)),
            ("/?key=ann-1", (("x-api-key", "no"),)), ("/?key=no", (("x-api-key", "ann-1"),)),
        )
    ),
    security={
        "apiKeyAuth": {
            "credentialRefs": [{"name": "partners"}],
            "extractFrom": [{"headers": ["x-api-key"]}, {"params": ["key"]}, {"cookies": ["key"]}],
            "forwardClientIDHeader": "x-client",
        }
    },
    objects=(
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "partners", "namespace": "default"},
            "stringData": {"ann": "ann-1", "bob": "bob-2"},
        },
    ),
    filters=(
        typed(
            "envoy.filters.http.api_key_auth",
            "filters.http.api_key_auth.v3.ApiKeyAuth",
            credentials=[{"key": "ann-1", "client": "ann"}, {"key": "bob-2", "client": "bob"}],
            key_sources=[{"header": "x-api-key"}, {"query": "key"}, {"cookie": "key"}],
            forwarding={"header": "x-client"},
        ),
    ),
)  # fmt: skip

# --- an authorisation service ---------------------------------------------------------------------------------------

_GOOD = ("x-token", "good")
SERVICE = Case(
    "service",
    tuple(
        Ask(target, headers, method, body)
        for target, headers, method, body in (
            ("/a?b", (_GOOD,), "GET", b""), ("/a?b", (_GOOD,), "POST", b"12345"), ("/a", (), "GET", b""), ("/a", (("x-token", "denied"),), "GET", b""),
            ("/a", (("x-token", "401"),), "GET", b""), ("/a", (("x-token", "redirect"),), "GET", b""), ("/a", (("x-token", "429"),), "GET", b""),
            ("/a", (("x-token", "500"),), "GET", b""), ("/a", (("x-token", "204"),), "GET", b""), ("/a", (_GOOD, ("x-user", "root")), "GET", b""),
            ("/a", (_GOOD, ("X-User", "root"), ("x-user", "toor")), "GET", b""), ("/a", (("x-token", "quiet"), ("x-user", "root")), "GET", b""),
            ("/a", (_GOOD,), "HEAD", b""), ("/a", (("x-token", "denied"),), "POST", b"x" * 5000),
        )
    ),
    security={
        "extAuth": {
            "http": {"backendRef": {"name": "auth", "port": 80}, "path": "/auth", "headersToBackend": ["x-user"]},
            "headersToExtAuth": ["x-token"],
        }
    },
    filters=(
        typed(
            "envoy.filters.http.ext_authz",
            "filters.http.ext_authz.v3.ExtAuthz",
            http_service={
                "server_uri": {"uri": "http://auth", "cluster": "auth", "timeout": "10s"},
                "path_prefix": "/auth",
                "authorization_response": {"allowed_upstream_headers": {"patterns": [{"exact": "x-user"}]}},
            },
            allowed_headers={"patterns": [{"exact": "x-token"}]},
        ),
    ),
)  # fmt: skip
