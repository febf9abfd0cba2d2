"""Convert: the objects that edgefast serves for Ingresses, with public names, fields and comments.

In: a snapshot, settings, the name of the Gateway. Out: a `Conversion`. edgefast has fields for the parts that the Gateway API lacks: the
order of rules is an annotation (edgefast/translate/route/rule_order.py), forms of redirects and HTTP/2 to backends are
HTTPRouteFilters.
Must never: make another decision than the translation of Ingresses, or print a key of a Secret that exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.httproutefilter import HTTPRouteFilter as EdgeFilter
from edgefast.api.edge.httproutefilter import HTTPRouteFilterSpec, RedirectForm
from edgefast.api.edge.policy_target import PolicyTargetReference
from edgefast.api.edge.securitypolicy import ExtAuth
from edgefast.api.gateway.gateway import Gateway, GatewaySpec
from edgefast.api.gateway.gatewayclass import GatewayClass
from edgefast.api.gateway.httproute import (
    HTTPBackendRef,
    HTTPRoute,
    HTTPRouteRule,
    HTTPRouteSpec,
)
from edgefast.api.gateway.httproutefilter import HTTPRouteFilter
from edgefast.api.gateway.layer4_route import TLSRoute
from edgefast.api.gateway.listener import Listener
from edgefast.api.kinds import EDGE_GROUP, Object, ref_of
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import INGRESS_CLASS, MARK, RuleOrigin
from edgefast.api.model.reference import (
    GATEWAY_GROUP,
    LocalObjectReference,
    ParametersReference,
    ParentReference,
)
from edgefast.api.snapshot import Key, Snapshot
from edgefast.convert.comments import Comments
from edgefast.convert.conversion import Conversion, Converted
from edgefast.convert.grouping import join_pieces
from edgefast.convert.inputs import complete_inputs
from edgefast.convert.names import Names, name_filter, name_pieces, plain_name
from edgefast.convert.order import arrange
from edgefast.convert.pieces import (
    HTTP_FILTER,
    LIMITS,
    SECURITY,
    TRAFFIC,
    Piece,
    filter_names,
    find_pieces,
)
from edgefast.convert.report import report_all
from edgefast.convert.standard import Loss, use_standard_fields
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.ingress.assemble import IngressObjects
from edgefast.translate.ingress.expand import expand_ingresses
from edgefast.translate.policy.backendtlspolicy import INSECURE
from edgefast.translate.route.rule_order import RULE_ORDER
from edgefast.translate.settings import Settings

__all__ = ["GATEWAY_FILE", "convert_ingresses", "namespace_file"]

#: File of the Gateway, its class and the policy of all routes.
GATEWAY_FILE = "gateway.yaml"
_SHARED = "namespace-"
# Bounds of the Gateway API and of policies.
_LISTENERS = 64
_TARGETS = 16


def namespace_file(namespace: str) -> str:
    """Return the file of what several routes of a namespace use; names of other files contain a dot or are GATEWAY_FILE."""
    return f"{_SHARED}{namespace}.yaml"


def convert_ingresses(
    snapshot: Snapshot, settings: Settings, gateway: Key, *, standard: bool = False
) -> Conversion:
    """Convert the Ingresses of a snapshot to routes of one Gateway; `gateway`: its namespace and name.

    `standard`: use fields of the Gateway API where edgefast's own fields serve more; the report lists what is lost.
    """
    settings = msgspec.structs.replace(settings, standalone=True, namespace=gateway[0])
    completed = complete_inputs(snapshot, settings.ingress)
    settings = msgspec.structs.replace(settings, ingress=completed.settings)
    expansion = expand_ingresses(completed.snapshot, settings, None)
    made = expansion.objects
    problems = tuple(expansion.find_problems())
    work = _Work(snapshot, made, gateway, problems)
    losses: tuple[Loss, ...] = ()
    objects: tuple[Converted, ...] = ()
    if made.tables:
        losses = work.arrange(standard=standard)
        objects = tuple(work.build())
    sources = expansion.sources.values()
    ours = [one.ingress for one in sources if not one.annotations.refused]
    unserved = [one.ingress for one in sources if one.annotations.refused]
    replaced = {ref_of(one.ingress) for one in sources}
    return Conversion(
        objects=objects,
        report=report_all(ours, unserved, problems, losses, completed.certificates),
        ingresses=len(ours),
        replaced=frozenset(replaced),
        problems=problems,
    )


class _Work:
    def __init__(
        self, snapshot: Snapshot, made: IngressObjects, gateway: Key, problems: Iterable[Problem]
    ) -> None:
        self._made = made
        self._gateway = gateway
        self._names = Names(snapshot)
        self._comments = Comments(snapshot, made, problems)
        self._pieces: list[Piece] = []
        #: Listeners of each Gateway of the output, with the fields that they are from.
        self._gateways: dict[str, list[tuple[Listener, RuleOrigin]]] = {}
        #: Filters by namespace and name in the rules: of edgefast, and those of this conversion.
        self._filters: dict[Key, EdgeFilter] = dict(made.tables.get("http_route_filters", {}))
        self._renamed: dict[tuple[str, Key], str] = {}

    # --- pieces ---

    def arrange(self, *, standard: bool) -> tuple[Loss, ...]:
        """Join and name the routes; with `standard`, return what is lost."""
        self._pack_listeners()
        pieces = arrange(find_pieces(self._made), self._filters)
        for piece in pieces:
            piece.parents = tuple(self._parent(one) for one in piece.parents)
        losses: tuple[Loss, ...] = ()
        if standard:
            losses = use_standard_fields(pieces, self._filters)
            pieces = [one for one in pieces if one.rules]
        else:
            for piece in pieces:
                piece.rules = [
                    (self._use_form(rule, origin, piece.namespace), origin)
                    for rule, origin in piece.rules
                ]
        self._pieces = join_pieces(pieces, self._listeners())
        name_pieces(self._pieces, self._names)
        return losses

    def _use_form(self, rule: HTTPRouteRule, origin: RuleOrigin, namespace: str) -> HTTPRouteRule:
        """Return a rule with the filters that express what only the origin has."""
        filters = rule.filters
        if origin.trim_slash or origin.write_port or origin.drop_query:
            form = RedirectForm(
                trailing_slash="Remove" if origin.trim_slash else "Keep",
                port="Always" if origin.write_port else "Default",
                query="Remove" if origin.drop_query else "Keep",
            )
            filters = (*filters, self._add_filter(HTTPRouteFilterSpec(redirect=form), namespace))
        if origin.http2:
            spec = HTTPRouteFilterSpec(backend_protocol="HTTP2")
            filters = (*filters, self._add_filter(spec, namespace))
        return msgspec.structs.replace(rule, filters=filters)

    def _add_filter(self, spec: HTTPRouteFilterSpec, namespace: str) -> HTTPRouteFilter:
        name = name_filter(spec).upper()  # no made filter has it
        meta = ObjectMeta(name=name, namespace=namespace)
        self._filters[namespace, name] = EdgeFilter(metadata=meta, spec=spec)
        ref = LocalObjectReference(group=EDGE_GROUP, kind="HTTPRouteFilter", name=name)
        return HTTPRouteFilter(type="ExtensionRef", extension_ref=ref)

    def _pack_listeners(self) -> None:
        """Divide the listeners among as few Gateways as possible: those without a hostname, then the others by name."""
        space, name = self._gateway
        found = [
            pair
            for key, gateway in self._made.tables["gateways"].items()
            for pair in zip(
                gateway.spec.listeners, self._made.origins["Gateway", *key].rules, strict=True
            )
        ]
        found.sort(key=lambda pair: (pair[0].hostname or "", pair[0].name))
        for at in range(0, len(found), _LISTENERS):
            part = found[at : at + _LISTENERS]
            self._gateways[self._names.take("gateways", space, name)] = part

    def _parent(self, parent: ParentReference) -> ParentReference:
        for name, part in self._gateways.items():
            if any(one.name == parent.section_name for one, _ in part):
                return msgspec.structs.replace(parent, name=name)
        raise AssertionError("unreachable: each route has a listener")

    def _listeners(self) -> dict[tuple[str, str], str]:
        return {
            (name, one.name): one.hostname or ""
            for name, part in self._gateways.items()
            for one, _ in part
        }

    # --- objects ---

    def build(self) -> Iterator[Converted]:
        """Give the objects of the output by file, each route behind its policies and filters: none is served without them."""
        yield from sorted(self._build_all(), key=_place_in_output)

    def _build_all(self) -> Iterator[Converted]:
        self._rename_all()
        yield from self._build_gateways()
        for piece in sorted(self._pieces, key=lambda one: (one.namespace, one.ingress.name)):
            yield self._build_route(piece)
        yield from self._build_filters()
        yield from self._build_policies()
        yield from self._build_rest()

    def _rename_all(self) -> None:
        """Choose the names of all objects but routes."""
        space, name = self._gateway
        self._renamed["gateway_classes", ("", INGRESS_CLASS)] = self._names.take(
            "gateway_classes", "", name
        )
        self._renamed["edge_proxies", (space, INGRESS_CLASS)] = self._names.take(
            "edge_proxies", space, name
        )
        for table in ("backends", "backend_tls_policies", "secrets"):
            for namespace, made in sorted(self._made.tables.get(table, {})):
                wanted = plain_name(made)
                if table == "secrets":
                    wanted = f"{made.partition(MARK)[0]}-htpasswd"
                given = self._names.take(table, namespace, wanted)
                self._renamed[table, (namespace, made)] = given
        for namespace, made in sorted(self._made.tables.get(LIMITS, {})):
            wanted = made.partition(MARK)[0]
            given = self._names.take(LIMITS, namespace, wanted, f"{wanted}-limits")
            self._renamed[LIMITS, (namespace, made)] = given
        equal: dict[tuple[str, HTTPRouteFilterSpec], str] = {}
        for namespace, made in self._used_filters():
            spec = self._filters[namespace, made].spec
            if (namespace, spec) not in equal:
                given = self._names.take("http_route_filters", namespace, name_filter(spec))
                equal[namespace, spec] = given
            self._renamed["http_route_filters", (namespace, made)] = equal[namespace, spec]

    def _name_of(self, table: str, key: Key) -> str:
        return self._renamed.get((table, key), key[1])

    def _build_gateways(self) -> Iterator[Converted]:
        tables, space = self._made.tables, self._gateway[0]
        proxy: EdgeProxy = tables["edge_proxies"][space, INGRESS_CLASS]
        if len(self._gateways) == 1:
            merged = msgspec.structs.replace(proxy.spec, merge_gateways=None)
            proxy = msgspec.structs.replace(proxy, spec=merged)
        class_name = self._name_of("gateway_classes", ("", INGRESS_CLASS))
        made: GatewayClass = tables["gateway_classes"]["", INGRESS_CLASS]
        parameters = None
        proxy_name = self._name_of("edge_proxies", (space, INGRESS_CLASS))
        has_proxy = proxy.spec != type(proxy.spec)()
        if has_proxy:
            parameters = ParametersReference(
                group=EDGE_GROUP, kind="EdgeProxy", name=proxy_name, namespace=space
            )
        spec = msgspec.structs.replace(made.spec, parameters_ref=parameters)
        meta = ObjectMeta(name=class_name)
        yield Converted(obj=GatewayClass(metadata=meta, spec=spec), file=GATEWAY_FILE)
        if has_proxy:
            meta = ObjectMeta(name=proxy_name, namespace=space)
            found = EdgeProxy(metadata=meta, spec=proxy.spec)
            yield Converted(obj=found, comment=self._comments.of_proxy(found), file=GATEWAY_FILE)
        for name, part in self._gateways.items():
            meta = ObjectMeta(name=name, namespace=space)
            listeners = tuple(one for one, _ in part)
            gateway_spec = GatewaySpec(gateway_class_name=class_name, listeners=listeners)
            yield Converted(
                obj=Gateway(metadata=meta, spec=gateway_spec),
                parts=self._comments.of_listeners(one for _, one in part),
                file=GATEWAY_FILE,
            )

    def _build_route(self, piece: Piece) -> Converted:
        annotations = {}
        if piece.ordered:
            annotations[RULE_ORDER] = ",".join(str(origin.rank) for _, origin in piece.rules)
        meta = ObjectMeta(name=piece.name, namespace=piece.namespace, annotations=annotations)
        rules = tuple(self._rename_rule(rule, piece.namespace) for rule, _ in piece.rules)
        spec = HTTPRouteSpec(parent_refs=piece.parents, hostnames=piece.hostnames, rules=rules)
        return Converted(
            obj=HTTPRoute(metadata=meta, spec=spec),
            comment=self._comments.of_route(piece),
            parts=self._comments.of_rules(piece),
            file=_file(piece.namespace, piece.ingress.name),
        )

    def _rename_rule(self, rule: HTTPRouteRule, namespace: str) -> HTTPRouteRule:
        filters = tuple(self._rename_filter(one, namespace) for one in rule.filters)
        backends = tuple(self._rename_backend(one, namespace) for one in rule.backend_refs)
        return msgspec.structs.replace(rule, filters=filters, backend_refs=backends)

    def _rename_filter(self, one: HTTPRouteFilter, namespace: str) -> HTTPRouteFilter:
        if one.extension_ref is not None:
            table = "http_route_filters" if one.extension_ref.kind == HTTP_FILTER else LIMITS
            name = self._name_of(table, (namespace, one.extension_ref.name))
            ref = msgspec.structs.replace(one.extension_ref, name=name)
            return msgspec.structs.replace(one, extension_ref=ref)
        mirror = one.request_mirror
        if mirror is not None and mirror.backend_ref.kind == "Backend":
            key = (mirror.backend_ref.namespace or namespace, mirror.backend_ref.name)
            to = msgspec.structs.replace(mirror.backend_ref, name=self._name_of("backends", key))
            mirror = msgspec.structs.replace(mirror, backend_ref=to)
            return msgspec.structs.replace(one, request_mirror=mirror)
        return one

    def _rename_backend(self, one: HTTPBackendRef, namespace: str) -> HTTPBackendRef:
        own = one.namespace if one.namespace != namespace else None
        name = one.name
        if one.kind == "Backend":
            name = self._name_of("backends", (one.namespace or namespace, one.name))
        return msgspec.structs.replace(one, name=name, namespace=own)

    def _used_filters(self) -> dict[Key, dict[tuple[ObjectRef, str], None]]:
        """Return the filters that rules name, with the Ingresses and field paths of these rules."""
        users: dict[Key, dict[tuple[ObjectRef, str], None]] = {}
        for piece in self._pieces:
            for rule, origin in piece.rules:
                for name in filter_names(rule):
                    used_by = users.setdefault((piece.namespace, name), {})
                    used_by[piece.ingress, origin.path] = None
        return users

    def _build_filters(self) -> Iterator[Converted]:
        """Give the filters that rules use, beside their Ingress if it is the only one."""
        users: dict[Key, dict[tuple[ObjectRef, str], None]] = {}
        specs: dict[Key, HTTPRouteFilterSpec] = {}
        for (namespace, made), used_by in self._used_filters().items():
            key = (namespace, self._name_of("http_route_filters", (namespace, made)))
            users.setdefault(key, {}).update(used_by)
            specs[key] = self._filters[namespace, made].spec
        for (namespace, name), used_by in users.items():
            spec = specs[namespace, name]
            first, *others = {ingress for ingress, _ in used_by}
            yield Converted(
                obj=EdgeFilter(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec),
                comment=self._comments.of_filter(spec, used_by),
                file=namespace_file(namespace) if others else _file(namespace, first.name),
            )

    def _build_policies(self) -> Iterator[Converted]:
        routes = {
            (piece.namespace, made): piece.name for piece in self._pieces for made in piece.made
        }
        defaults: list[Any] = []
        for table in (SECURITY, TRAFFIC):
            for key, policy in self._made.tables.get(table, {}).items():
                if self._made.origins[type(policy).__name__, *key].ingress is None:
                    defaults.append(policy)
                    continue
                names = [routes.get((key[0], one.name), "") for one in policy.spec.target_refs]
                refs = _targets("HTTPRoute", dict.fromkeys(filter(None, names)))
                if refs:
                    yield self._build_policy(table, key, policy, refs)
        gateways = list(self._gateways)
        for at in range(0, len(gateways), _TARGETS):
            yield self._build_defaults(defaults[0], gateways[at : at + _TARGETS])

    def _build_defaults(self, policy: Any, gateways: list[str]) -> Converted:
        space, name = self._gateway
        meta = ObjectMeta(name=self._names.take(TRAFFIC, space, name), namespace=space)
        spec = msgspec.structs.replace(policy.spec, target_refs=_targets("Gateway", gateways))
        made = msgspec.structs.replace(policy, metadata=meta, spec=spec)
        return Converted(obj=made, comment=self._comments.of_defaults(), file=GATEWAY_FILE)

    def _build_policy(
        self, table: str, key: Key, policy: Any, refs: tuple[PolicyTargetReference, ...]
    ) -> Converted:
        origin = self._made.origins[type(policy).__name__, *key]
        namespace = key[0]
        spec = msgspec.structs.replace(policy.spec, target_refs=refs)
        assert origin.ingress is not None
        base = origin.ingress.name
        lists = (
            table == SECURITY and policy.spec.basic_auth is None and policy.spec.ext_auth is None
        )
        wanted = (base, f"{base}-addresses") if lists else (base,)
        name = self._names.take(table, namespace, *wanted)
        if table == SECURITY and policy.spec.basic_auth is not None:
            users = policy.spec.basic_auth.users
            users = msgspec.structs.replace(
                users, name=self._name_of("secrets", (namespace, users.name))
            )
            basic = msgspec.structs.replace(policy.spec.basic_auth, users=users)
            spec = msgspec.structs.replace(spec, basic_auth=basic)
        if table == SECURITY and policy.spec.ext_auth is not None:
            found = self._rename_check(policy.spec.ext_auth, namespace)
            spec = msgspec.structs.replace(spec, ext_auth=found)
        meta = ObjectMeta(name=name, namespace=namespace)
        made = msgspec.structs.replace(policy, metadata=meta, spec=spec)
        comment = self._comments.of_policy(origin.ingress, table)
        return Converted(obj=made, comment=comment, file=_file(namespace, base))

    def _rename_check(self, found: ExtAuth, namespace: str) -> ExtAuth:
        """Return a check with the name of its Backend, which is in the namespace of the policy."""
        http = found.http
        if http is None or http.backend_ref is None or http.backend_ref.kind != "Backend":
            return found
        name = self._name_of("backends", (namespace, http.backend_ref.name))
        ref = msgspec.structs.replace(http.backend_ref, name=name)
        return msgspec.structs.replace(found, http=msgspec.structs.replace(http, backend_ref=ref))

    def _build_rest(self) -> Iterator[Converted]:
        """Give TLSRoutes, Backends, BackendTLSPolicies, Secrets and ReferenceGrants."""
        for key, route in sorted(self._made.tables.get("tls_routes", {}).items()):
            yield self._build_tls_route(key, route)
        for key, backend in sorted(self._made.tables.get("backends", {}).items()):
            yield self._move("backends", key, backend, self._comments.of_backend(backend))
        for key, tls in sorted(self._made.tables.get("backend_tls_policies", {}).items()):
            service = tls.spec.target_refs[0].name
            yield self._move(
                "backend_tls_policies",
                key,
                tls,
                self._comments.of_tls(key[0], service, verified=INSECURE not in tls.spec.options),
            )
        for key, limits in sorted(self._made.tables.get(LIMITS, {}).items()):
            ingress = self._made.origins["RateLimitFilter", *key].ingress
            assert ingress is not None
            meta = ObjectMeta(name=self._name_of(LIMITS, key), namespace=key[0])
            yield Converted(
                obj=msgspec.structs.replace(limits, metadata=meta),
                comment=self._comments.of_limits(ingress),
                file=_file(key[0], ingress.name),
            )
        for key, secret in sorted(self._made.tables.get("secrets", {}).items()):
            about = self._comments.of_secret(key[1].partition(MARK)[0])
            yield self._move("secrets", key, secret, about)
        for key, grant in sorted(self._made.tables.get("reference_grants", {}).items()):
            to = tuple(
                msgspec.structs.replace(one, name=self._name_of("backends", (key[0], one.name)))
                if one.kind == "Backend" and one.name is not None
                else one
                for one in grant.spec.to
            )
            source = grant.spec.from_[0]
            name = f"{source.kind.lower()}-{source.namespace}-{to[0].kind.lower()}"
            meta = ObjectMeta(
                name=self._names.take("reference_grants", key[0], name), namespace=key[0]
            )
            spec = msgspec.structs.replace(grant.spec, to=to)
            yield Converted(
                obj=msgspec.structs.replace(grant, metadata=meta, spec=spec),
                file=namespace_file(key[0]),
            )

    def _build_tls_route(self, key: Key, route: TLSRoute) -> Converted:
        ingress = self._made.origins["TLSRoute", *key].ingress
        assert ingress is not None
        name = self._names.take("tls_routes", key[0], ingress.name, plain_name(key[1]))
        parents = tuple(self._parent(one) for one in route.spec.parent_refs)
        return Converted(
            obj=TLSRoute(
                metadata=ObjectMeta(name=name, namespace=key[0]),
                spec=msgspec.structs.replace(route.spec, parent_refs=parents),
            ),
            comment=self._comments.of_passthrough(ingress),
            file=_file(key[0], ingress.name),
        )

    def _move(self, table: str, key: Key, obj: Object, comment: str) -> Converted:
        meta = ObjectMeta(name=self._name_of(table, key), namespace=key[0])
        found = msgspec.structs.replace(obj, metadata=meta)
        return Converted(obj=found, comment=comment, file=namespace_file(key[0]))


def _place_in_output(one: Converted) -> tuple[int, str, bool]:
    """Return the place of an object: the Gateway, what routes of a namespace share, then each Ingress."""
    order = 0 if one.file == GATEWAY_FILE else 1 if one.file.startswith(_SHARED) else 2
    return order, one.file, isinstance(one.obj, HTTPRoute | TLSRoute)


def _targets(kind: str, names: Iterable[str]) -> tuple[PolicyTargetReference, ...]:
    return tuple(PolicyTargetReference(group=GATEWAY_GROUP, kind=kind, name=one) for one in names)


def _file(namespace: str, ingress: str) -> str:
    return f"{namespace}.{ingress}.yaml"
