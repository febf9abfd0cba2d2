"""What resources name: read from real tables, and from bytes that are none."""

from __future__ import annotations

import msgspec
import pytest

from edgefast import ir
from edgefast.proxy.tables.references import members_of, named_by, unit_of
from edgefast.table import compile_fleet

pytestmark = pytest.mark.pure


def test_a_cluster_names_its_key_material() -> None:
    tls = ir.UpstreamTls(sni="x", ca="ca", certificate="mine")
    data = msgspec.msgpack.encode(ir.Cluster(name="a", tls=tls))
    assert named_by(("cluster", "a"), data) == {("secret", "ca"), ("secret", "mine")}
    data = msgspec.msgpack.encode(ir.Cluster(name="a", tls=ir.UpstreamTls(sni="x")))
    assert named_by(("cluster", "a"), data) == frozenset()


def test_a_listener_names_its_certificates() -> None:
    tls = ir.ListenerTls(certificates=("rsa", "ec"), client_ca="ca")
    one = ir.Listener(name="a/b/c", port=1, bind_port=1, protocol="HTTPS", tls=tls)
    names = named_by(("listener", "a/b/c"), msgspec.msgpack.encode(one))
    assert names == {("secret", "rsa"), ("secret", "ec"), ("secret", "ca")}


def test_a_listener_names_its_filters() -> None:
    one = ir.Listener(name="a/b/c", port=1, bind_port=1, protocol="HTTP", filters=("f#0", "f#1"))
    names = named_by(("listener", "a/b/c"), msgspec.msgpack.encode(one))
    assert names == {("policy", "f#0"), ("policy", "f#1")}


def test_a_virtual_host_names_all_its_clusters() -> None:
    rules = tuple(
        ir.Rule(
            route="d/r",
            index=index,
            backends=(
                ir.BackendRef(cluster=f"c{index}", mirrors=(ir.Mirror(cluster="deep"),)),
                ir.BackendRef(status=500),
            ),
            mirrors=(ir.Mirror(cluster="copy"),),
        )
        for index in range(2)
    )
    entries = tuple(
        ir.Entry(match=ir.Match(kind="prefix", path=f"/{index}"), rule=index) for index in range(2)
    )
    host = ir.VirtualHost(listener="a/b/c", hostname="*", rules=rules, entries=entries)
    shards = compile_fleet(ir.Fleet(name="x", virtual_hosts=(host,)))
    key = ("virtual_host", "a/b/c/*")
    names = {name for _, name in named_by(key, shards.resources[key].data)}
    assert names == {"c0", "c1", "deep", "copy"}


@pytest.mark.parametrize("type_", ["cluster", "listener", "virtual_host", "fragment", "secret"])
@pytest.mark.parametrize("data", [b"", b"1", b"\x81\xff", bytes(200)])
def test_bytes_that_cannot_be_read_name_nothing(type_: str, data: bytes) -> None:
    assert named_by((type_, "x"), data) == frozenset()


def test_a_host_and_its_fragments_are_one() -> None:
    root, part = ("virtual_host", "l/h"), ("fragment", "l/h#12")
    assert unit_of(part) == unit_of(root) == root
    assert unit_of(("cluster", "a#1")) == ("cluster", "a#1")
    tables = [{part: 1, ("fragment", "l/hh#1"): 1}, {("fragment", "l/h#3"): 1}]
    assert members_of({root}, tables) == {root: {root, part, ("fragment", "l/h#3")}}
