"""Documents of each part of SecurityPolicy, BackendTrafficPolicy and HTTPRouteFilter that has rules (test_cel.py)."""

from __future__ import annotations

from typing import Any

from api.backend_documents import BACKEND_DOCUMENTS
from edgefast.api.edge.backendtrafficpolicy import (
    BackendTrafficPolicySpec,
    FaultAbort,
    FaultDelay,
    FaultInjection,
)
from edgefast.api.edge.credentials import ExtractFrom
from edgefast.api.edge.httproutefilter import (
    DirectResponse,
    DirectResponseBody,
    HTTPCookieMatch,
    HTTPRouteFilterSpec,
    RegexPathModifier,
    ReplaceRegexMatch,
)
from edgefast.api.edge.jwt import JWT, JWTExtractor, JWTProvider, LocalJWKS, RemoteJWKS
from edgefast.api.edge.oidc import OIDC, OIDCProvider
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.api.edge.response_override import ResponseOverride, StatusCodeMatch, StatusCodeRange
from edgefast.api.edge.response_rewrite import (
    CookieDomainRewrite,
    CookiePathRewrite,
    LocationRewrite,
)
from edgefast.api.edge.securitypolicy import (
    AuthorizationOperation,
    AuthorizationPrincipal,
    AuthorizationRule,
    ClientCertificateNames,
    ExtAuth,
    ExtAuthCache,
    ExtAuthGRPC,
    ExtAuthHTTP,
    OperationPath,
    SecurityPolicySpec,
)
from edgefast.api.model.reference import GATEWAY_GROUP

Document = dict[str, Any]

_TARGETS: list[Document] = [
    {"group": GATEWAY_GROUP, "kind": kind, "name": "a"}
    for kind in ("Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute")
]
_SPECS: list[Document] = [
    {"targetRefs": targets, **merge}
    for targets in (*([one] for one in _TARGETS), _TARGETS[:2], _TARGETS[1:3], _TARGETS[2:])
    for merge in ({}, *({"mergeType": one} for one in ("Inherit", "Replace", "Override")))
]
_BACKENDS: list[Document] = [
    {"group": "", "kind": "Service", "name": "a"},
    {"group": "gateway.edge.io", "kind": "Backend", "name": "a"},
]
_BELOW: list[Document] = [
    {"targetRefs": targets, "mergeType": merge}
    for targets in (
        *([one] for one in _BACKENDS),
        [_TARGETS[0], _BACKENDS[0]],
        [*_BACKENDS, _TARGETS[2]],
    )
    for merge in ("Inherit", "Replace", "Override")
]
#: Settings that only what is above a backend can say, and some that it can say itself.
_SETTINGS: list[Document] = [
    {"requestBuffer": {"limit": "1Ki"}},
    {"faultInjection": {"abort": {"httpStatus": 503}}},
    {"compressor": []},
    {"compression": [{"type": "Gzip"}]},
    {"responseOverride": []},
    {"timeout": {"http": {"requestTimeout": "1s"}}},
    {"timeout": {"http": {"streamIdleTimeout": "1s"}}},
    *({"timeout": one} for one in ({}, {"http": {}}, {"http": {"sendTimeout": "1s"}})),
    {"circuitBreaker": {"maxConnections": 1}, "loadBalancer": {"type": "Random"}},
]
_TEXT_REWRITES: list[Document] = [
    {"from": pattern, "to": to} for pattern in ("/", "(") for to in ("/", "", r"/\1")
] + [
    {"type": "RegularExpression", "from": pattern, "to": to}
    for pattern in ("/", "(", "a(?=b)", "(a)")
    for to in ("a", r"\1", "")
]
_COMPRESSORS: list[list[Document]] = [
    [{"type": "Gzip"}],
    [{"type": "Gzip"}, {"type": "Brotli"}],
    [{"type": "Gzip"}, {"type": "Gzip", "minContentLength": 100}],
]
_SERVICE = {"name": "auth", "port": 80}
_LOCAL: Document = {"localJWKS": {"inline": "{}"}}
_SERVICES: list[dict[str, Any]] = [
    *({}, {"backendRefs": []}, {"backendRef": _SERVICE}, {"backendRefs": [_SERVICE]}),
    {"backendRef": _SERVICE, "backendRefs": [_SERVICE]},
    {"backendRef": _SERVICE, "backendRefs": []},
]
_PATHS = (
    *(
        "/",
        "/a",
        "/a/",
        "/a/b",
        "/a.b/..c",
        "/%41",
        "/a%2e",
        "a",
        "*",
        "//",
        "/a//b",
        "/./a",
        "/.",
        "/a/..",
    ),
    *(
        "/a/../b",
        "/a%2Fb",
        "/a%2fb",
        "/a b",
        "/%4",
        "/a?b",
        "/\u00e4",
        "(",
        "/[a-z]+",
        "(?=a)",
        "/[^\u00e4]",
    ),
)

POLICY_DOCUMENTS: dict[type, list[Document]] = {
    PolicyTargetReference: [
        {"group": group, "kind": kind, "name": "a"}
        for group in (GATEWAY_GROUP, "", "gateway.edge.io")
        for kind in (
            *("Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TCPRoute", "Gatewy"),
            *("Service", "Backend"),
        )
    ],
    SecurityPolicySpec: [*_SPECS, *_BELOW],
    BackendTrafficPolicySpec: [
        *_SPECS,
        *_BELOW,
        *({**_BELOW[0], **one} for one in _SETTINGS),
        *({"targetRefs": [_TARGETS[2]], **one} for one in _SETTINGS),
        {"targetRefs": [_TARGETS[2], _BACKENDS[1]], **_SETTINGS[0]},
        *(
            {"targetRefs": _TARGETS[:1], **compressor, **compression}
            for compressor in ({}, *({"compressor": one} for one in _COMPRESSORS))
            for compression in ({}, *({"compression": one} for one in _COMPRESSORS))
        ),
    ],
    **BACKEND_DOCUMENTS,
    AuthorizationRule: [
        {"action": "Allow", **operation, **principal}
        for operation in ({}, {"operation": {"methods": ["GET"]}})
        for principal in ({}, {"principal": {"clientCIDRs": ["10.0.0.0/8"]}})
    ],
    AuthorizationOperation: [
        {**methods, **path}
        for methods in ({}, {"methods": []}, {"methods": ["GET", "PUT"]})
        for path in ({}, {"path": {"value": "/a"}})
    ],
    AuthorizationPrincipal: [
        {**ranges, **headers}
        for ranges in (
            *({}, {"clientCIDRs": []}, {"clientCIDRs": ["10.0.0.0/8", "fd00::/8"]}),
            {"clientCIDRs": ["10.0.0.0/8", "10.0.0.0/40"]},
        )
        for headers in (
            *({}, {"headers": []}, {"headers": [{"name": "a", "values": ["x"]}]}),
            {"headers": [{"name": name, "values": ["x"]} for name in ("x-a", "X-A")]},
            {"headers": [{"name": name, "values": ["x"]} for name in ("x-a", "x-b")]},
            {"headers": [{"name": name, "values": ["x"]} for name in ("x-a", "Host")]},
            {"headers": [{"name": "x-host", "values": ["x"]}]},
            *({"serverNames": []}, {"serverNames": ["a.test"]}),
            {"clientCertificate": {"uris": ["spiffe://a"]}},
        )
    ],
    ClientCertificateNames: [
        {**dns, **uris}
        for dns in ({}, {"dnsNames": []}, {"dnsNames": ["a.test"]})
        for uris in ({}, {"uris": []}, {"uris": ["spiffe://a"]})
    ],
    OperationPath: [
        {"value": value, **kind}
        for value in _PATHS
        for kind in ({}, *({"type": one} for one in ("Exact", "PathPrefix", "RegularExpression")))
    ],
    ExtAuth: [
        {**service, **timeout}
        for service in (
            *({}, {"grpc": {}}, {"http": {"backendRef": _SERVICE}}),
            {"http": {"backendRef": _SERVICE}, "grpc": {}},
        )
        for timeout in ({}, *({"timeout": one} for one in ("0s", "1ms", "60s", "1m", "60s1ms")))
    ],
    ExtAuthCache: [{"ttl": one} for one in ("0s", "0h0m", "1ms", "60s", "1m", "1m1ms", "1h")],
    ExtAuthGRPC: _SERVICES,
    ExtAuthHTTP: [
        {**services, **paths}
        for services in _SERVICES
        for paths in (
            *({}, {"path": "/a"}, {"pathOverride": "/a"}),
            {"path": "/a", "pathOverride": "/b"},
            {"pathTemplate": "/{method}"},
            {"pathOverride": "/b", "pathTemplate": "/{method}"},
        )
    ],
    HTTPRouteFilterSpec: [
        {**rewrite, **answer, **form, **response}
        for response in ({}, {"responseRewrite": {}})
        for form in ({}, {"redirect": {}})
        for rewrite in (
            {},
            {
                "urlRewrite": {
                    "path": {
                        "type": "ReplaceRegexMatch",
                        "replaceRegexMatch": {"pattern": "a", "substitution": "b"},
                    }
                }
            },
        )
        for answer in ({}, {"directResponse": {}})
    ],
    LocationRewrite: _TEXT_REWRITES,
    CookieDomainRewrite: [
        {"type": "Exact", **one, "to": one["to"].replace("/", "a")} for one in _TEXT_REWRITES
    ],
    CookiePathRewrite: _TEXT_REWRITES,
    RegexPathModifier: [
        {"type": "ReplaceRegexMatch"},
        {"type": "ReplaceRegexMatch", "replaceRegexMatch": {"pattern": "a", "substitution": "b"}},
    ],
    ExtractFrom: [
        {**headers, **cookies, **params}
        for headers in ({}, {"headers": []}, {"headers": ["x-key"]})
        for cookies in ({}, {"cookies": []}, {"cookies": ["key"]})
        for params in ({}, {"params": []}, {"params": ["key"]})
    ],
    FaultInjection: [{}, {"delay": {"fixedDelay": "1s"}}, {"abort": {"httpStatus": 503}}],
    FaultDelay: [{"fixedDelay": one} for one in ("0s", "1ms", "60s", "1m", "61s", "1h")],
    FaultAbort: [
        {**http, **grpc, **share}
        for http in ({}, {"httpStatus": 503})
        for grpc in ({}, {"grpcStatus": 14})
        for share in ({}, {"percentage": 0.5})
    ],
    ResponseOverride: [
        {"match": {"statusCodes": [{"value": 404}]}, **response, **redirect}
        for response in ({}, {"response": {}})
        for redirect in ({}, {"redirect": {"hostname": "a.example"}})
    ],
    StatusCodeMatch: [
        {**kind, **value, **span}
        for kind in ({}, {"type": "Value"}, {"type": "Range"})
        for value in ({}, {"value": 404})
        for span in ({}, {"range": {"start": 500, "end": 599}})
    ],
    StatusCodeRange: [{"start": 404, "end": end} for end in (403, 404, 405)],
    JWT: [
        {"providers": providers, **lenient}
        for providers in (
            [{"name": "a", **_LOCAL}],
            [{"name": "a", **_LOCAL}, {"name": "b", **_LOCAL}],
            [{"name": "a", **_LOCAL}, {"name": "a", **_LOCAL}],
        )
        for lenient in (
            *({}, {"optional": True}, {"failOpen": True}, {"optional": True, "failOpen": False}),
            {"optional": True, "failOpen": True},
        )
    ],
    OIDC: [
        {
            "provider": {"issuer": "https://a.example"},
            "clientSecret": {"name": "a"},
            **client,
            **more,
        }
        for client in (
            *({}, {"clientID": "a"}, {"clientIDRef": {"name": "a"}}),
            {"clientID": "a", "clientIDRef": {"name": "a"}},
        )
        for more in (
            {},
            *({"csrfTokenTTL": one} for one in ("9s", "10s", "1h", "2h")),
            *({"defaultRefreshTokenTTL": one} for one in ("59s", "1m", "8760h", "8761h")),
            {"forwardAccessToken": True},
            {"forwardAccessToken": True, "forwardIDToken": {"header": "Authorization"}},
            {"forwardAccessToken": True, "forwardIDToken": {"header": "x-id"}},
            {"forwardIDToken": {"header": "authorization"}},
        )
    ],
    OIDCProvider: [
        {"issuer": issuer, **backend}
        for issuer in ("https://a.example", "http://a.example")
        for backend in (
            *({}, {"backendRefs": []}, {"backendRef": _SERVICE}, {"backendRefs": [_SERVICE]}),
            {"backendRef": _SERVICE, "backendRefs": [_SERVICE]},
        )
    ],
    JWTProvider: [
        {"name": "a", **local, **remote}
        for local in ({}, _LOCAL)
        for remote in ({}, {"remoteJWKS": {"uri": "https://a.example/keys"}})
    ],
    LocalJWKS: [
        {**kind, **inline, **reference}
        for kind in ({}, {"type": "Inline"}, {"type": "ValueRef"})
        for inline in ({}, {"inline": "{}"})
        for reference in ({}, {"valueRef": {"group": "", "kind": "ConfigMap", "name": "a"}})
    ],
    RemoteJWKS: [
        {"uri": uri, **backend, **every}
        for uri in ("https://a.example/keys", "http://a.example/keys")
        for backend in (
            *({}, {"backendRefs": []}, {"backendRef": _SERVICE}, {"backendRefs": [_SERVICE]}),
            {"backendRef": _SERVICE, "backendRefs": [_SERVICE]},
        )
        for every in (
            *({}, {"cacheDuration": "10s"}, {"cacheDuration": "24h"}, {"cacheDuration": "9s"}),
            {"cacheDuration": "25h"},
        )
    ],
    JWTExtractor: [
        {**headers, **cookies, **params}
        for headers in ({}, {"headers": []}, {"headers": [{"name": "x-token"}]})
        for cookies in ({}, {"cookies": []}, {"cookies": ["token"]})
        for params in ({}, {"params": []}, {"params": ["token"]})
    ],
    ReplaceRegexMatch: [
        {"pattern": one, "substitution": "b"} for one in ("a", "^/(.*)$", "(?i)/a", "(", "(?=a)")
    ],
    DirectResponse: [
        {**status, **body}
        for status in ({}, *({"statusCode": one} for one in (200, 204, 205, 304, 404, 503)))
        for body in ({}, {"body": {"inline": ""}})
    ],
    DirectResponseBody: [
        {**kind, **inline, **reference}
        for kind in ({}, {"type": "Inline"}, {"type": "ValueRef"})
        for inline in (
            *({}, {"inline": ""}, {"inline": "x" * 65536}),
            *({"inline": "\u00e4" * 32768}, {"inline": "\u00e4" * 32769}),
        )
        for reference in (
            *({}, {"valueRef": {"group": "", "kind": "ConfigMap", "name": "a"}}),
            {"valueRef": {"group": "", "kind": "Secret", "name": "a"}},
            {"valueRef": {"group": "x.io", "kind": "ConfigMap", "name": "a"}},
        )
    ],
    HTTPCookieMatch: [
        {"name": "a", "value": value, **kind}
        for value in (
            "x",
            "a b",
            " a",
            "a ",
            " ",
            "a;b",
            "a\tb",
            "\u00e4",
            "a=b",
            "(",
            "(?=a)",
            "^a+$",
        )
        for kind in ({}, {"type": "Exact"}, {"type": "RegularExpression"})
    ],
}
