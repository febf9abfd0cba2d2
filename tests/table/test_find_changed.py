"""find_changed: what two fleets do not share, whatever kind of sequence each has its hosts in."""

from __future__ import annotations

import msgspec
import pytest

from edgefast.collections.sorted_map import SortedMap, Values, values_of
from edgefast.table import compile_fleet
from edgefast.table.compile import find_changed
from tests.table.tables import make_fleet, prefix_host

pytestmark = pytest.mark.pure


def test_hosts_that_come_as_another_kind_of_sequence_cost_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fleet that is joined of two is of tuples, though its shards came of maps."""
    hosts = {f"h{at:04}": prefix_host(f"h{at:04}", ["/a"]) for at in range(1000)}
    mapped = msgspec.structs.replace(make_fleet(), virtual_hosts=values_of(SortedMap(hosts)))
    shards = compile_fleet(mapped)
    first = prefix_host("a", ["/a"])
    joined = msgspec.structs.replace(mapped, virtual_hosts=(first, *hosts.values()))
    assert find_changed(mapped.virtual_hosts, joined.virtual_hosts) == ([], [first])
    assert compile_fleet(joined, shards).version == compile_fleet(joined).version
    read = []
    monkeypatch.setattr(Values, "__getitem__", lambda _, at: read.append(at))
    find_changed(mapped.virtual_hosts, joined.virtual_hosts)
    find_changed(joined.virtual_hosts, mapped.virtual_hosts)
    assert read == [], "it is walked, not looked up place by place"
