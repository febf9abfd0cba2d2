"""Tables for the config stream's tests."""

from __future__ import annotations

from edgefast.table import Shards
from edgefast.table.shards import TYPES, make_resource
from edgefast.xds.batch import Mirror


def table(**clusters: str) -> Shards:
    """Shards with a resource of every type, and these."""
    made = [make_resource(type_, "one", b"1") for type_ in TYPES]
    made += [make_resource("cluster", name, data.encode()) for name, data in clusters.items()]
    resources = {(one.type, one.name): one for one in made}
    return Shards(resources, Mirror(Shards(resources, "")).version)
