"""Diff: diff(), what changes for requests from one set of objects to another.

In: two translations. Out: a `Difference`: different responses to example requests (compare.py). It
also has different statuses of objects (listener_diff.py, status_diff.py). Granted access and broken
traffic come first.
Must never: do I/O.
"""

from __future__ import annotations

import msgspec

from edgefast import ir
from edgefast.explain.changes import Change, Difference, rank_change
from edgefast.explain.compare import compare_requests
from edgefast.explain.fleet_pair import Pair
from edgefast.explain.layer4_diff import compare_streams
from edgefast.explain.listener_diff import compare_endpoints, compare_hosts
from edgefast.explain.made_names import pair_names
from edgefast.explain.served_fleet import Served
from edgefast.explain.source_location import Origin
from edgefast.explain.status_diff import compare_statuses
from edgefast.explain.zone_diff import compare_zones
from edgefast.translate.translation import Translation


def diff_translations(old: Translation, new: Translation) -> Difference:
    """Compare fleet by fleet; a fleet that one side has not is empty there."""
    changes: list[Change] = []
    examples = 0
    names = dict.fromkeys(fleet.name for side in (old, new) for fleet in side.ir.fleets)
    for name in names:
        before, after = _fleet_of(old, name), _fleet_of(new, name)
        pair = Pair(
            Served(pair_names(before, after, old), origin=Origin(old)),
            Served(pair_names(after, before, new), origin=Origin(new)),
        )
        changes += compare_requests(pair)
        changes += compare_streams(pair)
        changes += compare_hosts(pair)
        changes += compare_endpoints(pair)
        changes += compare_zones(pair)
        examples += pair.examples
    changes += compare_statuses(old, new)
    once = tuple(dict.fromkeys(sorted(changes, key=rank_change)))
    return Difference(
        changes=once,
        breaks=any(one.breaks for one in once),
        opens=any(one.opens for one in once),
        examples=examples,
    )


def _fleet_of(translation: Translation, name: str) -> ir.Fleet:
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
    return msgspec.structs.replace(fleet, virtual_hosts=hosts)
