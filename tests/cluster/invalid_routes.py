"""Routes with a mistake, one for each field and mistake that an API server lets through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.installed import Manifest, route
from cluster.invalid import Case, Ground
from tests.support.manifest import manifest


def route_cases(ground: Ground) -> Iterator[Case]:
    """Yield every case."""
    yield from _paths(ground)
    yield from _expressions(ground)
    yield from _headers(ground)
    yield from _targets(ground)
    yield from _backends(ground)
    yield from _extensions(ground)
    yield from _parents(ground)


def _route(
    ground: Ground,
    name: str,
    reason: str = "UnsupportedValue",
    type_: str = "Accepted",
    *,
    answers: int = 500,
    status: str = "False",
    **rule: Any,
) -> Case:
    host = f"{name}.bad.example"
    return Case(
        name,
        (route(ground.namespace, name, ground.gateway, [host], **rule),),
        (route(ground.namespace, name, ground.gateway, [host]),),
        type_,
        status,
        reason,
        host,
        answers,
    )


_PATHS = {
    "dots": "/a/%2e%2e/b",
    "dot": "/a/%2E/b",
    "half-dots": "/a/%2e./b",
    "other-half": "/a/.%2e/b",
    "first-dots": "/%2e%2e/a",
    "last-dots": "/a/%2e%2e",
    "backslash": "/a%5cb",
    "big-backslash": "/a%5Cb",
}


def _paths(ground: Ground) -> Iterator[Case]:
    """A path that no request has when it is matched (RFC 3986 6.2.2): what can be told of it is closed, 500."""
    for kind in ("Exact", "PathPrefix"):
        for what, value in _PATHS.items():
            matches = [{"path": {"type": kind, "value": value}}]
            yield _route(ground, f"path-{kind.lower()}-{what}", answers=500, matches=matches)
    deep = "/a" * 64
    yield _route(ground, "path-deep", answers=0, matches=[{"path": {"value": deep}}])


_EXPRESSIONS = {
    "ahead": "/a(?=b)",
    "not-ahead": "/a(?!b)",
    "behind": "/a(?<=b)",
    "not-behind": "/a(?<!b)",
    "back-reference": r"/(a)\1",
    "open-group": "/a(",
    "closed-group": "/a)",
    "open-class": "/[a",
    "range": "/[z-a]",
    "too-often": "/a{1001}",
    "open-name": "/(?P<n>a",
    "last-backslash": "/a\\",
    "possessive": "/a++",
    "atomic": "/(?>a)",
    "no-class": "/[[:nope:]]",
}


def _expressions(ground: Ground) -> Iterator[Case]:
    """What is not RE2, in paths, headers and query parameters."""
    for what, value in _EXPRESSIONS.items():
        made = {"type": "RegularExpression", "value": value}
        named = {**made, "name": "x-a"}
        yield _route(ground, f"regex-path-{what}", answers=0, matches=[{"path": made}])
        yield _route(ground, f"regex-header-{what}", answers=0, matches=[{"headers": [named]}])
        yield _route(ground, f"regex-query-{what}", answers=0, matches=[{"queryParams": [named]}])


_OWN: tuple[str, ...] = (
    "Connection",
    "Content-Length",
    "Expect",
    "Host",
    "Keep-Alive",
    "Proxy-Connection",
)
_OWN += ("TE", "Trailer", "Transfer-Encoding", "Upgrade")


def _headers(ground: Ground) -> Iterator[Case]:
    """Headers that belong to the proxy, names that are none, and two actions for one name."""
    for side in ("request", "response"):
        kind = f"{side.capitalize()}HeaderModifier"
        for action in ("set", "add", "remove"):
            for header in _OWN:
                value = header if action == "remove" else {"name": header, "value": "x"}
                filters = [{"type": kind, f"{side}HeaderModifier": {action: [value]}}]
                name = f"header-{side}-{action}-{header.lower()}"
                yield _route(ground, name, filters=filters)
            # In a backendRef too, for a part of them.
            value = "Host" if action == "remove" else {"name": "Host", "value": "x"}
            filters = [{"type": kind, f"{side}HeaderModifier": {action: [value]}}]
            backend = {"name": "echo", "port": 80, "filters": filters}
            name = f"header-share-{side}-{action}"
            yield _share(ground, name, backend)
        modifiers: dict[str, Manifest] = {
            "not-a-name": {"remove": ["bad name"]},
            "set-and-add": {
                "set": [{"name": "x-a", "value": "1"}],
                "add": [{"name": "X-A", "value": "2"}],
            },
            "set-and-remove": {"set": [{"name": "x-a", "value": "1"}], "remove": ["x-a"]},
            "add-and-remove": {"add": [{"name": "x-a", "value": "1"}], "remove": ["X-a"]},
        }
        for what, made in modifiers.items():
            filters = [{"type": kind, f"{side}HeaderModifier": made}]
            yield _route(ground, f"header-{side}-{what}", filters=filters)


def _share(ground: Ground, name: str, backend: Manifest) -> Case:
    """One backendRef with a mistake in its filters: its share, which is all there is, is 500."""
    return _route(ground, name, type_="PartiallyInvalid", status="True", backendRefs=[backend])


def _targets(ground: Ground) -> Iterator[Case]:
    """Redirects, rewrites, and what is not available yet."""
    for what, value in _PATHS.items():
        for field in ("ReplaceFullPath", "ReplacePrefixMatch"):
            path = {"type": field, f"{field[0].lower()}{field[1:]}": value}
            rewrite = [{"type": "URLRewrite", "urlRewrite": {"path": path}}]
            short = "full" if field == "ReplaceFullPath" else "prefix"
            yield _route(ground, f"rewrite-{short}-{what}", filters=rewrite)
            if what in ("dots", "backslash"):
                redirect = [{"type": "RequestRedirect", "requestRedirect": {"path": path}}]
                yield _route(ground, f"redirect-{short}-{what}", filters=redirect, backendRefs=[])
    address = {"hostname": "10.1.2.3"}
    yield _route(ground, "rewrite-address", filters=[{"type": "URLRewrite", "urlRewrite": address}])
    redirect = [{"type": "RequestRedirect", "requestRedirect": address}]
    yield _route(ground, "redirect-address", filters=redirect, backendRefs=[])
    cors = {"allowOrigins": ["https://a.example:99999"]}
    yield _route(ground, "cors-port", filters=[{"type": "CORS", "cors": cors}])
    backend = {"name": "echo", "port": 80}
    for protocol, more in (
        ("HTTP", {"http": {"path": "/x/../y"}}),
        ("GRPC", {"grpc": {"allowedHeaders": ["a b"]}}),
    ):
        auth = {"protocol": protocol, "backendRef": backend, **more}
        filters = [{"type": "ExternalAuth", "externalAuth": auth}]
        yield _route(ground, f"auth-{protocol.lower()}", filters=filters)
    for kind in ("Cookie", "Header"):
        session = {"sessionName": "a b", "type": kind}
        yield _route(ground, f"session-{kind.lower()}", sessionPersistence=session)


def _backends(ground: Ground) -> Iterator[Case]:
    """References of rules and mirrors that lead nowhere; a mirror does no harm to the request itself."""
    references: dict[str, tuple[str, Manifest]] = {
        "no-service": ("BackendNotFound", {"name": "missing", "port": 80}),
        "no-port": ("PortNotFound", {"name": "echo", "port": 81}),
        "external-name": ("UnsupportedValue", {"name": "outside", "port": 80}),
        "udp": ("UnsupportedProtocol", {"name": "datagrams", "port": 53}),
        "grpc": ("UnsupportedProtocol", {"name": "speaks-grpc", "port": 80}),
        "tls-without-policy": ("UnsupportedProtocol", {"name": "speaks-tls", "port": 443}),
        "kind": ("InvalidKind", {"kind": "Servce", "name": "echo", "port": 80}),
        "group": (
            "InvalidKind",
            {"group": "example.com", "kind": "Lambda", "name": "x", "port": 1},
        ),
        "core": ("InvalidKind", {"group": "core", "kind": "Service", "name": "echo", "port": 80}),
        "foreign": ("RefNotPermitted", {"namespace": ground.other, "name": "echo", "port": 80}),
        "no-backend": ("BackendNotFound", _own("missing")),
        "foreign-backend": ("RefNotPermitted", {**_own("x"), "namespace": ground.other}),
        "backend-no-authority": ("InvalidBackendRef", _own("no-authority")),
        "backend-authority-kind": ("InvalidBackendRef", _own("authority-kind")),
        "backend-authority-broken": ("InvalidBackendRef", _own("authority-broken")),
        "backend-authority-empty": ("InvalidBackendRef", _own("authority-empty")),
        "backend-no-certificate": ("InvalidBackendRef", _own("no-certificate")),
        "backend-port": ("PortNotFound", {**_own("plain"), "port": 81}),
    }
    for what, (reason, reference) in references.items():
        yield _route(ground, f"backend-{what}", reason, "ResolvedRefs", backendRefs=[reference])
        mirror = [{"type": "RequestMirror", "requestMirror": {"backendRef": reference}}]
        yield _route(ground, f"mirror-{what}", reason, "ResolvedRefs", answers=200, filters=mirror)


def _own(name: str) -> Manifest:
    return {"group": "gateway.edge.io", "kind": "Backend", "name": name}


def _extensions(ground: Ground) -> Iterator[Case]:
    """Extensions that are not there, not known, or not possible; never skipped."""

    def extension(kind: str, group: str = "gateway.edge.io", name: str = "x") -> list[Manifest]:
        reference = {"group": group, "kind": kind, "name": name}
        return [{"type": "ExtensionRef", "extensionRef": reference}]

    unresolved = "ResolvedRefs"
    near, far = extension("RateLimitFiler"), extension("Magic", "example.com")
    yield _route(ground, "extension-kind", "InvalidKind", unresolved, filters=near)
    yield _route(ground, "extension-group", "InvalidKind", unresolved, filters=far)
    other = extension("RateLimitFilter", "example.com")
    yield _route(ground, "extension-other-group", "InvalidKind", unresolved, filters=other)
    missing = extension("RateLimitFilter", name="missing")
    yield _route(ground, "extension-missing", "BackendNotFound", unresolved, filters=missing)
    limit = {"limit": {"requests": 1, "unit": "Hour"}}
    filters = manifest(
        f"RateLimitFilter {ground.namespace}/no-store",
        {"type": "Global", "global": {"rules": [limit]}},
    )
    case = _route(
        ground, "extension-no-store", filters=extension("RateLimitFilter", name="no-store")
    )
    yield Case(**{**vars(case), "wrong": (filters, *case.wrong)})
    backend = {"name": "echo", "port": 80, "filters": extension("RateLimitFilter", name="no-store")}
    yield _share(ground, "extension-in-share", backend)


def _parents(ground: Ground) -> Iterator[Case]:
    """Parents that do not take the route: 404, as for any host that nobody has."""

    def parent(called: str, reason: str, hosts: list[str] | None = None, **reference: Any) -> Case:
        name, host = called, f"{called}.bad.example"
        wrong = route(ground.namespace, name, ground.gateway, hosts or [host])
        wrong["spec"]["parentRefs"][0].update(reference)
        right = route(ground.namespace, name, ground.gateway, [host])
        return Case(name, (wrong,), (right,), "Accepted", "False", reason, host, 404)

    yield parent("parent-section", "NoMatchingParent", sectionName="htpp")
    yield parent("parent-port", "NoMatchingParent", port=81)
    yield parent("parent-section-port", "NoMatchingParent", sectionName="http", port=8081)
    yield parent("parent-kinds", "NotAllowedByListeners", sectionName="closed")
    yield parent("parent-foreign", "NotAllowedByListeners", name="eg", namespace=ground.other)
    yield parent("parent-hostname", "NoMatchingListenerHostname", sectionName="narrow")
    yield parent("parent-address", "UnsupportedValue", ["10.1.2.3"])
