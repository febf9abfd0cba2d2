"""Request cases over TLS: one of each group, whole, byte by byte (a record each) and pipelined.

Framing must not depend on the transport: the TLS path hands bytes over in other portions than TCP does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.cases import Case, load
from wire.harness.certificates import Authority
from wire.harness.gateway import Gateway
from wire.harness.oracle import judge, settle
from wire.harness.ports import free_port
from wire.harness.reference import expected_messages
from wire.harness.runner import Probe, plan, play

PLAIN, TLS = free_port(), free_port()


def one_of_each_group() -> list[Case]:
    """The first member of each input of the case files that fits this Gateway."""
    chosen: dict[str, Case] = {}
    for case in load("request"):
        group = case.name.partition("[")[0]
        if case.listener == "web" and case.end == "open" and not case.location:
            chosen.setdefault(group, case)
    # On a TLS port https is the right scheme and http the wrong one: those cases are about plain ports.
    return [case for case in chosen.values() if b"://" not in case.data]


@pytest.fixture(scope="module")
def gateway(origin: RecordingOrigin, authority: Authority) -> Iterator[Gateway]:
    pair = authority.issue(["a"])
    objects = [
        make.gateway("plain", [make.listener(PLAIN)]),
        make.gateway("tls", [make.listener(TLS, "tls", "", ["pair"])], "patient"),
        make.edge_proxy("patient", {"headTimeout": "120s"}),  # a byte a record takes its time
        make.route("plain", [make.rule("origin")], parent="plain"),
        make.route("tls", [make.rule("origin")], parent="tls"),
        make.tls_secret("pair", pair.certificate, pair.key),
        *make.service("origin", [("127.0.0.1", origin.port)]),
    ]
    with Gateway(objects) as running:
        yield running


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in one_of_each_group()])
def test_case_over_tls(
    case: Case, gateway: Gateway, origin: RecordingOrigin, authority: Authority
) -> None:
    """The same verdict as over TCP."""
    context = authority.client_context()
    context.check_hostname = False
    references = expected_messages(case)
    probe = Probe(gateway)
    origin.take()
    try:
        for group in plan(case):
            if len(group) > 2 or group[0].way.startswith("split"):
                continue
            play(group, ("127.0.0.1", TLS), probe, case.end, tls=context)
            judge(case, references, group, settle(origin, ("127.0.0.1", PLAIN)))
    finally:
        probe.close()
