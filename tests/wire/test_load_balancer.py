"""Endpoints by a key over real workers: all of them agree, after a restart too, in whatever order endpoints stand in the objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from origin.answers import Answer, response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site

USERS = [f"u{at}" for at in range(40)]
EACH = 3  # requests, each on a connection of its own


@pytest.fixture(scope="module")
def origins() -> Iterator[list[RecordingOrigin]]:
    """Each answers with its number."""
    with ExitStack() as stack:
        yield [stack.enter_context(RecordingOrigin(_notify(at))) for at in range(4)]


def _notify(at: int) -> Answer:
    def answer(_: Message) -> bytes:
        return response(b"%d" % at)

    return answer


def objects(origins: Sequence[RecordingOrigin], balancer: make.Object) -> list[make.Object]:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "all"}
    return [
        make.route("all", [make.rule("origin")], ["a"]),
        *make.service("origin", [("127.0.0.1", one.port) for one in origins]),
        {
            "apiVersion": "gateway.edge.io/v1alpha1",
            "kind": "BackendTrafficPolicy",
            "metadata": {"name": "balanced", "namespace": "default"},
            "spec": {"targetRefs": [target], "loadBalancer": balancer},
        },
    ]


def find_places(site: Site) -> dict[str, int]:
    """By user: who answers."""
    found = {}
    for user in USERS:
        (place,) = {site.ask(headers=[("x-user", user)]).body for _ in range(EACH)}
        found[user] = int(place)
    return found


def test_workers_agree(origins: list[RecordingOrigin]) -> None:
    by_user = {
        "type": "ConsistentHash",
        "consistentHash": {"type": "Header", "header": {"name": "X-User"}},
    }
    with Site(objects(origins, by_user), workers=2) as site:
        before = find_places(site)
        assert set(before.values()) == {0, 1, 2, 3}
        site.use(objects(origins[1:], by_user))
        fewer = find_places(site)
        assert all(before[user] == at for user, at in fewer.items() if before[user] != 0)
        assert 0 not in fewer.values()
    with Site(objects(origins[::-1], by_user), workers=2) as again:
        assert find_places(again) == before
