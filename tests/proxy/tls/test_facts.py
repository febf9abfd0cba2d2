"""What is told of a client's TLS: in the access log, in spans, in counters."""

from __future__ import annotations

import ssl

import pytest

from core.fleets import make_fleet, make_host
from core.logs import json_log, text_log
from core.traces import spans_since, traced
from edgefast import ir
from edgefast.core.cells import HANDSHAKES_DONE
from proxy.tls.conftest import Serve
from proxy.tls.site import CA, Server, adopt, client, listener, secret

A = secret("a", CA.issue("a.test"))
LOG = json_log(
    version="%DOWNSTREAM_TLS_VERSION%",
    cipher="%DOWNSTREAM_TLS_CIPHER%",
    group="%DOWNSTREAM_TLS_GROUP%",
    resumed="%DOWNSTREAM_TLS_RESUMED%",
    all="<%DOWNSTREAM_TLS_VERSION% %DOWNSTREAM_TLS_RESUMED%>",
)


def start(serve: Serve, log: ir.AccessLog) -> Server:
    server = serve(adopt(listener("a.test", "a"), a=A))
    server.world.apply(
        make_fleet(
            traced(protocol="HTTPS", log=log),
            make_host(ir.Rule(route="ns/web", index=0, status=204)),
        )
    )
    return server


def done(server: Server) -> dict[str, int]:
    """Handshakes counted, by kind."""
    counts = {name: server.world.counters[f"handshakes_done_{name}"] for name in HANDSHAKES_DONE}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.usefixtures("tickets")
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_of_a_handshake_and_of_one_that_resumes(serve: Serve, version: str) -> None:
    server = start(serve, LOG)
    context = client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2 if version == "1.2" else ssl.TLSVersion.TLSv1_3
    first = server.shake(context, "a.test")
    assert done(server) == {f"{version}_false": 1}
    again = server.shake(context, "a.test", first.session)
    assert again.reused
    assert done(server) == {f"{version}_false": 1, f"{version}_true": 1}
    lines, spans = server.world.lines(), spans_since(server.world, 0)
    assert [line["resumed"] for line in lines] == [False, True]
    assert [line["all"] for line in lines] == [f"<TLSv{version} false>", f"<TLSv{version} true>"]
    for line, span, shaken in zip(lines, spans, (first, again), strict=True):
        cipher = shaken.client.cipher()
        assert cipher is not None
        assert line["version"] == f"TLSv{version}"
        if version == "1.3":
            assert line["cipher"] == cipher[0]
        else:
            assert line["cipher"].startswith("TLS_ECDHE_") and "_WITH_" in line["cipher"]
        assert line["group"] in ("x25519", "X25519MLKEM768", "secp256r1")
        assert span.tls_version.decode() == line["version"]
        assert span.tls_cipher.decode() == line["cipher"]
        assert span.tls_group.decode() == line["group"]
        assert bool(span.tls_resumed) is line["resumed"]


def test_of_a_text_line(serve: Serve) -> None:
    server = start(serve, text_log("%DOWNSTREAM_TLS_VERSION% %DOWNSTREAM_TLS_RESUMED%"))
    server.shake(client(), "a.test")
    assert server.world.texts() == ["TLSv1.3 false"]
