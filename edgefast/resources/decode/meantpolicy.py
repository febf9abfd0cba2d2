"""Meant policies: an object that is all but a policy that decides who gets in, or how backends are spoken to, and closes what that would.

In: the plain value of a document whose kind or apiVersion is not one that is read. Out: the kind of policy that it was meant to be, "" where
it is none; what such a policy is for; whether some target of a policy cannot be read.
An object of another project's group is that project's (docs/guides/migrating/README.md), whatever its kind is called. What is of our group, of no kind that
we have, and names targets can only be a policy.
Must never: raise for what a user wrote.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Any

from edgefast.resources.decode.closedpolicy import read_aims
from edgefast.resources.edge.backendtrafficpolicy import BackendTrafficPolicy
from edgefast.resources.edge.policytarget import BACKEND_TARGETS, Aim, group_of_target
from edgefast.resources.edge.securitypolicy import SecurityPolicy
from edgefast.resources.foreign.foreign import UNREAD_KINDS, is_slip
from edgefast.resources.foreign.foreignpolicy import read_targets
from edgefast.resources.foreign.target import Target
from edgefast.resources.gatewayapi.backendtlspolicy import BackendTLSPolicy
from edgefast.resources.gatewayapi.xbackendtrafficpolicy import XBackendTrafficPolicy
from edgefast.resources.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS
from edgefast.resources.limits import MAX_SHOWN_NAME
from edgefast.resources.loaded import Path
from edgefast.resources.model.reference import GATEWAY_GROUP

__all__ = ["CLOSING_KINDS", "is_lost", "meant_policy", "meant_targets"]

#: Kinds whose objects close what they are for when they cannot be read, and their groups.
CLOSING_KINDS: dict[str, str] = {
    SecurityPolicy.__name__: EDGE_GROUP,
    BackendTrafficPolicy.__name__: EDGE_GROUP,
    XBackendTrafficPolicy.__name__: EXPERIMENTAL_GROUP,
    BackendTLSPolicy.__name__: GATEWAY_GROUP,
}
#: Of the letters of a name, how many must agree for it to be taken for another one.
_ALIKE = 0.92
_LETTERS = re.compile("[^a-z0-9]")
_VERSIONS = tuple(
    sorted({one for info in KINDS.values() if "." in info.group for one in info.api_versions})
)
_AIMS = ("targetRef", "targetRefs", "targetSelectors")


def _fold(kind: str) -> str:
    """Return a kind without case, signs and plural."""
    plain = _LETTERS.sub("", kind[:MAX_SHOWN_NAME].lower())
    return re.sub("(?:ies|ys|y)$", "y", plain)


_FOLDED = {_fold(info.kind): info.kind for info in KINDS.values()}


def meant_policy(raw: dict[str, Any], api_version: object, kind: object) -> str:
    """Return the kind of policy that an object was meant to be."""
    text = api_version[:MAX_SHOWN_NAME].lower() if isinstance(api_version, str) else ""
    group = text.partition("/")[0] if "/" in text else ""  # a third part is a slip
    ours = group in (EDGE_GROUP, GATEWAY_GROUP) or is_slip(text, _VERSIONS)
    word = kind if isinstance(kind, str) else ""
    unread = not _fold(word)
    if group == EXPERIMENTAL_GROUP:  # whose other kinds are none of ours
        ours = unread or word[:1].lower() == "x"
    if ("." in group and not ours) or word in UNREAD_KINDS:
        return ""
    aims = any(True for _ in read_targets(raw, ""))
    near = _nearest(kind, strict=not ours and not aims) if isinstance(kind, str) else ""
    if near in CLOSING_KINDS:
        return near
    known = isinstance(kind, str) and any(info.kind == kind for info in KINDS.values())
    if group == EDGE_GROUP and not known and (aims or _has_targets(raw)):
        return _by_targets(raw)
    if group == EXPERIMENTAL_GROUP and unread and _by_targets(raw) != SecurityPolicy.__name__:
        return XBackendTrafficPolicy.__name__
    return ""


def _has_targets(raw: dict[str, Any]) -> bool:
    spec = raw.get("spec")
    return isinstance(spec, dict) and any(spec.get(one) is not None for one in _AIMS)


def _by_targets(raw: dict[str, Any]) -> str:
    """Return the kind of policy of ours that names such targets: what backends have is not for a SecurityPolicy to say."""
    spec = raw.get("spec")
    aims = read_aims(spec, unread=_nothing) if isinstance(spec, dict) else ()
    below = any(one.kind in BACKEND_TARGETS for one in aims)
    return BackendTrafficPolicy.__name__ if below else SecurityPolicy.__name__


def _nothing(_: Path) -> tuple[Aim, ...]:
    return ()


def meant_targets(raw: dict[str, Any], policy: str, namespace: str) -> tuple[Target, ...]:
    """Return the targets that a policy with a mistake names, all but right ones as they were meant."""
    spec = raw.get("spec")
    if policy == BackendTLSPolicy.__name__ or not isinstance(spec, dict):
        return read_targets(raw, namespace)
    return tuple(
        Target(
            path=one.path,
            group=group_of_target(one.kind),
            kind=one.kind,
            namespace=namespace,
            name=one.name,
            selector=one.selector,
            section=one.section,
        )
        for one in read_aims(spec, unread=_nothing, policy=policy)
    )


def _nearest(kind: str, *, strict: bool) -> str:
    """Return the kind of all that are read which a name is, or all but is; `strict`: but for case, signs and plural."""
    folded = _fold(kind)
    found = _FOLDED.get(folded, "" if strict else None)
    if found is None:
        near = difflib.get_close_matches(folded, _FOLDED, n=1, cutoff=_ALIKE)
        found = _FOLDED[near[0]] if near else ""
    return found


def is_lost(raw: dict[str, Any], policy: str, repeated: Collection[Path]) -> bool:
    """Tell whether a target of a policy cannot be read, or none: it may be anything of the namespace. Of a field that is given twice the first is lost."""
    spec = raw.get("spec")
    if not isinstance(spec, dict) or not any(True for _ in read_targets(raw, "")):
        return True
    if any(one == ("spec",) or (one[:1] == ("spec",) and one[1:2] in _TOLD) for one in repeated):
        return True
    missed: list[Path] = []

    def miss(path: Path) -> tuple[()]:
        missed.append(path)
        return ()

    if policy != BackendTLSPolicy.__name__:
        read_aims(spec, unread=miss, policy=policy)
    return bool(missed)


_TOLD = tuple((one,) for one in _AIMS)
