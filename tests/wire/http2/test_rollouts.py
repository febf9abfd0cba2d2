"""A rollout of backends that speak HTTP/2, under load: no request is lost, and those that come spread over who comes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from wire.harness import objects as make
from wire.harness.client import Client, NoResponse
from wire.harness.site import Site
from wire.http2.pods import Pod, Pods

SHARE = 5  # requests that a new pod has to see before the next one goes


class Load:
    """Clients that send POSTs with a body, one after the other, each on its connection; every tenth waits for its pod to end."""

    def __init__(self, port: int, clients: int, *, slow: bool) -> None:
        self.bad: list[object] = []
        self.good = 0
        self._stop = threading.Event()
        self._port = port
        waits = [slow and number % 10 == 9 for number in range(clients)]
        made = [threading.Thread(target=self._run, args=one) for one in enumerate(waits)]
        self.fast = [one for one, waiting in zip(made, waits, strict=True) if not waiting]
        self.slow = [one for one, waiting in zip(made, waits, strict=True) if waiting]

    def _run(self, number: int, slow: bool) -> None:
        body = b"%d" % number * 100
        path = "/slow" if slow else "/"
        while not self._stop.is_set():
            with Client(("127.0.0.1", self._port), deadline=60.0) as client:
                closes = False
                while not closes and not self._stop.is_set():
                    try:
                        answer = client.request("POST", path, body=body)
                    except NoResponse as error:
                        self.bad.append(error)
                        return
                    if (answer.status, answer.body) == (200, body):
                        self.good += 1
                    else:
                        self.bad.append((answer.status, answer.headers))
                    closes = answer.closes  # it has had its requests (maxRequestsPerConnection)

    @contextmanager
    def running(self) -> Iterator[Load]:
        """All clients at work; stop() before what they wait for ends."""
        for thread in self.fast + self.slow:
            thread.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        """No further requests."""
        self._stop.set()

    @staticmethod
    def join(threads: list[threading.Thread]) -> None:
        """These have had their last answer."""
        for thread in threads:
            thread.join(60.0)
            assert not thread.is_alive()


def objects(pods: list[Pod]) -> list[make.Object]:
    """One route to these pods."""
    return [
        make.route("all", [make.rule("origin")]),
        *make.service(
            "origin",
            [("127.0.0.1", pod.port) for pod in pods],
            app_protocol="kubernetes.io/h2c",
        ),
    ]


def roll(pods: Pods, site: Site, serving: list[Pod], *, ends_first: bool) -> None:
    """One pod more, which gets its share; the oldest one goes."""
    serving.append(pods.start())
    site.apply(site.with_gateway(objects(serving)))
    new = serving[-1]
    site.wait_until(lambda: new.asked >= SHARE, "the new endpoint has its share")
    old = serving.pop(0)
    if ends_first:
        pods.end(old)
    site.apply(site.with_gateway(objects(serving)))
    if not ends_first:
        pods.end(old)


#: Changes: one endpoint comes or goes.
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("changes", [12, pytest.param(1000, marks=pytest.mark.heavy)])
@pytest.mark.parametrize(
    ("clients", "ends_first"),
    [(20, False), (3, True)],  # of those that find nobody at an endpoint three at once go on
    ids=["endpoints know first", "pods end first"],
)
def test_a_rollout_loses_nothing(changes: int, clients: int, ends_first: bool) -> None:
    with Pods() as pods:
        serving = [pods.start() for _ in range(3)]
        with Site(objects(serving)) as site:
            load = Load(site.port, clients, slow=not ends_first)
            with load.running():
                for _ in range(changes // 2):
                    roll(pods, site, serving, ends_first=ends_first)
                    assert load.bad == []
            load.join(load.fast)
            site.wait_until(
                lambda: (
                    sum(len(pod.held) for pod in serving)
                    == sum(one.is_alive() for one in load.slow)
                ),
                "all that are left wait for a pod to end",
            )
            for pod in list(serving):
                pods.end(pod)
            load.join(load.slow)
            assert load.bad == []
            assert load.good > changes
