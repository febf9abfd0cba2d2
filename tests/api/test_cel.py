"""Rules of our own kinds say the same in Python and in CEL, evaluated by a CEL library."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import celpy
import msgspec
import pytest
from celpy import celtypes
from celpy.evaluation import CELEvalError

from api.policy_documents import POLICY_DOCUMENTS
from api.validation_cases import OWN, name_rule
from edgefast.api.config.edgegateway import (
    BackendAddresses,
    FleetCertificates,
    FleetRevocation,
    GatewayIngress,
    GatewayProvider,
    IngressPorts,
    LeaderElection,
    ProviderWatch,
)
from edgefast.api.config.edgegateway_rate_limit import (
    GatewayRateLimit,
    RateLimitBackend,
    RedisBackend,
    RedisSentinel,
)
from edgefast.api.edge.backend import (
    BackendEndpoint,
    BackendSpec,
    BackendTLS,
    FQDNEndpoint,
    IPEndpoint,
)
from edgefast.api.edge.edgeproxy import ProxyAccessLog
from edgefast.api.edge.edgeproxy_fleet import (
    FleetDeployment,
    FleetHPA,
    FleetPDB,
    FleetService,
    FleetShutdown,
)
from edgefast.api.edge.edgeproxy_protocols import ProxyClientAddress
from edgefast.api.edge.ratelimitfilter import (
    LocalRateLimitRule,
    RateLimitFilterSpec,
    RateLimitHeaderMatch,
    RateLimitSelector,
    RateLimitSourceCIDR,
)
from edgefast.api.model.shape import Shape, shape_of
from edgefast.api.schema.schema import plain_default
from edgefast.api.validation.rule import Rule

pytestmark = pytest.mark.pure

Document = dict[str, Any]

_A = {"fqdn": {"hostname": "a.example", "port": 1}}
_B = {"fqdn": {"hostname": "b.example", "port": 1}}
_IP = {"ip": {"address": "10.0.0.1", "port": 1}}
_URL = "redis.example:6379"
_HOUR = {"requests": 1, "unit": "Hour"}
_SENTINEL = {"master": "m", "addresses": ["a:26379"]}

DOCUMENTS: dict[type, list[Document]] = {
    FleetDeployment: [{}, {"replicas": 2}, {"kind": "DaemonSet"}, {"kind": "Deployment"}]
    + [{"kind": kind, "replicas": 2} for kind in ("DaemonSet", "Deployment")],
    FleetHPA: [{"maxReplicas": 2}]
    + [{"minReplicas": least, "maxReplicas": 2} for least in (1, 2, 3)],
    FleetPDB: [
        {},
        {"minAvailable": 1},
        {"maxUnavailable": "50%"},
        {"minAvailable": 1, "maxUnavailable": 1},
    ],
    FleetService: [{}]
    + [
        {**kind, **field}
        for kind in ({}, *({"type": one} for one in ("ClusterIP", "NodePort", "LoadBalancer")))
        for field in (
            {"loadBalancerClass": "example.com/lb"},
            {"loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"]},
            {"loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.0/33"]},
            {"externalTrafficPolicy": "Local"},
        )
    ],
    FleetShutdown: [
        {},
        {"drainTimeout": "1m"},
        {"minDrainDuration": "1m"},
        {"drainTimeout": "1m", "minDrainDuration": "60s"},
        {"drainTimeout": "1m", "minDrainDuration": "60s1ms"},
        {"drainTimeout": "1h", "minDrainDuration": "59m59s999ms"},
    ],
    ProxyClientAddress: [
        {},
        {"trustedCIDRs": []},
        {"trustedCIDRs": ["10.0.0.0/8", "fd00::/8"]},
        {"trustedCIDRs": ["10.0.0.0/8", "1.2.3/24"]},
        {"trustedHops": 1},
        {"trustedHops": 0, "trustedCIDRs": ["10.0.0.0/8"]},
        {"trustedHops": 1, "trustedCIDRs": ["10.0.0.0/8"]},
        {"proxyProtocolCIDRs": ["10.0.0.0/8", "fd00::/8"]},
        {"proxyProtocolCIDRs": ["10.0.0.0/8", "1.2.3/24"]},
    ],
    ProxyAccessLog: [
        {**kind, **field}
        for kind in ({}, {"format": "json"}, {"format": "text"})
        for field in (
            {},
            {"template": "x"},
            {"fields": ["status"]},
            {"json": {"a": "b"}},
            {"json": {"a": "b"}, "fields": ["status"]},
            {"json": {"a": "b"}, "template": "x"},
        )
    ],
    BackendEndpoint: [{}, _A, _IP, {"unix": {"path": "/run/a"}}, {**_A, **_IP}]
    + [{**_A, **_IP, "unix": {"path": "/run/a"}}],
    IPEndpoint: [
        {"address": text, "port": 1}
        for text in ("10.0.0.1", "::1", "10.0.0", "10.0.0.256", "localhost", "1::2::3")
    ],
    FQDNEndpoint: [
        {"hostname": text, "port": 1} for text in ("a.example", "1.2.3", "1.2.3.4", "1.2.3.4.5")
    ],
    BackendTLS: [{}, {"hostname": "a.example"}, {"hostname": "127.0.0.1"}],
    BackendSpec: [
        {"endpoints": ends, **tls, **protocol}
        for ends in ([_A], [_A, _A], [_A, _B], [_A, _IP], [_IP, _A], [_IP])
        for tls in ({}, {"tls": {}}, {"tls": {"hostname": "a.example"}})
        for protocol in ({}, {"protocol": "H2C"})
    ],
    RateLimitFilterSpec: [
        {"type": "Global"},
        {"type": "Global", "global": {"rules": [{"limit": _HOUR}]}},
        {"type": "Local"},
        {"type": "Local", "local": {"rules": [{"limit": _HOUR}]}},
        {"type": "Local", "global": {"rules": [{"limit": _HOUR}]}},
        {"type": "Global", "local": {"rules": [{"limit": _HOUR}]}},
    ],
    LocalRateLimitRule: [
        {**rate, **parallel, **burst}
        for rate in ({}, {"limit": _HOUR})
        for parallel in ({}, {"maxParallelRequests": 0})
        for burst in ({}, {"burst": 5})
    ],
    RateLimitHeaderMatch: [
        {"name": "a", **kind, **value}
        for kind in ({}, *({"type": one} for one in ("Exact", "RegularExpression", "Distinct")))
        for value in ({}, {"value": ""}, {"value": "x"}, {"value": "("}, {"value": "(?=a)"})
    ],
    RateLimitSelector: [
        {},
        {"headers": []},
        {"headers": [{"name": "a", "value": "x"}]},
        {"headers": [{"name": "a", "value": "x"}, {"name": "b", "value": "x"}]},
        {"headers": [{"name": "x-a", "value": "x"}, {"name": "X-A", "value": "y"}]},
        {"sourceCIDR": {"value": "10.0.0.0/8"}},
    ],
    RateLimitSourceCIDR: [
        {"value": text} for text in ("10.0.0.0/8", "10.1.2.3/8", "fd00::/8", "10.0.0.0/40", "1/2")
    ]
    + [
        {**kind, **value, **exempt}
        for kind in ({}, {"type": "Exact"}, {"type": "Distinct"})
        for value in ({}, {"value": "::/0"})
        for exempt in ({}, {"except": ["::1/128"]}, {"except": ["::1/128", "1/2"]})
    ],
    **POLICY_DOCUMENTS,
    BackendAddresses: [
        {},
        {"allowedCIDRs": ["127.0.0.0/8", "fd00::/8"]},
        {"allowedCIDRs": ["127.0.0.0/8", "1.2.3/24"]},
    ],
    GatewayProvider: [
        {"type": "Kubernetes"},
        {"type": "Kubernetes", "kubernetes": {}},
        {"type": "Kubernetes", "orchestrator": {}},
        {"type": "Kubernetes", "kubernetes": {}, "orchestrator": {}},
    ],
    IngressPorts: [{}, {"http": 443}, {"http": 443, "https": 443}, {"http": 8080, "https": 8443}],
    GatewayIngress: [{}]
    + [
        {"adoptClasses": [name]}
        for name in (
            "nginx",
            "k8s.io/ingress-nginx",
            "Nginx",
            "/nginx",
            "k8s.io/",
            "a b",
            "a.b/c~d",
        )
    ],
    ProviderWatch: [
        {"type": kind, **names, **selector}
        for kind in ("Namespaces", "NamespaceSelector")
        for names in ({}, {"namespaces": ["a"]})
        for selector in ({}, {"namespaceSelector": {"matchLabels": {"a": "b"}}})
    ],
    RateLimitBackend: [{"type": "Redis"}, {"type": "Redis", "redis": {"url": _URL}}],
    RedisBackend: [
        {},
        {"urlRef": {"name": "a"}},
        {"url": _URL, "urlRef": {"name": "a"}},
        {"url": _URL, "sentinel": _SENTINEL},
        {"sentinel": _SENTINEL},
        {"sentinel": _SENTINEL, "cluster": True},
        {"sentinel": _SENTINEL, "cluster": False},
    ]
    + [
        {"url": url, **cluster}
        for url in (
            _URL,
            "redis://a.example:1",
            "rediss://a.example:1/0",
            "redis://a.example:1/7",
            "redis://user:secret@a.example:1",
            "http://a.example:1",
            "a.example",
            "[::1]:6379",
        )
        for cluster in ({}, {"cluster": True})
    ],
    RedisSentinel: [
        {"master": "m", "addresses": addresses}
        for addresses in (["a:1"], ["a:1", "b.example:26379"], ["a:1", "redis://b:1"], ["b"])
    ],
    GatewayRateLimit: [{}] + [{"timeout": text} for text in ("0s", "1ms", "10s", "10s1ms", "1h")],
    FleetCertificates: [{}]
    + [{"lifetime": text} for text in ("59m", "1h", "72h", "2160h", "2160h1s")],
    FleetRevocation: [
        {"fleet": "edge-a", "issuedBefore": f"2026-{text}T00:00:00Z"} for text in ("11-29", "02-30")
    ],
    LeaderElection: [
        {},
        {"leaseDuration": "10s"},
        {"leaseDuration": "10s", "renewDeadline": "9s"},
        {"retryPeriod": "10s"},
        {"retryPeriod": "9s999ms"},
    ],
}


def _is_ip(text: str) -> celtypes.BoolType:
    return celtypes.BoolType(_parses(ipaddress.ip_address, text))


def _is_cidr(text: str) -> celtypes.BoolType:
    return celtypes.BoolType(_parses(lambda it: ipaddress.ip_network(it, strict=False), text))


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(str(text))
    except ValueError:
        return False
    return True


#: What API servers add to the language (Kubernetes CEL libraries: ip, cidr, strings).
_LIBRARY = {
    "isIP": _is_ip,
    "isCIDR": _is_cidr,
    "lowerAscii": lambda text: celtypes.StringType(str(text).lower()),
}


def _default(shape: Shape, document: Any) -> Any:
    """Fill in the schema's defaults, as an API server does before it asks the rules."""
    if shape.kind == "list" and shape.item is not None:
        return [_default(shape.item, one) for one in document]
    if shape.kind != "struct":
        return document
    full = {}
    for field in shape.fields:
        if field.name in document:
            full[field.name] = _default(field.shape, document[field.name])
        elif (default := plain_default(field)) is not None:
            full[field.name] = default
    return full


def _cel_allows(program: Any, document: Document) -> bool:
    try:
        return bool(program.evaluate({"self": celpy.json_to_cel(document)}))
    except CELEvalError:
        return False


@pytest.mark.parametrize("rule", OWN, ids=name_rule)
def test_a_rule_and_its_cel_agree(rule: Rule) -> None:
    assert rule.message
    environment = celpy.Environment()
    program = environment.program(environment.compile(rule.cel), functions=_LIBRARY)
    verdicts = set()
    for document in DOCUMENTS[rule.struct]:
        allowed = not list(rule.check(msgspec.convert(document, rule.struct)))
        asked = _default(shape_of(rule.struct), document)
        assert _cel_allows(program, asked) == allowed, document
        verdicts.add(allowed)
    assert verdicts == {True, False}, "the documents do not show what the rule is for"


def test_no_document_is_without_a_rule() -> None:
    assert set(DOCUMENTS) == {rule.struct for rule in OWN}
