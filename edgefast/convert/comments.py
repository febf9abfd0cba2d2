"""Comments: which Ingress and annotation each part of the output is from.

In: a snapshot, the made objects, the problems. Out: one line of text for each object and for each part of it, "" without one.
Must never: show the value of an annotation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from edgefast.api.edge.backend import Backend
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.httproutefilter import HTTPRouteFilter, HTTPRouteFilterSpec
from edgefast.api.gateway.httproute import HTTPRouteRule
from edgefast.api.model.origin import RuleOrigin
from edgefast.api.snapshot import Key, Snapshot
from edgefast.convert.pieces import Piece, filter_names
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.ingress.assemble import IngressObjects
from edgefast.translate.ingress.values import PREFIX, annotation_path

__all__ = ["Comments", "name_setting"]

#: Annotations that a BackendTrafficPolicy of an Ingress serves.
_TRAFFIC = (
    "proxy-body-size",
    "proxy-read-timeout",
    "proxy-send-timeout",
    "proxy-connect-timeout",
    "proxy-next-upstream-timeout",
    "load-balance",
    "upstream-hash-by",
    "affinity",
    "session-cookie-name",
    "session-cookie-path",
    "session-cookie-max-age",
    "session-cookie-expires",
    "session-cookie-domain",
    "session-cookie-samesite",
    "session-cookie-conditional-samesite-none",
    "session-cookie-secure",
    "session-cookie-change-on-failure",
    "custom-http-errors",
    "default-backend",
    "disable-proxy-intercept-errors",
    "limit-rate",
    "limit-rate-after",
)
#: Annotations that a SecurityPolicy serves.
_ACCESS = (
    "allowlist-source-range",
    "whitelist-source-range",
    "denylist-source-range",
    "auth-type",
    "auth-secret",
    "auth-secret-type",
    "auth-url",
    "auth-signin",
    "satisfy",
)
#: Annotations that a RateLimitFilter serves.
_LIMITS = (
    "limit-rps",
    "limit-rpm",
    "limit-connections",
    "limit-burst-multiplier",
    "limit-allowlist",
    "limit-whitelist",
)
_SNIPPET = annotation_path("configuration-snippet")
_CANARIES = ("canary-by-header", "canary-by-cookie", "canary-weight")
#: Fields of a rule's filters, and the annotation or setting that they serve.
_FILTERS = (
    ("cors", "enable-cors"),
    ("request_mirror", "mirror-target"),
)


def name_setting(path: str) -> str:
    """Return a field path, or the name of an annotation or key without prefix."""
    inside = path.partition("[")[2].removesuffix("]")
    if path.startswith("metadata.annotations["):
        return inside.removeprefix(PREFIX)
    return inside if path.startswith("data[") else path


class Comments:
    """Comments of one conversion."""

    def __init__(
        self, snapshot: Snapshot, made: IngressObjects, problems: Iterable[Problem]
    ) -> None:
        self._snapshot = snapshot
        self._made = made
        self._errors = {(one.object, one.path) for one in problems if one.severity == "error"}
        self._canaries = dict(_find_canaries(snapshot))

    def of_route(self, piece: Piece) -> str:
        """Return the comment of a route."""
        hosts = ", ".join(piece.hostnames) or "all other hosts"
        scheme = "over HTTPS" if piece.is_encrypted else "over HTTP"
        found = f"{piece.ingress}: {hosts} {scheme}"
        return f"{found}; rule-order is the order of ingress-nginx" if piece.ordered else found

    def of_rules(self, piece: Piece) -> dict[str, str]:
        """Return the comments of rules and their filters, by field path."""
        found: dict[str, str] = {}
        for at, (rule, origin) in enumerate(piece.rules):
            found[f"spec.rules[{at}]"] = self._of_rule(piece, rule, origin)
            for index, one in enumerate(rule.filters):
                about = next((name for field, name in _FILTERS if getattr(one, field)), "")
                if one.url_rewrite is not None:
                    parts = (one.url_rewrite.hostname, one.url_rewrite.path)
                    names = ("upstream-vhost", "rewrite-target")
                    about = ", ".join(
                        name for name, part in zip(names, parts, strict=True) if part is not None
                    )
                if about:
                    found[f"spec.rules[{at}].filters[{index}]"] = about
            services = [(one.namespace or piece.namespace, one.name) for one in rule.backend_refs]
            canary = next((self._canaries[key] for key in services if key in self._canaries), None)
            if canary is not None:
                found[f"spec.rules[{at}]"] += f"; {canary}"
            if rule.retry is not None and self._has(piece.ingress, ("proxy-next-upstream",)):
                found[f"spec.rules[{at}].retry"] = "proxy-next-upstream"
        return found

    def _of_rule(self, piece: Piece, rule: HTTPRouteRule, origin: RuleOrigin) -> str:
        about = self._of_origin(origin.path)
        filters: Mapping[Key, HTTPRouteFilter] = self._made.tables.get("http_route_filters", {})
        specs = [
            filters[key].spec
            for name in filter_names(rule)
            if (key := (piece.namespace, name)) in filters
        ]
        statuses = [one.direct_response.status_code for one in specs if one.direct_response]
        statuses = [
            one for one in statuses if not self._is_of_snippet(one, piece.ingress, origin.path)
        ]
        if any(one >= 500 for one in statuses):
            return f"not served: {about}"
        return f"default backend: {about}" if 404 in statuses else about

    def _is_of_snippet(self, status: int, ingress: ObjectRef, path: str) -> bool:
        """Tell whether a snippet has an answer; one that is wrong gives 503 to its locations."""
        return path == _SNIPPET and (status < 500 or (ingress, path) not in self._errors)

    def _of_origin(self, path: str) -> str:
        setting = name_setting(path)
        if path == "spec.tls":
            return "ssl-redirect: spec.tls"
        if path.startswith("metadata.annotations"):
            return f"annotation {setting}" if setting != path else "annotations"
        return setting

    def of_listeners(self, origins: Iterable[RuleOrigin]) -> dict[str, str]:
        """Return the comments of the listeners of a Gateway, by field path."""
        return {
            f"spec.listeners[{at}]": f"{one.ingress} {one.path}"
            for at, one in enumerate(origins)
            if one.ingress is not None
        }

    def of_proxy(self, proxy: EdgeProxy) -> str:
        """Return the comment of the EdgeProxy."""
        parts = []
        if proxy.spec.merge_gateways:
            parts.append("the Gateways share their proxies and address")
        if proxy.spec.client_address is not None:
            parts.append("ConfigMap use-forwarded-headers, proxy-real-ip-cidr")
        if proxy.spec.headers is not None:
            parts.append("headers that ingress-nginx sends to backends")
        return "; ".join(parts) or "settings of ingress-nginx for all requests"

    def of_defaults(self) -> str:
        """Return the comment of the policy of all routes."""
        return "defaults of ingress-nginx and its ConfigMap for all Ingresses: proxy-body-size, proxy-read-timeout, proxy-send-timeout"

    def of_policy(self, ingress: ObjectRef, table: str) -> str:
        """Return the comment of a policy of an Ingress."""
        wanted = _ACCESS if table == "security_policies" else _TRAFFIC
        found = self._has(ingress, wanted) or self._has(ingress, ("configuration-snippet",))
        where = f": {', '.join(found)}" if found else ": ConfigMap of ingress-nginx"
        return f"{ingress}{where}"

    def of_filter(self, spec: HTTPRouteFilterSpec, users: Collection[tuple[ObjectRef, str]]) -> str:
        """Return the comment of a filter; `users`: Ingress and field path of each rule that names it."""
        if spec.url_rewrite is not None:
            about = "rewrite-target"
        elif spec.direct_response is not None:
            status = spec.direct_response.status_code
            found = (self._name_answer(status, ingress, path) for ingress, path in users)
            about = ", ".join(dict.fromkeys(found))
        elif spec.redirect is not None:
            about = "form of the Location of ingress-nginx"
        elif spec.backend_protocol is not None:
            about = "backend-protocol"
        elif spec.response_rewrite is not None:
            about = "proxy-redirect-*, proxy-cookie-*"
        else:
            about = "canary-by-cookie"
        names = ", ".join(dict.fromkeys(f"{one.namespace}/{one.name}" for one, _ in users))
        return f"{about}: Ingress {names}"

    def _name_answer(self, status: int, ingress: ObjectRef, path: str) -> str:
        if self._is_of_snippet(status, ingress, path):
            return "configuration-snippet"
        known = {204: "enable-cors: answer to a preflight request", 404: "default backend"}
        return known.get(status, "redirect" if status < 400 else "not served")

    def of_limits(self, ingress: ObjectRef) -> str:
        """Return the comment of the RateLimitFilter of an Ingress."""
        return f"{ingress}: {', '.join(self._has(ingress, _LIMITS))}"

    def of_backend(self, backend: Backend) -> str:
        """Return the comment of a Backend."""
        name = backend.metadata.name
        if name.startswith("mirror."):
            return "mirror-target"
        if name.startswith("auth."):
            return "auth-url"
        return f"Service {backend.metadata.namespace}/{name.partition('.Ingress')[0]}"

    def of_passthrough(self, ingress: ObjectRef) -> str:
        """Return the comment of the TLSRoute of a host."""
        return f"{ingress}: ssl-passthrough"

    def of_tls(self, namespace: str, service: str, *, verified: bool) -> str:
        """Return the comment of the BackendTLSPolicy of a Service."""
        about = (
            "backend-protocol: TLS" if verified else "backend-protocol: TLS without verification"
        )
        return f"{about} to Service {namespace}/{service}"

    def of_secret(self, name: str) -> str:
        """Return the comment of a Secret; `name` is that of the Secret of auth-secret."""
        return f"auth-secret {name} with the key that edgefast reads"

    def _has(self, ingress: ObjectRef, names: Iterable[str]) -> list[str]:
        found = self._snapshot.ingresses.get((ingress.namespace, ingress.name))
        if found is None:
            return []
        return [one for one in names if PREFIX + one in found.metadata.annotations]


def _find_canaries(snapshot: Snapshot) -> Iterable[tuple[Key, str]]:
    """Give the Services of canaries, each with its comment."""
    for (namespace, name), ingress in snapshot.ingresses.items():
        annotations: Mapping[str, str] = ingress.metadata.annotations
        if annotations.get(f"{PREFIX}canary") != "true":
            continue
        found = [one for one in _CANARIES if PREFIX + one in annotations]
        text = f"canary: Ingress {namespace}/{name} {', '.join(found)}".rstrip()
        for rule in ingress.spec.rules:
            for path in rule.http.paths if rule.http else ():
                if path.backend.service is not None:
                    yield (namespace, path.backend.service.name), text
