"""Filters of a listener in explain and diff: what is said of them, and that nobody loses one without being told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cli.calling import call
from edgefast import ir
from edgefast.explain import RequestSpec, Served
from edgefast.explain.explain import explain

pytestmark = pytest.mark.pure

FILTERS = (Path(__file__).parent / "cases" / "filters.yaml").read_text()
ASKED = """    filters:
      requests:
      - type: ExternalAuth
        externalAuth:
          protocol: HTTP
          backendRef: {name: identity, port: 80}
          http: {path: /check, allowedResponseHeaders: [x-tenant]}
"""
NAME = "listener/ns/gw/http#filters.requests[0]"


@pytest.mark.parametrize(
    ("old", "new", "said", "status"),
    [
        (ASKED, "", "authorization service no longer called", 3),
        ("path: /check", "path: /other", "other policies", 1),
        ("{name: identity, port: 80}\n          http", "{name: nobody, port: 80}\n          http", "500", 3),
    ],
)  # fmt: skip
def test_a_change_of_filters_is_told(
    tmp_path: Path, old: str, new: str, said: str, status: int
) -> None:
    assert old in FILTERS
    (tmp_path / "old.yaml").write_text(FILTERS)
    (tmp_path / "new.yaml").write_text(FILTERS.replace(old, new, 1))
    outcome = call("diff", str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"))
    assert said in outcome.out
    assert outcome.status == status


def serve(*units: ir.PolicyUnit, endpoints: bool = True) -> Served:
    """A listener with that filter, and a rule for a tenant."""
    listener = ir.Listener(
        name="ns/gw/http", port=80, bind_port=80, protocol="HTTP", filters=(NAME,)
    )
    tenant = ir.ValueMatch(name="x-tenant", value="one")
    host = ir.VirtualHost(
        listener="ns/gw/http",
        hostname="*",
        rules=(ir.Rule(route="ns/web", index=0, backends=(ir.BackendRef(cluster="auth"),)),),
        entries=(
            ir.Entry(match=ir.Match(kind="prefix", path="/a", headers=(tenant,)), rule=0),
            ir.Entry(match=ir.Match(kind="prefix", path="/b"), rule=0),
        ),
    )
    there = (ir.Endpoint(address="10.0.0.1", port=80),) if endpoints else ()
    fleet = ir.Fleet(
        name="standalone",
        listeners=(listener,),
        virtual_hosts=(host,),
        clusters=(ir.Cluster(name="auth", endpoints=there),),
        policies=units,
    )
    return Served(fleet)


UNIT = ir.PolicyUnit(
    name=NAME, ext_auth=ir.ExtAuth(backends=(ir.AuthBackend("auth"),), to_backend=("x-tenant",))
)


def ask(served: Served, path: str, *headers: tuple[str, str]) -> tuple[int, str, tuple[str, ...]]:
    """Status or 0, check and whom it asks first."""
    said = explain(served, RequestSpec(host="a", target=path, headers=headers))
    (one,) = said.answers
    return one.status, one.check, one.asks


def test_the_clients_word_chooses_no_rule() -> None:
    assert ask(serve(UNIT), "/a", ("x-tenant", "one")) == (404, "rule", ("auth",))
    assert ask(serve(UNIT), "/b") == (0, "forwarded", ("auth",))
    said = explain(serve(UNIT), RequestSpec(host="a", target="/b"))
    assert [(one.name, one.verdict) for one in said.policies] == [(NAME, "asks")]
    assert any("x-tenant" in note for note in said.notes)


def test_one_that_is_not_there_or_cannot_be_asked() -> None:
    for path in ("/b", "/nowhere"):
        assert ask(serve(), path) == (500, "policy_invalid", ())
        assert ask(serve(UNIT, endpoints=False), path) == (403, "auth_service", ())


def test_the_largest_body_that_it_is_shown() -> None:
    assert UNIT.ext_auth is not None
    shown = msgspec.structs.replace(UNIT, ext_auth=msgspec.structs.replace(UNIT.ext_auth, body=10))
    large = ask(serve(shown), "/nowhere", ("content-length", "11"))
    assert large == (413, "body_size", ())
