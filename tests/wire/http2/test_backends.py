"""EdgeProxy spec.http2.upstream: what a file says is what a backend sees."""

from __future__ import annotations

import functools
from contextlib import ExitStack

from h2.settings import SettingCodes

from wire.harness import objects as make
from wire.harness.client import Client, build_request
from wire.harness.site import Site
from wire.http2.pods import Pods

UPSTREAM = {
    "maxConcurrentStreams": 4,
    "initialStreamWindowSize": "128KiB",
    "initialConnectionWindowSize": "2MiB",
    "keepalivePing": "1s",
}


def test_settings_reach_the_backend() -> None:
    with Pods() as pods, ExitStack() as stack:
        pod = pods.start()
        origin = make.service("origin", [("127.0.0.1", pod.port)], app_protocol="kubernetes.io/h2c")
        site = Site(
            [make.route("all", [make.rule("origin")]), *origin],
            settings={"http2": {"upstream": UPSTREAM}},
        )
        stack.enter_context(site)
        clients = [
            stack.enter_context(Client(("127.0.0.1", site.port), deadline=60.0)) for _ in range(10)
        ]

        def held(count: int) -> bool:
            return len(pod.held) == count

        for number, client in enumerate(clients):
            client.expect("POST")
            client.send(build_request("POST", "/slow", body=b"%d" % number))
            site.wait_until(functools.partial(held, number + 1), "it is there")
        links = pod.backend.links
        assert max(len(link.asks) for link in links) <= 4 and len(links) >= 3
        for link in links:
            settings = link.frames.remote_settings
            assert settings[SettingCodes.INITIAL_WINDOW_SIZE] == 128 * 1024
            assert link.frames.outbound_flow_control_window == 2 * 1024 * 1024
        site.wait_until(lambda: pod.backend.pings >= len(links), "each of them is asked")
        pods.end(pod)
        for number, client in enumerate(clients):
            assert client.read_response().body == b"%d" % number
