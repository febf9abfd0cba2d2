"""Out of something: file descriptors, ports, patience. The proxy goes on, says so, and recovers."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from origin.recording import RecordingOrigin
from origin.scripted import Peer, ScriptedOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import Client, NoResponse, build_request
from wire.harness.site import Site, shared


def objects_for(port: int) -> list[make.Object]:
    """Everything to one origin."""
    return [
        make.route("all", [make.rule("origin")]),
        *make.service("origin", [("127.0.0.1", port)]),
    ]


def serves(site: Site) -> bool:
    """A fresh connection is answered."""
    try:
        return site.ask().status == 200
    except NoResponse:
        return False


def is_asleep(pids: list[int]) -> bool:
    """All of them wait for something whenever one looks; one that spins is found running."""
    return all(proc.state(pid) == "S" for _ in range(200) for pid in pids)


def test_out_of_file_descriptors() -> None:
    """More clients than descriptors: no crash, no spinning, and service as before once they have gone."""
    with RecordingOrigin() as origin:
        with Site(objects_for(origin.port), prefix=["prlimit", "--nofile=100:100"]) as site:
            assert site.ask().status == 200
            with ExitStack() as stack:
                clients = [stack.enter_context(site.client()) for _ in range(200)]
                for client in clients:
                    client.expect("GET")
                    client.send(build_request())
                served = 0
                for client in clients:
                    with suppress(NoResponse):
                        served += client.read_response().status in (
                            200,
                            503,
                        )  # 503: none left to connect
                    assert client.ended != "timeout", "neither served nor turned away"
                assert 20 <= served < 200
                site.wait_until(lambda: is_asleep(site.worker_pids), "worker that sleeps")
            site.wait_until(lambda: serves(site), "service")


def test_more_requests_than_backend_connections() -> None:
    """A backend that answers nobody: the requests beyond its connections wait or get 503, and all of them end."""

    def script(peer: Peer) -> None:
        peer.read_to_end()

    with ScriptedOrigin(script) as origin:
        objects = [
            make.route("all", [make.rule("origin", timeouts={"request": "1s"})]),
            *make.service("origin", [("127.0.0.1", origin.port)]),
        ]
        with shared(objects) as site, ExitStack() as stack:
            clients = [stack.enter_context(site.client()) for _ in range(300)]
            for client in clients:
                client.expect("GET")
                client.send(build_request())
            assert {client.read_response().status for client in clients} <= {503, 504}
        assert len(origin.connections) <= 1024


def test_connection_churn() -> None:
    """Thousands of connections that come and go in all ways leave nothing behind."""
    with RecordingOrigin() as origin, shared(objects_for(origin.port)) as site:

        def of_clients() -> int:
            """Those to the origin wait for the next request; how many there are depends on who left while one was made."""
            found = proc.connections(site.worker_pids)
            return sum(one.remote_port != origin.port for one in found)

        before = of_clients()
        for number in range(1500):
            client = Client(("127.0.0.1", site.port))
            if number % 5:
                client.expect("GET")
                client.send(build_request()[: 1 + (number * 7) % 40])
            if number % 3 == 0:
                client.reset()
            elif number % 3 == 1:
                client.finish()
            client.close()
        site.check_no_leak()
        assert of_clients() <= before + 2
        assert site.ask().status == 200
