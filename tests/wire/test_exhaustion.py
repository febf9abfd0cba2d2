"""Out of something: file descriptors, ports, patience. The proxy goes on, says so, and recovers."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness import proc
from wire.harness.client import NoResponse, build_request
from wire.harness.site import Site


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
