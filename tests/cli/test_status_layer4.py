"""`edgefast status` of a proxy with listeners of layer 4: TCP and UDP of one number are two ports."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cli.admin_server import AdminServer
from cli.calling import call

pytestmark = pytest.mark.pure


def listener(name: str, protocol: str, port: int) -> dict[str, Any]:
    return {"name": f"ns/gw/{name}", "port": port, "bind_port": port, "protocol": protocol}


def stream_route(route: str, listener: str, hostname: str = "*") -> dict[str, Any]:
    return {"route": route, "listener": f"ns/gw/{listener}", "hostname": hostname}


def bound(transport: str, port: int, address: str = "192.0.2.1") -> dict[str, Any]:
    return {"address": address, "port": port, "transport": transport}


def ask(*ports: dict[str, Any], listeners: list[dict[str, Any]] | None = None) -> Any:
    dump = {
        "agent": {"pid": 7, "phase": "serving", "bound": list(ports)},
        "workers": [{"worker": 0, "pid": 8, "version": "feed", "restarts": 0}],
        "problems": [],
        "table": {"version": "feed"},
        "listeners": listeners
        or [listener("tcp", "TCP", 53), listener("udp", "UDP", 53), listener("tls", "TLS", 443)],
        "virtual_hosts": [],
        "stream_routes": [
            stream_route("tcproute/ns/db", "tcp"),
            stream_route("udproute/ns/dns", "udp"),
            stream_route("tlsroute/ns/safe", "tls", "a.test"),
            stream_route("tlsroute/ns/safe", "tls", "b.test"),
        ],
    }
    page = (200, b'edgefast_info{version="9",table="feed",tls="x"} 1\nedgefast_ready 1\n')
    answers = {"/version": {"version": "9", "table": "feed"}, "/dump": dump, "/metrics": page}
    with AdminServer(answers) as server:
        done = call("status", "--admin", server.address, "--interval", "0", "-o", "json")
    return orjson.loads(done.out)


def test_routes_stand_at_their_listeners() -> None:
    told = ask(bound("TCP", 53), bound("UDP", 53), bound("TCP", 443))
    (one,) = told["gateways"]
    assert (one["name"], one["programmed"], one["addresses"]) == ("ns/gw", "True", ["192.0.2.1"])
    rows = [(row["name"], row["protocol"], row["routes"]) for row in told["listeners"]]
    assert rows == [("tcp", "TCP", 1), ("udp", "UDP", 1), ("tls", "TLS", 1)]
    assert {row["name"]: row["hostnames"] for row in told["routes"]} == {
        "tcproute/ns/db": ["*"],
        "tlsroute/ns/safe": ["a.test", "b.test"],
        "udproute/ns/dns": ["*"],
    }


@pytest.mark.parametrize(("there", "missing"), [("TCP", "udp"), ("UDP", "tcp")])
def test_one_of_two_protocols_of_a_port_is_not_the_other(there: str, missing: str) -> None:
    told = ask(bound(there, 53), bound("TCP", 443))
    programmed = {row["name"]: row["programmed"] for row in told["listeners"]}
    assert programmed == {"tcp": "True", "udp": "True", "tls": "True"} | {missing: "False"}
    assert told["gateways"][0]["programmed"] == "False"


def test_a_listener_has_its_own_addresses_alone() -> None:
    """The port is bound at another Gateway's address, not at this one's."""
    own = {**listener("tcp", "TCP", 53), "addresses": ["192.0.2.7"]}
    other = {**listener("tcp", "TCP", 53), "name": "ns/other/tcp", "addresses": ["192.0.2.1"]}
    told = ask(bound("TCP", 53), listeners=[own, other])
    rows = {one["name"]: (one["programmed"], one["addresses"]) for one in told["gateways"]}
    assert rows == {"ns/gw": ("False", []), "ns/other": ("True", ["192.0.2.1"])}
    assert [one["programmed"] for one in told["listeners"]] == ["False", "True"]
