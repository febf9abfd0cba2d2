"""Backends that fail in all ways at once: no client gets the answer of another. Each fault alone: core/h1/test_faults, core/exchange/test_timeouts."""

from __future__ import annotations

import threading
import time

from origin.answers import response
from origin.scripted import Peer, ScriptedOrigin
from wire.harness.client import Client, NoResponse
from wire.harness.scenes import objects_for
from wire.harness.site import Site, shared


def test_nothing_for_the_wrong_client() -> None:
    """Under all faults at once each client gets its own answer or an error, never another's."""
    chosen = [0]
    lock = threading.Lock()

    def script(peer: Peer) -> None:
        while (message := peer.read_request()) is not None:
            with lock:
                chosen[0] += 1
                turn = chosen[0] % 7
            whole = response(message.target)
            if turn == 1:
                peer.reset()
                return
            if turn == 2:
                peer.send(whole[:-3])
                return
            if turn == 3:
                peer.send(whole + response(b"poison"))
                continue
            if turn == 4:
                peer.send(b"junk\r\n\r\n")
                return
            if turn == 5:
                peer.send(whole[:20])
                time.sleep(0.005)
                peer.send(whole[20:])
                continue
            peer.send(whole)

    wrong: list[str] = []

    def work(site: Site, number: int) -> None:
        client: Client | None = None
        for turn in range(40):
            target = f"/{number}/{turn}"
            client = client or site.client()
            try:
                answer = client.request("GET", target)
            except NoResponse:
                if client.ended == "timeout":
                    wrong.append(f"{target}: no answer")
                client.close()
                client = None
                continue
            if answer.status == 200 and answer.body != target.encode():
                wrong.append(f"{target}: {answer.body!r}")
            elif answer.status not in (200, 502, 503):
                wrong.append(f"{target}: {answer.status}")
        if client is not None:
            client.close()

    with ScriptedOrigin(script) as origin, shared(objects_for(origin.port)) as site:
        threads = [threading.Thread(target=work, args=(site, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:10]
        site.check_no_leak()
