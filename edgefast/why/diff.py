"""diff(): what changes for requests from one set of objects to another.

In: two translations. Out: a `Difference`: what example requests get otherwise (compare.py) and what the objects are told
otherwise (surface.py, told.py), what opens and what breaks first. Must never: do I/O.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.translate.translation import Translation
from edgefast.why.changes import Change, Difference, rank_change
from edgefast.why.compare import compare_requests
from edgefast.why.origin import Origin
from edgefast.why.pair import Pair
from edgefast.why.served import Served
from edgefast.why.streamdiff import compare_streams
from edgefast.why.surface import compare_endpoints, compare_hosts
from edgefast.why.told import compare_told
from edgefast.why.zonediff import compare_zones


def diff_translations(old: Translation, new: Translation) -> Difference:
    """Compare fleet by fleet; a fleet that one side has not is empty there."""
    changes: list[Change] = []
    examples = 0
    names = dict.fromkeys(fleet.name for side in (old, new) for fleet in side.ir.fleets)
    for name in names:
        pair = Pair(_serve(old, name), _serve(new, name))
        changes += compare_requests(pair)
        changes += compare_streams(pair)
        changes += compare_hosts(pair)
        changes += compare_endpoints(pair)
        changes += compare_zones(pair)
        examples += pair.examples
    changes += compare_told(old, new)
    once = tuple(dict.fromkeys(sorted(changes, key=rank_change)))
    return Difference(
        changes=once,
        breaks=any(one.breaks for one in once),
        opens=any(one.opens for one in once),
        examples=examples,
    )


def _serve(translation: Translation, name: str) -> Served:
    """Return a fleet without what its rules say of their files: folders differ, requests do not."""
    found = [one for one in translation.ir.fleets if one.name == name]
    fleet = found[0] if found else ir.Fleet(name=name)
    hosts = tuple(
        msgspec.structs.replace(
            host,
            rules=tuple(msgspec.structs.replace(rule, source="") for rule in host.rules),
        )
        for host in fleet.virtual_hosts
    )
    stripped = msgspec.structs.replace(fleet, virtual_hosts=hosts)
    return Served(stripped, origin=Origin(translation))
