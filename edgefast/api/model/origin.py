"""Origin: the Ingress from which edgefast made an object of the Gateway API.

In: written by edgefast/translate/ingress and never by a document. Out: which field of which Ingress a rule serves, and what
nginx requires of the rule that no field of the Gateway API expresses: its turn, HTTP/2 to backends, the form of a redirect.
Must never: be set on an object of a user.
"""

from __future__ import annotations

import re

import msgspec

from edgefast.diagnostics.problem import ObjectRef

__all__ = ["INGRESS_CLASS", "MARK", "Origin", "RuleOrigin", "ingress_of", "is_made", "place_of"]

#: The GatewayClass, the EdgeProxy and the first Gateway that serve Ingresses.
INGRESS_CLASS = "Ingress"
#: Separates the name of an object from what edgefast adds; no name of a user's object has an upper-case letter.
MARK = ".Ingress"

_PART = re.compile(r"spec\.(?:rules|listeners)\[([0-9]+)\]")


class RuleOrigin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The part of an Ingress that one rule serves."""

    ingress: ObjectRef | None  # None: the default backend of all Ingresses
    path: str = ""  # field path in the Ingress
    #: Turn of the rule's matches among those of its host: the smaller one is tried first.
    rank: int = 0
    http2: bool = False  # backends get HTTP/2
    #: Form of a redirect: without one trailing slash, with its port always, without the query of the request.
    trim_slash: bool = False
    write_port: bool = False
    drop_query: bool = False


class Origin(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The Ingress that an object serves; `rules` are those of a route, or the listeners of a Gateway, in their order."""

    ingress: ObjectRef | None  # None: it serves all Ingresses
    path: str = ""  # field path in the Ingress
    rules: tuple[RuleOrigin, ...] = ()


def is_made(name: str) -> bool:
    """Tell whether edgefast made the object of this name: names of objects of users have no upper-case letter."""
    return name != name.lower()


def ingress_of(name: str) -> str:
    """Return the name of the Ingress that a made route serves; `name` may have the kind and the namespace before it.

    The result is "namespace/name" if `name` has a namespace.
    """
    return "/".join(name.partition(MARK)[0].split("/")[-2:])


def place_of(origin: Origin, path: str) -> tuple[ObjectRef | None, str]:
    """Return the Ingress and the field path that a field of a made object stands for."""
    found = _PART.match(path)
    if found is not None and int(found[1]) < len(origin.rules):
        rule = origin.rules[int(found[1])]
        return rule.ingress, rule.path
    return origin.ingress, origin.path
