"""What `edgefast run` says at its start is true: hosts of listeners are theirs, and every command that it names reaches its rule."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast import ir
from edgefast.proxy.pipelines.example_commands import list_hosts, write_commands
from proxy.command import Start, gateway_class, save, start, tls_secret
from proxy.pki import Authority
from wire.harness.ports import free_port
from wire.harness.programs import ALONE

__all__ = ["start"]

ANY, EXACT = ir.Match(kind="prefix", path=""), ir.Match(kind="exact", path="/one")


def fleet(*listeners: ir.Listener, hosts: dict[tuple[str, str], tuple[ir.Match, ...]]) -> ir.Fleet:
    """Each host has a rule of its own that redirects."""
    return ir.Fleet(
        name="",
        listeners=listeners,
        virtual_hosts=tuple(
            ir.VirtualHost(
                listener=listener,
                hostname=hostname,
                rules=(
                    ir.Rule(
                        route=f"ns/{listener}-{hostname}",
                        index=0,
                        redirect=ir.Redirect(hostname="to.test"),
                    ),
                ),
                entries=tuple(ir.Entry(match=one, rule=0) for one in matches),
            )
            for (listener, hostname), matches in hosts.items()
        ),
    )


def listener(name: str, hostname: str = "*", port: int = 80, **others: Any) -> ir.Listener:
    return ir.Listener(
        name=name, port=port, bind_port=port, protocol="HTTP", hostname=hostname, **others
    )


@pytest.mark.pure
def test_hosts_are_what_listener_and_route_both_allow() -> None:
    one = fleet(
        listener("any"),
        listener("shop", "shop.example.com"),
        listener("wide", "*.example.com"),
        hosts={
            ("any", "*"): (ANY,),
            ("any", "shop.example.com"): (ANY,),  # the nearer listener has it
            ("any", "other.test"): (ANY,),
            ("shop", "*"): (ANY,),
            ("wide", "*.a.example.com"): (ANY,),
            ("wide", "*"): (ANY,),
        },
    )
    assert list_hosts(one) == {
        "any": ["*", "other.test"],
        "shop": ["shop.example.com"],
        "wide": ["*.a.example.com", "*.example.com"],
    }


def commands(one: ir.Fleet, *places: tuple[str, int]) -> list[str]:
    return list(write_commands(one, None, places or (("0.0.0.0", 80), ("::", 80))))


@pytest.mark.pure
def test_a_wildcards_example_is_no_other_hosts() -> None:
    one = fleet(
        listener("l"),
        hosts={("l", "*.example.com"): (ANY,), ("l", "any.example.com"): (EXACT,)},
    )
    assert (
        commands(one)
        == [
            "curl -i --resolve other.example.com:80:127.0.0.1 http://other.example.com:80/",
            "curl -i --resolve any.example.com:80:127.0.0.1 http://any.example.com:80/one",
            "curl -i --resolve other.example.com:80:127.0.0.1 http://other.example.com:80/any",
        ][:2]
    )


@pytest.mark.pure
def test_any_host_is_localhost_unless_somebody_else_has_that() -> None:
    plain = fleet(listener("l"), hosts={("l", "*"): (ANY,)})
    assert commands(plain) == ["curl -i http://localhost:80/"]
    taken = fleet(listener("l"), hosts={("l", "*"): (ANY,), ("l", "localhost"): (EXACT,)})
    # What the nearer host has no rule for is the other's: /one alone is not.
    assert "curl -i http://localhost:80/" in commands(taken)
    assert "curl -i http://localhost:80/one" in commands(taken)


@pytest.mark.pure
def test_the_address_is_one_that_is_bound() -> None:
    one = fleet(listener("l"), hosts={("l", "*"): (ANY,)})
    assert commands(one, ("192.0.2.1", 80)) == [
        "curl -i --resolve localhost:80:192.0.2.1 http://localhost:80/"
    ]
    assert commands(one, ("2001:db8::1", 80)) == [
        "curl -i --resolve 'localhost:80:[2001:db8::1]' http://localhost:80/"
    ]
    assert commands(one, ("::", 80)) == ["curl -i http://localhost:80/"]
    assert commands(one, ("0.0.0.0", 81)) == []


@pytest.mark.pure
def test_what_a_request_needs_is_in_it() -> None:
    match = ir.Match(
        kind="exact",
        path="/a[b]",
        method="POST",
        headers=(ir.ValueMatch(name="x-user", value="one two"),),
        query=(ir.ValueMatch(name="q", value="x&y"),),
    )
    head = ir.Match(kind="exact", path="/head", method="HEAD")
    secret = ir.Match(
        kind="exact", path="/key", headers=(ir.ValueMatch(name="x-api-key", value="s"),)
    )
    required = ir.HttpSettings(client_address=ir.ClientAddress(proxy_protocol="required"))
    one = fleet(listener("l", http=required), hosts={("l", "*"): (match, secret, head)})
    assert commands(one) == [
        "curl -i -g -X POST --haproxy-protocol -H 'x-user: one two' 'http://localhost:80/a[b]?q=x%26y'",
        "curl -i --head --haproxy-protocol http://localhost:80/head",
    ]


@pytest.mark.pure
def test_every_listener_and_route_comes_before_a_second_of_one() -> None:
    many = tuple(ir.Match(kind="exact", path=f"/{number}") for number in range(5))
    hosts = {(name, host): many for name in ("a", "b") for host in ("one.test", "two.test")}
    one = fleet(listener("a", port=80), listener("b", port=81), hosts=hosts)
    told = commands(one, ("127.0.0.1", 80), ("127.0.0.1", 81))
    assert len(told) == 8
    assert [line.rpartition("/")[2] for line in told] == ["0"] * 4 + ["1"] * 4
    assert len({line.rpartition("/")[0] for line in told[:4]}) == 4


@pytest.mark.pure
def test_no_command_meets_an_error() -> None:
    one = fleet(listener("l"), hosts={("l", "a.test"): (ANY,)})
    (host,) = one.virtual_hosts
    broken = ir.Rule(route="ns/broken", index=0, status=500)
    shut = ir.VirtualHost(listener="l", hostname="b.test", rules=(broken,), entries=host.entries)
    both = ir.Fleet(name="", listeners=one.listeners, virtual_hosts=(host, shut))
    assert all("b.test" not in line for line in commands(both)) and commands(both)


@pytest.mark.wire
def test_commands_do_what_they_say(start: Start, tmp_path: Path) -> None:
    """All of them are run, as a shell would, and are answered by the routes."""
    assert shutil.which("curl")
    port, secure, authority = free_port(), free_port(), Authority()
    text = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: default}}
spec:
  gatewayClassName: edge
  listeners:
  - {{name: shop, protocol: HTTP, port: {port}, hostname: shop.example.com}}
  - {{name: any, protocol: HTTP, port: {port}}}
  - name: tls
    protocol: HTTPS
    port: {secure}
    hostname: "*.example.com"
    tls: {{certificateRefs: [{{name: cert}}]}}
"""
    rules: dict[str, dict[str, Any]] = {
        "none": {},
        "named": {"hostnames": ["www.example.com", "shop.example.com"]},
        "wild": {"hostnames": ["*.example.com"]},
        "head": {"matches": [{"path": {"value": "/head"}, "method": "HEAD"}]},
        "header": {"matches": [{"headers": [{"name": "x-user", "value": "it's"}]}]},
    }
    routes = [
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "parentRefs": [{"name": "edge"}],
                **({"hostnames": one["hostnames"]} if "hostnames" in one else {}),
                "rules": [
                    {
                        **({"matches": one["matches"]} if "matches" in one else {}),
                        "filters": [
                            {
                                "type": "RequestRedirect",
                                "requestRedirect": {"hostname": f"{name}.to.test"},
                            }
                        ],
                    }
                ],
            },
        }
        for name, one in rules.items()
    ]
    secret = tls_secret(authority.issue("*.example.com"))
    save(tmp_path / "a.yaml", gateway_class(), *yaml.safe_load_all(text), secret, *routes)
    run = start("-f", str(tmp_path / "a.yaml"), "--workers", "1")
    run.wait_ready()
    run.until(lambda: "try\n" in run.said, "banner")
    assert f"default/edge/shop on http://127.0.0.1:{port}: shop.example.com\n" in run.said
    lines = re.findall(r"\]   (curl .*)$", run.said, re.M)
    assert len(lines) == 8
    seen = set()
    for line in lines:
        done = subprocess.run(
            shlex.split(line), capture_output=True, text=True, timeout=60, env=ALONE
        )
        assert done.returncode == 0, (line, done.stderr)
        assert " 302 " in done.stdout.splitlines()[0], (line, done.stdout)
        found = re.search(r"^location: \w+://(\w+)\.to\.test", done.stdout, re.M)
        assert found is not None
        seen.add((found[1], "https" in line))
    assert {name for name, _ in seen} == {*rules} and any(tls for _, tls in seen)
