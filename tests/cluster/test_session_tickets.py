"""Keys of session tickets in a cluster: all proxies of a fleet have them, no other fleet's do, and nothing takes them away."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from collections.abc import Iterator

import pytest

from cluster.controller_bench import Bench, Process, wait_for
from cluster.world.apiserver import ApiServer
from controller.certs.ticket_key_rotation import Tickets, decode_tickets, derive_for_fleet
from edgefast.xds.ticket_secrets import TicketSecrets
from proxy.handover.test_tickets_go_on import secrets_of
from wire.harness.certificates import Authority

NAME = "edge-gateway-tickets"
HOST = "a.test"
AUTHORITY = Authority()
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.fixture(scope="module")
def bench(apiserver: ApiServer) -> Iterator[Bench]:
    with Bench(apiserver) as made:
        made.add_class()
        yield made


def held(bench: Bench) -> Tickets:
    """Return what the Secret has, once it can be read."""

    def look() -> Tickets | None:
        found = bench.api.get(bench.path("Secret", NAME))
        data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
        try:
            return decode_tickets(data)
        except ValueError:
            return None

    bench.api.wait(bench.path("Secret", NAME), lambda found: found is not None)
    tickets: Tickets = wait_for("keys in the Secret", look)
    return tickets


def given(bench: Bench, fleet: str) -> TicketSecrets:
    return derive_for_fleet(held(bench), f"{bench.namespace}/{fleet}")


def ring(proxy: Process) -> set[bytes]:
    return {one.secret for one in secrets_of(proxy.process.pid)}


def bring_up(bench: Bench, name: str) -> tuple[str, list[Process]]:
    bench.add_gateway(name)
    fleet = bench.fleet(name)
    return fleet, [bench.start_proxy(fleet, pod, f"127.0.0.{pod}") for pod in ("2", "3")]


def test_replicas_of_a_fleet_share_keys_that_no_other_fleet_has(bench: Bench) -> None:
    one, ones = bring_up(bench, "one")
    other, others = bring_up(bench, "other")
    for fleet, proxies in ((one, ones), (other, others)):
        wanted = given(bench, fleet)
        for proxy in proxies:
            wait_for("the fleet's keys", lambda p=proxy, w=wanted: {w.current, w.next} <= ring(p))
    secrets = given(bench, one), given(bench, other)
    all_of_other = set().union(*map(ring, others))
    assert not {secrets[0].current, secrets[0].next} & all_of_other
    # What is derived from is nowhere, and nothing is on a disk or in a log.
    root = held(bench)
    assert not {root.current, root.next} & all_of_other
    hidden = [root.current, root.next, *(key for of in secrets for key in (of.current, of.next))]
    texts = [path.read_bytes() for path in bench.folder.rglob("*") if path.is_file()]
    for secret in hidden:
        forms = (secret, secret.hex().encode(), base64.b64encode(secret))
        assert not any(form in text for form in forms for text in texts)

    # A proxy that starts again, and a controller, find the same keys.
    before = held(bench)
    ones[0].stop()
    again = bench.start_proxy(one, "2", "127.0.0.2")
    wait_for("the keys after a restart", lambda: secrets[0].current in ring(again))
    address = bench.controller.find(r"serving xds=(\S+)")
    assert bench.controller.stop() == 0
    bench.controller = bench.start_controller(xds=address)
    wait_for("it leads", lambda: bench.metric("leader") == 1)
    assert held(bench) == before
    assert secrets[0].current in ring(again)


def ask(sock: ssl.SSLSocket, *headers: bytes) -> None:
    """Ask on an open connection, and read the whole answer."""
    sock.sendall(b"\r\n".join((b"GET / HTTP/1.1", b"Host: " + HOST.encode(), *headers, b"", b"")))
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    answer.read()
    assert answer.status == 404


def visit(
    address: str, port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLSession | None, bool]:
    """A handshake and an answered request with one proxy of a fleet: its session, and whether it goes back to the one given."""
    with socket.create_connection((address, port), 10) as raw:
        sock = context.wrap_socket(raw, server_hostname=HOST, session=session)
        with sock:
            ask(sock, b"Connection: close")
            return sock.session, bool(sock.session_reused)


def serves(at: str, port: int, context: ssl.SSLContext) -> ssl.SSLSession | None:
    """The session of a proxy that answers, None while it does not."""
    try:
        return visit(f"127.0.0.{at}", port, context)[0]
    except OSError:
        return None


def context_of(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = AUTHORITY.client_context()
    context.minimum_version = context.maximum_version = version
    return context


def add_https(bench: Bench, name: str) -> int:
    """A Gateway with one HTTPS listener; returns its port."""
    pair = AUTHORITY.issue([HOST])
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    encoded = {name: base64.b64encode(one).decode() for name, one in data.items()}
    bench.apply("Secret", "shown", None, "v1", type="kubernetes.io/tls", data=encoded)
    tls = {"certificateRefs": [{"name": "shown"}]}
    return bench.add_gateway(name, protocol="HTTPS", tls=tls)


def test_a_client_resumes_at_another_replica(bench: Bench) -> None:
    """In both versions, and at one that was not there when its session began."""
    port = add_https(bench, "https")
    fleet = bench.fleet("https")
    proxies = {at: bench.start_proxy(fleet, at, f"127.0.0.{at}") for at in ("2", "3")}
    current = given(bench, fleet).current
    for proxy in proxies.values():
        wait_for("the fleet's keys", lambda p=proxy: current in ring(p))
    for version in VERSIONS:
        context = context_of(version)
        session = wait_for("a session", lambda c=context: serves("2", port, c))
        wait_for("the other replica", lambda c=context: serves("3", port, c))
        assert visit("127.0.0.3", port, context, session)[1]
        proxies["3"].stop()
        proxies["3"] = bench.start_proxy(fleet, "3", "127.0.0.3")
        wait_for("the keys after a restart", lambda: current in ring(proxies["3"]))
        wait_for("the other replica", lambda c=context: serves("3", port, c))
        assert visit("127.0.0.3", port, context, session)[1]


def test_keys_that_others_know_are_thrown_away(bench: Bench) -> None:
    """As docs/guides/kubernetes.md says: no controller, no Secret, a controller. Their sessions end everywhere, connections live on."""
    port = add_https(bench, "leaked")
    fleet = bench.fleet("leaked")
    proxies = {at: bench.start_proxy(fleet, at, f"127.0.0.{at}") for at in ("2", "3")}
    leaked = held(bench)
    known = given(bench, fleet)
    for at, proxy in proxies.items():
        wait_for("the fleet's keys", lambda p=proxy: known.current in ring(p))
        wait_for("an answer", lambda a=at: serves(a, port, AUTHORITY.client_context()))
    contexts = {version: context_of(version) for version in VERSIONS}
    sessions = {
        version: visit("127.0.0.2", port, context)[0] for version, context in contexts.items()
    }
    for version, context in contexts.items():
        assert visit("127.0.0.3", port, context, sessions[version])[1]
    raw = socket.create_connection(("127.0.0.2", port), 10)
    with contexts[VERSIONS[0]].wrap_socket(raw, server_hostname=HOST) as open_before:
        ask(open_before)
        address = bench.controller.find(r"serving xds=(\S+)")
        assert bench.controller.stop() == 0
        bench.api.delete(bench.path("Secret", NAME))
        ask(open_before)
        bench.controller = bench.start_controller(xds=address)
        fresh = given(bench, fleet)
        assert not {leaked.current, leaked.next} & {held(bench).current, held(bench).next}
        for proxy in proxies.values():
            wait_for("the new keys", lambda p=proxy: fresh.current in ring(p))
            assert not {known.current, known.next} & ring(proxy)
        for at in proxies:
            for version, context in contexts.items():
                after, resumed = visit(f"127.0.0.{at}", port, context, sessions[version])
                assert not resumed
                assert visit("127.0.0.3", port, context, after)[1]
        ask(open_before)
