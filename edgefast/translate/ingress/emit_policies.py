"""Emit policies: the annotations of one Ingress as policies and filters for its routes.

In: an Ingress, the routes that its hosts became, its access rules, the settings. Out: `Made`: a BackendTrafficPolicy for its routes and
one for each of their error pages, a SecurityPolicy for each set of access rules, the RateLimitFilter of its limits, and what they
refer to.
Must never: leave out a policy of a route with access rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import msgspec

from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.securitypolicy import (
    Authorization,
    SecurityPolicy,
    SecurityPolicySpec,
)
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.origin import MARK, Origin
from edgefast.translate.ingress.access import Access
from edgefast.translate.ingress.auth_url import AuthCheck
from edgefast.translate.ingress.configmap import Globals
from edgefast.translate.ingress.draft import Guard
from edgefast.translate.ingress.emit import HostMade
from edgefast.translate.ingress.emitter import (
    MAX_TARGETS,
    Emitter,
    Made,
    Objects,
    chunk,
    target_objects,
)
from edgefast.translate.ingress.error_pages import Page, label_page, translate_page
from edgefast.translate.ingress.limits import make_filter
from edgefast.translate.ingress.servers import Source
from edgefast.translate.ingress.traffic import is_plain, plain_annotations, translate_traffic
from edgefast.translate.ingress.values import annotation_path
from edgefast.translate.settings import Settings

__all__ = ["emit_policies"]


def emit_policies(
    source: Source,
    hosts: Iterable[HostMade],
    find_access: Callable[[Source], Access],
    settings: Settings,
    globals_: Globals,
) -> Made:
    """Return the policies of one Ingress, for its routes of all hosts."""
    return _PolicyEmitter(settings, globals_).emit(source, list(hosts), find_access)


class _PolicyEmitter(Emitter):
    def emit(
        self,
        source: Source,
        hosts: Sequence[HostMade],
        find_access: Callable[[Source], Access],
    ) -> Made:
        paged: dict[Page, list[str]] = {}
        for host in hosts:
            for one, page, name in host.paged:
                if one is source:
                    paged.setdefault(page, []).append(name)
        others = {name for names in paged.values() for name in names}
        for page, names in paged.items():
            self._emit_traffic(source, names, page)
        routes = [name for host in hosts for one, name in host.served if one is source]
        routes = [name for name in routes if name not in others]
        if routes and not is_plain(source.annotations, plain_annotations(self._globals)):
            self._emit_traffic(source, routes)
        limits = source.annotations.limits
        if limits is not None and any(one is source for host in hosts for one in host.limited):
            codes = self._globals.limit_req_status, self._globals.limit_conn_status
            origin = Origin(ingress=source.ref, path="metadata.annotations")
            self._add(make_filter(source.ingress, limits, *codes), origin)
        guarded: dict[Guard, list[tuple[AuthCheck | None, list[str]]]] = {}
        for host in hosts:
            for one, guard, name in host.guarded:
                if one is source:
                    check = host.checks.get(source) if guard == "all" else None
                    _add_name(guarded.setdefault(guard, []), check, name)
        access = find_access(source) if routes or guarded else None
        shared: Objects = {}
        if access is not None:
            for guard, groups in guarded.items():
                for own, names in groups:
                    check = None if guard != "all" else access.check if own is None else own
                    kind = guard if own is None else f"{guard}-{_label_check(own)}"
                    self._emit_access(source, guard, kind, names, access, check)
                    if check is not None:
                        self._emit_service(source, check, shared)
            if access.secret is not None:
                meta = access.secret.metadata
                shared["secrets", (meta.namespace, meta.name)] = access.secret
        return Made(
            objects=self._objects,
            origins=self._origins,
            shared=shared,
            grants=frozenset(self._grants),
        )

    def _emit_traffic(
        self, source: Source, routes: Sequence[str], page: Page | None = None
    ) -> None:
        for number, part in enumerate(chunk(routes, MAX_TARGETS)):
            kind = "traffic" if page is None else f"traffic-{label_page(page)}"
            meta = self._policy_meta(source, kind, number)
            spec = translate_traffic(source.annotations, target_objects("HTTPRoute", part))
            origin = Origin(ingress=source.ref, path="metadata.annotations")
            if page is not None:
                spec = msgspec.structs.replace(spec, response_override=translate_page(page))
                own = page.codes == source.annotations.pages.codes
                path = annotation_path("custom-http-errors") if own else "metadata.annotations"
                origin = Origin(ingress=source.ref, path=path)
            self._add(BackendTrafficPolicy(metadata=meta, spec=spec), origin)

    def _emit_service(self, source: Source, check: AuthCheck, shared: Objects) -> None:
        """Add what the service of a check needs."""
        if check.ref is not None:
            key = (check.ref.namespace or source.namespace, check.ref.name)
            self._grant("SecurityPolicy", source.namespace, check.ref.kind, key)
        if check.backend is not None:
            meta = check.backend.metadata
            shared["backends", (meta.namespace, meta.name)] = check.backend

    def _emit_access(
        self,
        source: Source,
        guard: Guard,
        kind: str,
        routes: Sequence[str],
        access: Access,
        check: AuthCheck | None,
    ) -> None:
        for number, part in enumerate(chunk(routes, MAX_TARGETS)):
            any_one = guard == "all" and source.annotations.satisfy_any
            policy_spec = SecurityPolicySpec(
                target_refs=target_objects("HTTPRoute", part),
                satisfy="Any" if any_one else "All",
                authorization=_deny_others(access.authorization, any_one=any_one),
                basic_auth=access.basic if guard == "all" else None,
                ext_auth=None if check is None else check.ext_auth,
            )
            path = "metadata.annotations"
            if guard == "all" and (access.basic is None) != (check is None):
                path = annotation_path("auth-secret" if check is None else "auth-url")
            origin = Origin(ingress=source.ref, path=path)
            meta = self._policy_meta(source, kind, number)
            self._add(SecurityPolicy(metadata=meta, spec=policy_spec), origin)

    def _policy_meta(self, source: Source, kind: str, number: int) -> ObjectMeta:
        name = f"{source.ingress.metadata.name}{MARK}-{kind}-{number}"
        return ObjectMeta(name=name, namespace=source.namespace)


def _add_name(
    groups: list[tuple[AuthCheck | None, list[str]]], check: AuthCheck | None, name: str
) -> None:
    """Add a route to the group with its check; hosts with equal checks share policies."""
    for known, names in groups:
        if known == check:
            names.append(name)
            return
    groups.append((check, [name]))


def _label_check(check: AuthCheck) -> str:
    """Return the part that names of the policies of some hosts contain; equal checks have the same one."""
    return hashlib.blake2s(msgspec.json.encode(check.ext_auth), digest_size=4).hexdigest()


def _deny_others(given: Authorization | None, *, any_one: bool) -> Authorization | None:
    """Return the lists of addresses; with satisfy: any a denylist alone admits no client."""
    if given is None or not any_one:
        return given
    return msgspec.structs.replace(given, default_action="Deny")
