"""`explain --live` and `diff --live` on a cluster that a test makes of files: which Gateway is meant, what is said to be live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
import yaml

from cli.admin_server import AdminServer
from cli.calling import call
from cli.fake_cluster import AGE, BASE, FakeCluster, cluster, gateway, route, service
from edgefast.api.config.edgegateway import EdgeGateway
from edgefast.cli import live, status
from edgefast.cli.live import LiveError, Proxy, Where, open_cluster
from edgefast.translate.settings import settings_from
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure

__all__ = ["cluster"]


def ask(*words: str) -> tuple[int, Any]:
    done = call("explain", "--live", "-o", "json", *words)
    assert done.out, done.err
    return done.status, orjson.loads(done.out)


def change(tmp_path: Path, *objects: dict[str, Any], namespace: str = "") -> tuple[int, Any, str]:
    path = tmp_path / "change.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    words = ("-n", namespace) if namespace else ()
    done = call("diff", "--live", *words, "-o", "json", str(path))
    assert done.out, done.err
    return done.status, orjson.loads(done.out)["changes"], done.err


# --- explain ------------------------------------------------------------------------------------


def test_the_gateway_that_has_the_route(cluster: FakeCluster) -> None:
    status, told = ask("GET", "http://www.blog.test/a")
    assert (status, told["rule"]["route"]) == (0, "blog/web")
    assert told["rule"]["place"] == {
        "object": "HTTPRoute blog/web",
        "path": "spec.rules[0].matches[0]",
        "source": "generation 3",
    }
    assert told["backends"][0]["endpoints"] == [{"address": "10.0.0.1:8080"}]
    # The most specific listener is another fleet's: another address, so it is no rival.
    status, told = ask("GET", "http://a.inside.test/")
    assert (status, told["listener"]["name"]) == (0, "shop/back/http")


def test_the_gateway_that_has_the_address(cluster: FakeCluster) -> None:
    for url, name in (
        ("http://192.0.2.10/", "shop/front/http"),
        ("http://[2001:0db8::1]/", "blog/front/http"),
    ):
        status, told = ask("GET", url, "-H", "Host: nobody.test")
        assert (status, told["answers"][0]["check"]) == (1, "rule")
        assert told["listener"]["name"] == name


def test_the_gateway_that_is_named(cluster: FakeCluster) -> None:
    for words in (
        ("--gateway", "blog/front"),
        ("-n", "blog"),
        ("--gateway", "front", "-n", "blog"),
    ):
        status, told = ask(*words, "GET", "http://www.shop.test/")
        assert (status, told["answers"][0]["check"]) == (1, "rule"), words
        assert told["listener"]["name"] == "blog/front/http"


def test_listeners_that_are_not_served_are_named(cluster: FakeCluster, tmp_path: Path) -> None:
    """Why nothing answers on 443 is in the objects, not in any table."""
    tls = {"certificateRefs": [{"name": "gone"}]}
    https = {"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls}
    partly, lost = gateway("shop", "partly"), gateway("shop", "lost")
    partly["spec"]["listeners"].append(https)
    settings = {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "gone"}
    lost["spec"]["infrastructure"] = {"parametersRef": settings}
    (tmp_path / "more").mkdir()
    cluster.objects = FakeCluster(tmp_path / "more", [*BASE, partly, lost]).objects
    status, told = ask("--gateway", "shop/partly", "GET", "https://a.test/")
    (answer,) = told["answers"]
    assert (status, answer["check"]) == (1, "port")
    assert "listener shop/partly/https is not served, InvalidCertificateRef" in answer["why"]
    assert answer["reasons"] == ["InvalidCertificateRef"]
    done = call("explain", "--live", "--gateway", "lost", "GET", "https://a.test/")
    assert done.status == 2
    assert "no Gateway lost is served (Gateway shop/lost" in done.err
    assert "EdgeProxy shop/gone not found" in done.err


def test_nobody_guesses(cluster: FakeCluster) -> None:
    done = call("explain", "--live", "GET", "http://nobody.test/")
    assert done.status == 2
    assert "several Gateways have a listener for it; choose one with --gateway" in done.err
    assert "blog/front" in done.err and "shop/back" not in done.err
    done = call("explain", "--live", "--gateway", "none", "GET", "http://nobody.test/")
    assert done.status == 2 and "no Gateway none is served (" in done.err
    done = call("explain", "--live", "GET", "http://nobody.test:81/")
    assert done.status == 2 and "several Gateways are served" in done.err


def notes(*words: str) -> str:
    _, told = ask(*words, "GET", "http://www.shop.test/")
    return "\n".join(told["notes"])


def test_what_is_live_is_said(cluster: FakeCluster) -> None:
    same, other = Proxy(name="e/one", table=cluster.version), Proxy(name="e/two", table="feed")
    cluster.proxies = (same, other, Proxy(name="e/three", why_not="its pod is Pending"))
    said = notes()
    assert "live: objects and endpoints of https://cluster.test, settings of ConfigMap a/b" in said
    assert "live: 1 of 3 proxies serve this table" in said
    assert "e/two serve another table and can answer differently" in said
    assert "the table of e/three is unknown (its pod is Pending)" in said
    assert "not included: ejected endpoints" in said


def test_that_proxies_are_not_known_is_said(cluster: FakeCluster) -> None:
    assert "the fleet has no running proxy" in notes()
    cluster.proxies = LiveError("pods cannot be listed")
    assert "the table that the proxies serve is unknown (pods cannot be listed)" in notes()
    unread = ("Secret shop/cert cannot be read (Forbidden); it is assumed to be valid",)
    cluster.objects = msgspec.structs.replace(cluster.objects, unread=unread)
    cluster.proxies = (Proxy(name="e/one", table="feed"),)
    said = notes()
    assert unread[0] in said and "unknown whether the proxies serve this table" in said


def test_a_store_that_does_not_count_is_said_where_limits_ask_it(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    limit = {"limit": {"requests": 1, "unit": "Hour"}}
    limited = route("shop", "limited", "front", "few.shop.test")
    ref = {"group": "gateway.edge.io", "kind": "RateLimitFilter", "name": "few"}
    limited["spec"]["rules"][0]["filters"] = [{"type": "ExtensionRef", "extensionRef": ref}]
    filter_ = manifest("RateLimitFilter shop/few", {"type": "Global", "global": {"rules": [limit]}})
    (tmp_path / "more").mkdir()
    made = FakeCluster(tmp_path / "more", [*BASE, limited, filter_])
    redis = {"type": "Redis", "redis": {"url": "redis:6379"}}
    config = msgspec.convert({"rateLimit": {"backend": redis}}, EdgeGateway)
    settings = settings_from(config, standalone=False)
    cluster.objects = msgspec.structs.replace(made.objects, settings=settings)
    down = {("redis:6379", "down"): 2}
    cluster.proxies = (Proxy(name="e/one", table=cluster.version, stores=down),)
    said = "its limits: EdgeGateway rateLimit.backend: NotCounted 1 of 1 proxies"
    assert said in "\n".join(ask("GET", "http://few.shop.test/")[1]["notes"])
    assert said not in notes()


def dump(version: str) -> dict[str, Any]:
    """What a proxy says: one endpoint is ejected."""
    endpoint = {"address": "10.0.0.1:8080", "healthy": False, "active": 0}
    engine = {"clusters": [{"name": "service/shop/web/80", "endpoints": [endpoint]}]}
    return {
        "agent": {},
        "workers": [{"worker": 0, "engine": engine}],
        "table": {"version": version},
        "listeners": [],
        "virtual_hosts": [],
        "clusters": [],
        "limit_stores": [],
    }


def test_health_is_of_a_proxy_with_the_same_table(cluster: FakeCluster) -> None:
    for version, used in ((cluster.version, True), ("feedbeef00", False)):
        with AdminServer({"/dump": dump(version)}) as server:
            _, told = ask("--admin", server.address, "GET", "http://www.shop.test/")
        (endpoint,) = told["backends"][0]["endpoints"]
        assert ("healthy" in endpoint) == used
        said = "\n".join(told["notes"])
        assert ("not included: ejected endpoints" in said) != used
        assert ("serves another table (feedbeef)" in said) != used


# --- diff ---------------------------------------------------------------------------------------


def test_files_replace_and_add_and_leave_the_rest(cluster: FakeCluster, tmp_path: Path) -> None:
    assert change(tmp_path, route("shop", "web", "front", "www.shop.test"))[:2] == (0, [])
    moved = route("shop", "web", "front", "www.shop.test", path="/below")
    status, changes, _ = change(tmp_path, moved)
    assert status == 3
    (lost,) = [one for one in changes if one.get("breaks")]
    assert (lost["kind"], lost["before"]["source"]) == ("lost", "generation 3")
    assert not [one for one in changes if "blog" in orjson.dumps(one).decode()]
    status, changes, _ = change(tmp_path, route("shop", "new", "front", "new.shop.test"))
    assert status == 1
    (gained,) = [one for one in changes if one["kind"] == "gained"]
    assert gained["after"]["source"].startswith(f"{tmp_path / 'change.yaml'}:")


def test_what_the_server_keeps_is_kept(cluster: FakeCluster, tmp_path: Path) -> None:
    """Of two routes for the same requests the older one wins, and a file has no age."""
    rival = route("shop", "a-rival", "front", "www.shop.test")
    del rival["metadata"]["creationTimestamp"]
    status, changes, _ = change(tmp_path, rival)
    assert status == 1
    assert not [one for one in changes if one["kind"] in ("owner", "lost", "gained")], changes
    assert [one for one in changes if one["kind"] == "conflict"]
    # One that is replaced stays as old as it was.
    again = route("shop", "web", "front", "www.shop.test")
    del again["metadata"]["creationTimestamp"]
    assert change(tmp_path, again, rival)[1] == changes
    (_, completed) = cluster.completed
    kept = completed.http_routes["shop", "web"].metadata
    assert (kept.creation_timestamp, kept.generation, kept.uid) == (AGE, 3, "web")


def test_objects_without_a_namespace(cluster: FakeCluster, tmp_path: Path) -> None:
    new = route("", "new", "front", "new.test")
    for namespace in ("", "blog"):  # the kubeconfig's is shop
        status, changes, _ = change(tmp_path, new, namespace=namespace)
        assert status == 1
        (gained,) = [one for one in changes if one["kind"] == "gained"]
        assert gained["after"]["rule"] == f"{namespace or 'shop'}/new rule 0"


def test_a_service_that_is_new_gets_endpoints(cluster: FakeCluster, tmp_path: Path) -> None:
    moved = route("shop", "web", "front", "www.shop.test", service="next")
    status, changes, said = change(tmp_path, moved, service("shop", "next"))
    assert status == 1, changes
    assert "Service shop/next is new; the comparison assumes that it gets endpoints" in said
    for more in (service("shop", "next", selector={}), service("shop", "other")):
        # Nobody gives endpoints to one without a selector; and one that is not there has none.
        assert change(tmp_path, moved, more)[0] == 3


def test_a_new_gateway_is_taken_to_get_a_fleet(cluster: FakeCluster, tmp_path: Path) -> None:
    made = gateway("shop", "third")
    made["spec"]["addresses"] = [{"value": "198.51.100.7"}]
    status, changes, _ = change(tmp_path, made, route("shop", "third", "third", "third.test"))
    assert status == 1
    kinds = {one["kind"] for one in changes}
    assert {"gained", "host_added", "listener_added"} <= kinds and "condition" not in kinds, changes


def test_mistakes_are_left_out_and_counted(cluster: FakeCluster, tmp_path: Path) -> None:
    wrong = route("shop", "web", "front", "www.shop.test")
    wrong["spec"]["rules"][0]["matches"][0]["path"]["type"] = "Nonsense"
    status, changes, said = change(tmp_path, wrong)
    assert (status, changes) == (0, []), "a server refuses it: the one before stays"
    assert "1 mistake; objects with an error are not used" in said
    assert 'NotSupported "Nonsense" (supported: Exact' in said
    assert "more about it: edgefast problem NotSupported" in said


# --- wrong usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "GET", "http://a/"),
        ("explain", "--live", "-f", "/", "GET", "http://a/"),
        ("explain", "--admin", "127.0.0.1:1", "--gateway", "x", "GET", "http://a/"),
        ("explain", "-f", "/", "--context", "x", "GET", "http://a/"),
        ("diff", "/"),
        ("diff", "/", "/", "/"),
        ("diff", "-n", "x", "/", "/"),
    ],
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    done = call(*words)
    assert done.status == 2 and "Usage:" in done.err


def test_without_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "GROUP", "edgefast.nobody")
    with pytest.raises(LiveError, match="the package for clusters is not installed"):
        open_cluster(Where())


def test_status_of_a_machine_with_neither_proxy_nor_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are said, with what to do."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr(status, "DEFAULT_ADMIN", "127.0.0.1:1")
    done = call("status", "--interval", "0")
    assert done.status == 2 and not done.out
    assert "no proxy answers at 127.0.0.1:1 (`edgefast run` starts one" in done.err
    assert f"no cluster can be read: kubeconfig {tmp_path / 'none'} not found" in done.err
    assert done.err.count("\n") == 1, done.err


def test_without_a_kubeconfig(tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("clusters: 5\n")
    for words in (
        ("explain", "--live", "GET", "http://a/"),
        ("diff", "--live", str(broken)),
        ("status", "-A", "--interval", "0"),
    ):
        done = call(words[0], "--kubeconfig", str(broken), *words[1:])
        assert done.status == 2, done.out
        assert f"{broken} cannot be used" in done.err and "Traceback" not in done.err
