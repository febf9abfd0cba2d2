"""Adopted: objects of edgefast from documents of Envoy Gateway, with their settings for routes and Gateways.

In: an AdoptedDocument (api/migration/adoption), and the object that its document was decoded to. Out: the object with what it
carries for edgefast/translate/adoption; violations of its settings, at the fields of the original document.
Must never: carry a setting that has a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from edgefast.api.decode.walk import Walk
from edgefast.api.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.api.edge.edgeproxy import EdgeProxy
from edgefast.api.edge.ratelimitfilter import RateLimitFilterSpec
from edgefast.api.edge.securitypolicy import SecurityPolicy
from edgefast.api.gateway.gateway import FrontendTLSValidation
from edgefast.api.gateway.httproute import HTTPRouteRetry, HTTPRouteTimeouts
from edgefast.api.gateway.httproutefilter import HTTPCORSFilter
from edgefast.api.kinds import Object
from edgefast.api.loaded import Path
from edgefast.api.migration.adoption.adopted_document import AdoptedDocument, Note
from edgefast.api.model.adopted import AdoptedClient, AdoptedPolicy, AdoptedSettings
from edgefast.api.model.fields import Element
from edgefast.api.validation.rule import Violation

__all__ = ["CLIENT_MARK", "AdoptedObject", "build_adopted", "write_note"]

#: Follows the name of the EdgeProxy of a ClientTrafficPolicy; no name of a user's object has an upper-case letter.
CLIENT_MARK = ".Client"
_LIMITS: Path = ("spec", "rateLimit")


class AdoptedObject(msgspec.Struct, frozen=True):
    """The object, or None with what is wrong."""

    obj: Object | None
    violations: tuple[Violation, ...] = ()


def write_note(note: Note) -> Violation:
    """Return a note as a violation: an error where it closes something."""
    severity: Literal["", "warning"] = "" if note.effect == "closes" else "warning"
    return Violation(note.path, note.reason, note.message, note.hint, severity)


def build_adopted(obj: Object, document: AdoptedDocument) -> AdoptedObject:
    """Return the object with its settings for routes or Gateways."""
    wrong: list[Violation] = []
    if isinstance(obj, SecurityPolicy | BackendTrafficPolicy):
        given = document.settings
        settings = AdoptedSettings(
            cors=_build(HTTPCORSFilter, given.cors, ("spec", "cors"), wrong),
            global_limits=_build(RateLimitFilterSpec, given.global_limits, _LIMITS, wrong),
            local_limits=_build(RateLimitFilterSpec, given.local_limits, _LIMITS, wrong),
            retry=_build(HTTPRouteRetry, given.retry, ("spec", "retry"), wrong),
            backend_request=_check_time(given.backend_request, wrong),
        )
        if wrong:
            return AdoptedObject(None, tuple(wrong))
        spec: Any = obj.spec
        if document.only_selectors:
            spec = msgspec.structs.replace(spec, target_refs=())
        adopted = AdoptedPolicy(
            selectors=document.selectors, settings=settings, merges=document.merges
        )
        return AdoptedObject(msgspec.structs.replace(obj, spec=spec, adopted=adopted))
    if isinstance(obj, EdgeProxy) and document.client:
        where: Path = ("spec", "tls", "clientValidation")
        validation = _build(FrontendTLSValidation, document.validation, where, wrong)
        if wrong:
            return AdoptedObject(None, tuple(wrong))
        client = AdoptedClient(
            name=obj.metadata.name,
            targets=document.targets,
            validation=validation,
            options=dict(document.options),
            decides=document.decides,
        )
        name = f"{obj.metadata.name}{CLIENT_MARK}"
        metadata = msgspec.structs.replace(obj.metadata, name=name)
        return AdoptedObject(msgspec.structs.replace(obj, metadata=metadata, adopted=client))
    return AdoptedObject(obj)


def _build(
    struct: type[Element], value: object, path: Path, wrong: list[Violation]
) -> Element | None:
    """Return the Struct of a setting, with the violations of the decoder at `path`."""
    if value is None:
        return None
    walk = Walk()
    built: Element | None = walk.build(struct, value)
    wrong += _place(walk.violations, path)
    return built


def _place(violations: list[Violation], path: Path) -> Iterator[Violation]:
    for one in violations:
        yield msgspec.structs.replace(one, path=(*path, *one.path))


def _check_time(text: str, wrong: list[Violation]) -> str:
    if text:
        walk = Walk()
        walk.build(HTTPRouteTimeouts, {"backendRequest": text})
        where: Path = ("spec", "retry", "perRetry", "timeout")
        wrong += [msgspec.structs.replace(one, path=where) for one in walk.violations]
    return text
