"""Lost policies: of a text that is no document, whether a policy of ours was to be in it, so that what that is for stays closed.

In: the text. Out: the kind, namespace and name of each such policy, as far as its lines say them, and the line of its kind: of what it
is for nothing can be told, so it may be all of the namespace.
Must never: take the text for more than it says; a policy of another project is that project's.
"""

from __future__ import annotations

import re
from bisect import bisect

from edgefast.problem import ObjectRef
from edgefast.resources.decode.closedpolicy import is_own_policy
from edgefast.resources.decode.meantpolicy import CLOSING_KINDS, meant_policy
from edgefast.resources.decode.nearly import NAMELESS

__all__ = ["find_lost"]


def _field(name: str, value: str) -> re.Pattern[str]:
    """Return a field with its value, in a line of its own or in braces, of YAML or JSON."""
    return re.compile(
        rf"""(?:^|[{{,])[ \t-]*["']?{name}["']?[ \t]*:[ \t]*["']?({value})""", re.MULTILINE
    )


_KIND = _field("kind", "[A-Za-z][-A-Za-z0-9]{0,62}")
_VERSION = _field("apiVersion", "[-A-Za-z0-9./]{1,253}")
_NAMESPACE = _field("namespace", "[a-z0-9][-a-z0-9]{0,62}")
_NAME = _field("name", "[a-z0-9][-a-z0-9.]{0,252}")
#: Characters of metadata that are looked at; annotations may be long, and names stand before or behind them.
_MOST = 300_000
#: Where the metadata of an object begin, and what may stand behind them.
_META = re.compile(r"""["']?metadata["']?[ \t]*:""")
_BEHIND = re.compile(
    r"""(?:^|[{,])[ \t-]*["']?(?:spec|kind|apiVersion)["']?[ \t]*:""", re.MULTILINE
)


def find_lost(data: bytes, namespace: str) -> tuple[tuple[ObjectRef, int], ...]:
    """Return the policies of a text, with the line of each; `namespace` is of those that name none."""
    text = data.decode(errors="replace")
    kinds = _read_kinds(text)
    if not kinds:
        return ()
    parts = [_read_meta(text, one.end()) for one in _META.finditer(text)]
    # Which metadata are whose cannot be told where there are several.
    name = parts[0][1] if len(kinds) == len(parts) == 1 else NAMELESS
    spaces = sorted({space or namespace for space, _ in parts or [("", NAMELESS)]})
    return tuple(
        (ObjectRef(kind, space, name, CLOSING_KINDS[kind]), line)
        for kind, line in kinds.items()
        for space in spaces
    )


def _read_kinds(text: str) -> dict[str, int]:
    """Return the kinds of policies, with the line of the first of each; the apiVersion of an object is the one that stands nearest."""
    found: dict[str, int] = {}
    versions = [(one.start(), one[1]) for one in _VERSION.finditer(text)]
    meant: dict[tuple[str, str], str] = {}
    for one in _KIND.finditer(text):
        at = bisect(versions, (one.start(), ""))
        around = versions[max(at - 1, 0) : at + 1]
        near = min(around, key=lambda other: abs(other[0] - one.start()), default=(0, ""))
        named = (near[1], one[1])
        if named not in meant:
            meant[named] = meant_policy({}, *named)
        kind = meant[named]
        if is_own_policy(kind) and kind not in found:
            found[kind] = text.count("\n", 0, one.start(1))
    return found


def _read_meta(text: str, begin: int) -> tuple[str, str]:
    """Return namespace and name, "" and NAMELESS where metadata do not say them."""
    behind = _BEHIND.search(text, begin, begin + _MOST)
    end = behind.start() if behind else begin + _MOST
    space, name = _NAMESPACE.search(text, begin, end), _NAME.search(text, begin, end)
    return space[1] if space else "", name[1] if name else NAMELESS
