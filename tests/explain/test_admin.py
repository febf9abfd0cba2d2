"""`edgefast explain --admin` against a running proxy: its table, the endpoints' health, the counters of now."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from msgspec import structs, to_builtins

from cli.admin_server import AdminServer
from cli.calling import call
from edgefast import ir
from edgefast.explain import Served, read_request_spec
from edgefast.explain.dump import read_live
from edgefast.explain.explain import explain
from proxy.command import Process, Start, gateway, gateway_class, save, start
from tests.support import documents
from tests.support.manifest import manifest
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire

__all__ = ["start"]


def objects(port: int, backend: int) -> list[dict[str, Any]]:
    """A limited rule, a large host that is cut into fragments, a Service with one endpoint."""
    many = [
        {
            "matches": [{"path": {"value": f"/p{number}/{'x' * 400}"}}],
            "backendRefs": [{"name": "web", "port": 80}],
        }
        for number in range(15)
    ]
    limited = {
        "name": "limited",
        "matches": [{"path": {"value": "/limited"}}],
        "filters": [
            {
                "type": "ExtensionRef",
                "extensionRef": {
                    "group": "gateway.edge.io",
                    "kind": "RateLimitFilter",
                    "name": "two",
                },
            }
        ],
        "backendRefs": [{"name": "web", "port": 80}],
    }
    header = {"name": "x-user", "type": "Distinct"}
    text = f"""
apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {{name: two, namespace: default}}
spec:
  type: Global
  global:
    rules:
    - clientSelectors: [{{headers: [{orjson.dumps(header).decode()}]}}]
      limit: {{requests: 2, unit: Year}}
---
""" + documents.backend("web", "default", target=f"port: {backend}", address="127.0.0.1")
    routes = [
        manifest(f"HTTPRoute default/r{number}", {"parentRefs": [{"name": "edge"}], "rules": rules})
        for number, rules in enumerate(
            (
                [limited],
                *([dict(one, matches=_moved(one, number)) for one in many] for number in range(20)),
            )
        )
    ]
    return [gateway_class(), gateway(port), *routes, *yaml.safe_load_all(text)]


def _moved(rule: dict[str, Any], number: int) -> list[dict[str, Any]]:
    return [{"path": {"value": f"/r{number}{rule['matches'][0]['path']['value']}"}}]


def ask(run: Process, port: int, path: str, *headers: str) -> tuple[int, dict[str, Any]]:
    words = [word for header in headers for word in ("-H", header)]
    outcome = call(
        "explain",
        "--admin",
        f"127.0.0.1:{run.admin}",
        "-o",
        "json",
        "GET",
        f"http://a.test:{port}{path}",
        *words,
    )
    return outcome.status, orjson.loads(outcome.out)


def test_what_a_proxy_does_now(start: Start, tmp_path: Path) -> None:
    port, backend = free_port(), free_port()
    save(tmp_path / "a.yaml", *objects(port, backend))
    with socket.create_server(("127.0.0.1", backend)):
        run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
        run.wait_ready()
        dump = run.dump()
        assert any(one["type"] == "fragment" for one in dump["virtual_hosts"])

        status, told = ask(run, port, "/limited", "x-user: ann")
        assert status == 0
        assert told["table"] == dump["table"]["version"]
        assert (told["rule"]["route"], told["rule"]["name"]) == ("default/r0", "limited")
        (limit,) = told["limits"]
        assert (limit["counts"], limit["values"], limit["used"]) == (True, {"x-user": "ann"}, 0)

        for name in ("ann", "ann", "bob"):
            send(port, name)
        # The worker has begun with all of them, one after another.
        run.until(
            lambda: active(ask(run, port, "/limited", "x-user: bob")[1]) == 3, "three requests"
        )
        assert b" 429 " in send(port, "ann").recv(4096)
        status, told = ask(run, port, "/limited", "x-user: ann")
        assert status == 1
        (answer,) = told["answers"]
        assert (answer["status"], answer["check"]) == (429, "limit")
        (limit,) = told["limits"]
        assert (limit["used"], limit["remaining"]) == (2, 0)
        assert limit["reset"] > 0
        status, told = ask(run, port, "/limited", "x-user: bob")
        assert (status, told["limits"][0]["remaining"]) == (0, 1)
        (endpoint,) = told["backends"][0]["endpoints"]
        assert endpoint == {"address": f"127.0.0.1:{backend}", "healthy": True, "active": 3}

        status, told = ask(run, port, "/r7/p3/" + "x" * 400 + "/below")
        assert (status, told["rule"]["route"], told["rule"]["index"]) == (0, "default/r8", 3)
        assert ask(run, port, "/r7/p3/" + "x" * 399)[1]["answers"][0]["status"] == 404


def active(told: dict[str, Any]) -> int:
    """Requests under way at the only endpoint, which says nothing of none; -1 when its worker was too busy to say, which is told."""
    (endpoint,) = told["backends"][0]["endpoints"]
    if any("no worker answered" in one for one in told.get("notes", ())):
        return -1
    return int(endpoint.get("active", 0))


def send(port: int, name: str) -> socket.socket:
    """Send a request and leave its answer open: the backend never gives one."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    _OPEN.append(sock)
    sock.sendall(f"GET /limited HTTP/1.1\r\nHost: a.test\r\nx-user: {name}\r\n\r\n".encode())
    return sock


_OPEN: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    while _OPEN:
        _OPEN.pop().close()


RULE = ir.Rule(
    route="ns/web",
    index=0,
    source="generation 7",
    backends=(ir.BackendRef(cluster="service/ns/web/80"),),
    rate_limits=(ir.RateLimit(name="ns/f#0", counter="c", requests=5, unit=60),),
)
FLEET = ir.Fleet(
    name="",
    listeners=(ir.Listener(name="ns/gw/l", port=80, bind_port=80, protocol="HTTP"),),
    virtual_hosts=(
        ir.VirtualHost(
            listener="ns/gw/l",
            hostname="*",
            rules=(RULE,),
            entries=(ir.Entry(match=ir.Match(kind="prefix", path=""), rule=0),),
        ),
    ),
    clusters=(
        ir.Cluster(name="service/ns/web/80", endpoints=(ir.Endpoint(address="10.0.0.1", port=80),)),
    ),
)
NO_COUNTERS: dict[str, Any] = {"counters": [], "complete": True}


def told_by(
    *workers: dict[str, Any],
    limits: dict[str, Any] | str = NO_COUNTERS,
    problems: tuple[str, ...] = (),
    url: str = "http://a.test/x",
) -> tuple[dict[str, Any], str]:
    """What a proxy explains whose workers and store say this, as JSON and as the command shows it."""
    live = structs.replace(read_live({"workers": workers}, limits), problems=problems)
    found = explain(Served(FLEET, live=live, version="abc"), read_request_spec("GET", url))
    with AdminServer({"/explain": to_builtins(found)}) as server:
        outcome = call("explain", "--admin", server.address, "GET", url)
    assert "edgefast explain" not in outcome.err
    return to_builtins(found), outcome.out


def test_workers_that_do_not_answer_are_told() -> None:
    """What they have under way is not in the answer: nobody shall take it for nothing."""
    endpoint = {"address": "10.0.0.1:80", "active": 2, "idle": 0, "healthy": True, "ejections": 0}
    clusters = [{"name": "service/ns/web/80", "endpoints": [endpoint]}]
    there = {"worker": 0, "engine": {"rate_limits": None, "clusters": clusters}}
    silent = {"worker": 1, "error": "no answer in time"}
    told, text = told_by(there, silent)
    assert told["backends"][0]["endpoints"][0]["active"] == 2
    assert (
        "1 of 2 workers did not answer, so endpoints are as the other workers report them" in text
    )
    told, text = told_by(silent)
    assert "active" not in told["backends"][0]["endpoints"][0]
    assert "no worker answered, so endpoints are those of the table" in text
    assert "answer" not in told_by(there)[0].get("notes", "")


def test_endpoints_that_fail_are_told() -> None:
    """One endpoint alone is never ejected: its failures in a row are all that shows why clients get 503."""
    seen = {"address": "10.0.0.1:80", "active": 0, "idle": 0, "healthy": True, "ejections": 0}
    engine = {"rate_limits": None}

    def worker(*failures: int) -> dict[str, Any]:
        endpoints = [
            {**seen, "address": f"10.0.0.{at}:80", "failures": one}
            for at, one in enumerate(failures)
        ]
        return {**engine, "clusters": [{"name": "service/ns/web/80", "endpoints": endpoints}]}

    def ask_of(*engines: dict[str, Any]) -> dict[str, Any]:
        told, text = told_by(*({"worker": at, "engine": one} for at, one in enumerate(engines)))
        return {**told, "text": text}

    failing = ask_of(worker(5, 1), worker(7, 1))
    assert [one.get("failures") for one in failing["backends"][0]["endpoints"]] == [12, 2]
    assert failing["answers"][0]["why"].startswith(
        "the last request to each of its endpoints failed"
    )
    assert "goes to service/ns/web/80: the last request" in failing["text"]
    assert "10.0.0.0:80 in use, its last 12 requests failed in a row" in failing["text"]
    assert "10.0.0.0:80 in use, its last request failed" in ask_of(worker(1, 0))["text"]
    partly = ask_of(worker(5, 0), worker(1, 0))
    assert partly["answers"][0].get("why", "") == ""
    assert "its last 6 requests failed in a row" in partly["text"]
    # One failure of a while ago in a worker that nothing has come to since; the other one answers.
    well = ask_of(worker(1), worker(0))
    assert well["answers"][0].get("why", "") == ""
    assert "10.0.0.0:80 healthy" in well["text"] and "failed" not in well["text"]


@pytest.mark.parametrize(
    ("second", "fails"),
    [
        ({"healthy": True, "failures": 0}, False),
        ({"healthy": True, "failures": 2}, True),
        ({"healthy": False, "failures": 0}, True),
    ],
)
def test_an_ejected_endpoint_fails_where_no_worker_is_well(
    second: dict[str, Any], fails: bool
) -> None:
    """A worker counts anew after an ejection: it has no failures in a row then."""
    workers = [
        {
            "worker": at,
            "engine": {
                "rate_limits": None,
                "clusters": [
                    {
                        "name": "service/ns/web/80",
                        "endpoints": [{"address": "10.0.0.1:80", "active": 0, **one}],
                    }
                ],
            },
        }
        for at, one in enumerate(({"healthy": False, "failures": 0}, second))
    ]
    _, text = told_by(*workers)
    assert ("the last request to each of its endpoints failed" in text) is fails


@pytest.mark.parametrize("told", [[], [1], "text", 7, None, {"request": {}}, {"table": {}}])
def test_what_is_no_explanation_is_said(told: Any) -> None:
    with AdminServer({"/explain": told}) as server:
        outcome = call("explain", "--admin", server.address, "GET", "http://a.test/x")
    assert (outcome.status, outcome.out) == (2, "")
    assert server.address in outcome.err and "Traceback" not in outcome.err
    assert "runs an incompatible release" in outcome.err


def test_an_address_that_is_none_is_wrong_usage() -> None:
    outcome = call("explain", "--admin", "bad", "GET", "http://a.test/x")
    assert outcome.status == 2
    assert "Usage:" in outcome.err and "--admin" in outcome.err
    assert '"bad" is not an address (allowed: ADDRESS:PORT)' in outcome.err


def test_problems_that_the_proxy_knows_are_told_where_nothing_takes_the_request() -> None:
    lost = tuple(f"tls.yaml:{line} Gateway ns/gw spec.listeners[1]: Invalid" for line in range(5))
    _, text = told_by(problems=lost, url="https://a.test/x")
    assert "no listener on port 443" in text
    assert [line for line in lost if f"reported by the proxy: {line}\n" in text] == [*lost[:3]]
    assert "and 2 more problems: edgefast status lists them" in text
    assert "the proxy knows" not in told_by(problems=lost)[1]


def test_nobody_to_ask_is_no_answer() -> None:
    """Exit status 1 would say that the proxy refuses the request."""
    outcome = call("explain", "--admin", "127.0.0.1:1", "GET", "http://a.test/x")
    assert (outcome.status, outcome.out) == (2, "")
    assert "no proxy answers at 127.0.0.1:1" in outcome.err
    with AdminServer({"/explain": (503, b"another request is being explained; try again\n")}) as it:
        outcome = call("explain", "--admin", it.address, "GET", "http://a.test/x")
    assert (outcome.status, outcome.out) == (2, "")
    assert "another request is being explained" in outcome.err


def test_a_worker_and_a_store_that_do_not_answer() -> None:
    _, text = told_by(
        {"worker": 0, "error": "no answer in time"}, limits="the store does not answer: refused"
    )
    assert "goes to service/ns/web/80" in text
    assert "endpoints 10.0.0.1:80" in text
    assert "generation 7 HTTPRoute ns/web spec.rules[0]" in text
    assert "counters are unknown: the store does not answer: refused" in text
