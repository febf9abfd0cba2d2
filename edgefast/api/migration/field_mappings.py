"""Field mappings: the equivalents of other projects' policies in edgefast, by kind and field.

In: group, kind and the fields that an object sets, inner ones by their path
("jwt.providers[].recomputeRoute").
Out: a hint for people; the projects, the source of docs/guides/migrating/README.md.
Must never: report an equivalent for a field that is not in the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast.api.migration.adoption.references import is_adoptable
from edgefast.api.migration.envoy_gateway import ENVOY_GATEWAY
from edgefast.api.migration.field_mapping import FieldMapping, ForeignKind, Project
from edgefast.api.migration.ingress_nginx import INGRESS_NGINX
from edgefast.api.migration.kgateway import KGATEWAY
from edgefast.api.migration.nginx_gateway import NGINX_GATEWAY
from edgefast.api.migration.traefik import TRAEFIK

PROJECTS: tuple[Project, ...] = (ENVOY_GATEWAY, NGINX_GATEWAY, KGATEWAY, TRAEFIK, INGRESS_NGINX)
PAGE = "edgefast docs migrating"  # the command that prints the page, as messages have it

_KINDS: dict[tuple[str, str], ForeignKind] = {
    (group, kind.kind): kind for one in PROJECTS for group in one.groups for kind in one.kinds
}
_INDEX = re.compile(r"\[\d+\]")
#: Fields that say what a policy is attached to, and nothing of what it does.
_AIMS = frozenset({"targetRef", "targetRefs", "targetSelectors", "mergeType", "type", "priority"})


def find_kind(group: str, kind: str) -> ForeignKind | None:
    """Return what is known of a kind, None when it is not in the tables."""
    return _KINDS.get((group, kind))


def hint_at(group: str, kind: str, fields: Iterable[str], *, adopt: bool = True) -> str:
    """Return what of an object's fields is here, "" of a kind that is not in the tables.

    `adopt`: objects are read with `--adopt`, which the hint names otherwise.
    """
    known = find_kind(group, kind)
    if known is None:
        return ""
    reported = (name for name in fields if name not in _AIMS)
    message = [
        describe_mapping(name, known.inner.get(name) or known.fields.get(name)) for name in reported
    ]
    page = f"see {PAGE}"
    if not adopt and is_adoptable(group, kind):
        page = f"serve it as it is with --adopt, {page}"
    return "; ".join([*message, page])


def describe_field(kind: str, path: str) -> str:
    """Return what is here of a field that a kind of ours has in Envoy Gateway alone, "" where nothing is known of it.

    `path` is a field path such as `spec.authorization.rules[1].cel`.
    """
    known = find_kind(ENVOY_GATEWAY.groups[0], kind)
    name = _INDEX.sub("[]", path).removeprefix("spec.")
    found = (known.inner.get(name) or known.fields.get(name)) if known is not None else None
    return describe_mapping("", found) if found is not None else ""


def describe_mapping(name: str, found: FieldMapping | None) -> str:
    """Return the replacement of a field or an annotation; None: it is in no table."""
    start = f"{name}: " if name else ""
    if found is None:
        return f"{start}no equivalent"
    match found.place:
        case "here":
            return f"{start}use {found.said}"
        case "later":
            return f"{start}no equivalent" + (f" (meanwhile: {found.said})" if found.said else "")
        case "never":
            return f"{start}no equivalent: {found.said}"
