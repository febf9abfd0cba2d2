"""What routes and clusters have read, and what goes without saying. Pure."""

from __future__ import annotations

import pytest

from edgefast.collections.sorted_map import EMPTY
from edgefast.translate import Settings, translate
from edgefast.translate.deps.cluster_ref import ClusterRef
from edgefast.translate.deps.dependency_facts import Fact, is_read
from edgefast.translate.deps.intern import KEPT, intern
from edgefast.translate.deps.readers import Readers, find_readers, follow
from tests.translate import world

pytestmark = pytest.mark.pure

SERVICE = ClusterRef("service", "app", "web", 80, "")
OTHER = ClusterRef("service", "app", "web-2", 80, "")
BACKEND = ClusterRef("backend", "app", "web", 0, "")


@pytest.mark.parametrize(
    ("fact", "ref", "read"),
    [
        (("Service", "app", "web"), SERVICE, True),
        (("Policy", "app", "web"), SERVICE, True),
        (SERVICE, SERVICE, True),
        (("Slices", "app", "web"), SERVICE, False),  # a rollout of pods is the cluster's affair
        (("Service", "app", "web"), OTHER, False),
        (("Service", "app", "web"), BACKEND, False),
        (("Backend", "app", "web"), BACKEND, True),
    ],
)
def test_who_has_read_a_cluster_has_read_what_its_name_says(
    fact: Fact, ref: ClusterRef, read: bool
) -> None:
    draft = EMPTY.edit()
    follow(draft, "reader", after=(("Gateway", "app", "gw"), ref))
    readers: Readers[str] = draft.done()
    assert (find_readers(readers, [fact]) == {"reader"}) == read
    assert is_read({fact}, (ref,)) == read
    follow(draft, "reader", before=(("Gateway", "app", "gw"), ref))
    assert not draft.done()


def test_clusters_note_nothing_that_their_names_say() -> None:
    memo = translate(world.many(3), Settings()).memo
    assert memo.clusters and not memo.cluster_readers
    assert all(one.reads == () for one in memo.clusters.values())
    for one in memo.routes.values():
        assert sorted({read[0] for read in one.reads}) == ["Gateway", "service"]


def test_what_routes_have_in_common_is_there_once() -> None:
    memo = translate(world.many(3), Settings()).memo
    first, second, _ = memo.routes.values()
    assert first.status is second.status
    assert first.listeners is second.listeners
    assert first.hosts[0][2].candidates is second.hosts[0][2].candidates
    for number in range(2 * KEPT):
        assert intern(("n", str(number))) == ("n", str(number))
    assert intern.cache_info().currsize <= KEPT  # type: ignore[attr-defined]
