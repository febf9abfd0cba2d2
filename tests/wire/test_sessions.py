"""Sessions over real workers: all of them agree, another proxy that has never seen them too, and junk is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.site import Site
from wire.test_load_balancer import _notify

TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "all"}


@pytest.fixture(scope="module")
def origins() -> Iterator[list[RecordingOrigin]]:
    """Each answers with its number."""
    with ExitStack() as stack:
        yield [stack.enter_context(RecordingOrigin(_notify(at))) for at in range(4)]


def objects(origins: Sequence[RecordingOrigin], **rule: Any) -> list[make.Object]:
    return [
        make.route("all", [make.rule("origin", **rule)], ["a"]),
        *make.service("origin", [("127.0.0.1", one.port) for one in origins]),
    ]


def policy(session: make.Object) -> make.Object:
    return {
        "apiVersion": "gateway.edge.io/v1alpha1",
        "kind": "BackendTrafficPolicy",
        "metadata": {"name": "kept", "namespace": "default"},
        "spec": {"targetRefs": [TARGET], "sessionPersistence": session},
    }


def test_workers_and_proxies_agree(origins: list[RecordingOrigin]) -> None:
    session = {"cookie": {"name": "sid"}, "absoluteTimeout": "1h"}
    given: dict[str, bytes] = {}
    with Site(objects(origins, sessionPersistence=session), workers=2) as site:
        while len(set(given.values())) < 4:
            answer = site.ask()
            line = answer.value("set-cookie") or ""
            given[line.partition(";")[0]] = answer.body
        for pair, place in given.items():
            for _ in range(4):  # connections of their own
                answer = site.ask(headers=[("cookie", pair)])
                assert answer.body == place
                assert answer.value("set-cookie") is None
    # Another proxy, to which a policy says the same, and the order of endpoints is another.
    with Site([*objects(origins[::-1]), policy(session)], workers=2) as again:
        for pair, place in given.items():
            assert again.ask(headers=[("cookie", pair)]).body == place
