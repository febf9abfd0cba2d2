"""Pod selectors: which label selectors of XBackends the controller watches Pods for.

In: the selector of each XBackend that is used and has no other mistake.
Out: the watched selectors, as texts that an API server takes, and the refused ones with the reason.
Each selector is a watch, so a namespace has at most MOST and all namespaces together MOST_OF_ALL:
those of the oldest XBackends. XBackends with equal labels share one watch. The controller watches
these; translation refuses the others. An unused XBackend, or one with another mistake, counts for
neither bound.
Must never: let the result depend on which selectors were watched before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from edgefast.api.gateway.xbackend import EndpointSelector
from edgefast.api.snapshot import Key
from edgefast.api.validation.rule import Violation
from edgefast.api.validation.xbackend import check_labels
from edgefast.collections.sorted_map import EMPTY, SortedMap, find_unlike
from edgefast.translate.match.precedence import Age

__all__ = [
    "MOST",
    "MOST_OF_ALL",
    "Lack",
    "Selection",
    "Selectors",
    "RequestedSelector",
    "check_selector",
    "choose_selectors",
]

#: Different selections of one namespace.
MOST = 16
#: Of all namespaces together: so many watches more than of collections are open at an API server from each replica of the controller.
MOST_OF_ALL = 256
#: Labels of one selector (maxProperties of the CRD).
_MOST_LABELS = 64
#: Characters of one, which stands in the URL of each list and watch: half of the 8 kB of a request line that servers and proxies take.
_MOST_TEXT = 4096

#: Namespace, and labels as an API server takes them.
Selection = tuple[str, str]
#: Which bound a selection is beyond.
Lack = Literal["namespace", "all"]


class RequestedSelector(NamedTuple):
    """What one XBackend selects, and how old it is."""

    age: Age
    labels: str


class Selectors(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Who is followed; never changed after it was made."""

    wishes: SortedMap[Key, RequestedSelector] = EMPTY  # by XBackend
    queue: SortedMap[Age, Selection] = EMPTY  # the same, oldest first
    followed: frozenset[Selection] = frozenset()
    unfollowed: SortedMap[Selection, Lack] = EMPTY


def choose_selectors(wishes: SortedMap[Key, RequestedSelector], previous: Selectors) -> Selectors:
    """Return who is followed of these; the identical `unfollowed` where it is the same as before."""
    if wishes is previous.wishes:
        return previous
    queue = previous.queue.edit()
    gone, come = find_unlike(previous.wishes, wishes)
    for requested in gone.values():
        del queue[requested.age]
    for (namespace, _), requested in come.items():
        queue[requested.age] = (namespace, requested.labels)
    ordered = queue.done()
    followed, beyond = _divide(ordered.values())
    known, unfollowed = dict(previous.unfollowed.items()), previous.unfollowed.edit()
    for one in known.keys() - beyond.keys():
        del unfollowed[one]
    for one, missing in beyond.items():
        if known.get(one) != missing:
            unfollowed[one] = missing
    return Selectors(wishes=wishes, queue=ordered, followed=followed, unfollowed=unfollowed.done())


def _divide(selections: Iterable[Selection]) -> tuple[frozenset[Selection], dict[Selection, Lack]]:
    """Return the selections that are followed and those that are not, of all in their order."""
    followed: set[Selection] = set()
    beyond: dict[Selection, Lack] = {}
    counts: dict[str, int] = {}
    for one in selections:
        if one in followed or one in beyond:
            continue
        count = counts.get(one[0], 0)
        if count >= MOST:
            beyond[one] = "namespace"
        elif len(followed) >= MOST_OF_ALL:
            beyond[one] = "all"
        else:
            followed.add(one)
            counts[one[0]] = count + 1
    return frozenset(followed), beyond


def check_selector(selector: EndpointSelector) -> Iterable[Violation]:
    """Check what a selector says, whatever others there are."""
    labels, path = selector.match_labels, ("matchLabels",)
    if not labels:
        message = "at least one label; without one it selects every Pod"
        return (Violation(path, "Required", message),)
    if len(labels) > _MOST_LABELS:
        return (Violation(path, "TooMany", f"{len(labels)} labels, at most {_MOST_LABELS}"),)
    if wrong := tuple(check_labels(selector)):
        return wrong
    if (size := len(selector.text)) > _MOST_TEXT:
        message = f"{size} characters of labels, at most {_MOST_TEXT}"
        return (Violation(path, "TooMany", message),)
    return ()
