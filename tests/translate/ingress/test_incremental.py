"""Incremental: an expansion never depends on the previous one, and does nothing for what has not changed."""

from __future__ import annotations

from collections import Counter

import pytest

from edgefast.api.decode.decode import decode_documents
from edgefast.api.kinds import ref_of
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, translate
from edgefast.translate.ingress.expand import expand_ingresses
from edgefast.translate.ingress.sections import Sections
from edgefast.translate.settings import IngressSettings
from edgefast.translate.translation import Translation
from tests.translate.ingress.random_ingresses import Random

pytestmark = pytest.mark.pure

SETTINGS = Settings(ingress=IngressSettings(classes=("nginx",)))
INGRESS = """apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: NAME
  annotations: {nginx.ingress.kubernetes.io/proxy-body-size: SIZE}
spec:
  ingressClassName: nginx
  rules:
  - host: NAME.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}
"""
SERVICE = """apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: PORT, name: http}]}
"""


def objects(*texts: str) -> Snapshot:
    return Snapshot.of(decode_documents("---\n".join(texts).encode(), "a.yaml").objects)


def ingress(name: str, size: str = "8m") -> str:
    return INGRESS.replace("NAME", name).replace("SIZE", size)


def service(port: int = 80) -> str:
    return SERVICE.replace("PORT", str(port))


def change(snapshot: Snapshot, *texts: str) -> Snapshot:
    return snapshot.replace(decode_documents("---\n".join(texts).encode(), "a.yaml").objects)


def test_without_ingresses_the_snapshot_is_the_same() -> None:
    plain = objects(service())
    assert expand_ingresses(plain, SETTINGS, None).snapshot is plain


def test_what_has_not_changed_is_not_made_again() -> None:
    first = expand_ingresses(objects(ingress("a"), ingress("b"), service()), SETTINGS, None)
    other = change(first.base, "apiVersion: v1\nkind: Service\nmetadata: {name: other}\n")
    same = expand_ingresses(other, SETTINGS, first)
    assert same.objects is first.objects
    assert same.snapshot.http_routes is first.snapshot.http_routes
    assert ("default", "other") in same.snapshot.services
    edited = expand_ingresses(change(other, ingress("b", "9m")), SETTINGS, same)
    kept = "a.Ingress-http-a.test"
    assert (
        edited.snapshot.http_routes["default", kept] is first.snapshot.http_routes["default", kept]
    )


@pytest.mark.parametrize(
    "texts",
    [
        (ingress("a", "1k"),),
        (service(81),),
        (ingress("c"),),
        ("apiVersion: v1\nkind: Service\nmetadata: {name: far}\n",),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ingress-nginx-controller}\ndata: {hsts: 'false', proxy-body-size: 3m}\n",
        ),
    ],
)
def test_the_result_does_not_depend_on_the_previous_one(texts: tuple[str, ...]) -> None:
    first = translate(objects(ingress("a"), ingress("b"), service()), SETTINGS)
    after = change(first.memo.expansion.base, *texts)
    step, whole = translate(after, SETTINGS, first), translate(after, SETTINGS)
    assert step.ir == whole.ir
    assert step.problems == whole.problems
    back = translate(first.memo.expansion.base, SETTINGS, step)
    assert back.ir == first.ir


def test_the_last_ingress_leaves_nothing() -> None:
    first = translate(objects(ingress("a"), service()), SETTINGS)
    gone = objects(service())
    last = translate(gone, SETTINGS, first)
    assert last.ir == translate(gone, SETTINGS).ir
    assert not last.memo.world.snapshot.http_routes


def test_a_removed_ingress_makes_the_service_of_another_host_a_canary() -> None:
    marks = "{nginx.ingress.kubernetes.io/canary: 'true', nginx.ingress.kubernetes.io/canary-weight: '30', "
    canary = ingress("a").replace("name: a\n", "name: c\n").replace("name: web", "name: new")
    canary = canary.replace("annotations: {", f"annotations: {marks}")
    other = ingress("z").replace("name: web", "name: new")
    services = (service(), service().replace("web", "new"))
    first = translate(objects(ingress("a"), canary, other, *services), SETTINGS)
    base = first.memo.expansion.base
    after = base.replace((), [ref_of(base.ingresses["default", "z"])])
    assert translate(after, SETTINGS, first).ir == translate(after, SETTINGS).ir


def test_a_route_of_a_user_with_a_like_name_stays() -> None:
    first = expand_ingresses(objects(ingress("a"), service()), SETTINGS, None)
    assert all(".Ingress" in name for _, name in first.snapshot.http_routes)
    assert all(any(one.isupper() for one in name) for _, name in first.snapshot.http_routes)


def state(found: Translation) -> tuple[object, ...]:
    """Return the content of an expansion as values."""
    made = found.memo.expansion.objects
    hosts = {host: (one.objects, one.origins, one.shared) for host, one in made.hosts.items()}
    policies = {key: (one.objects, one.origins, one.shared) for key, one in made.policies.items()}
    maps = (made.origins, made.shared, made.grants, made.reads, made.readers, made.listeners)
    return (
        {name: dict(table.items()) for name, table in made.tables.items() if table},
        hosts,
        {key: one for key, one in policies.items() if any(one)},
        made.by_host,
        made.dependencies,
        made.speaks_tls,
        *(dict(one.items()) for one in maps),
        dict(found.memo.expansion.served.items()),
    )


@pytest.mark.parametrize("seed", range(24))
def test_random_changes_give_what_a_start_from_scratch_gives(seed: int) -> None:
    source = Random(seed)
    for settings in source.settings():
        snapshot = source.snapshot()
        found = translate(snapshot, settings)
        for _ in range(12):
            snapshot = source.change(snapshot)
            found, whole = translate(snapshot, settings, found), translate(snapshot, settings)
            assert found.ir == whole.ir
            assert set(found.problems) == set(whole.problems)
            assert dict(found.statuses.items()) == dict(whole.statuses.items())
            for one, other in zip(state(found), state(whole), strict=True):
                assert one == other


def test_a_changed_ingress_costs_its_host_alone() -> None:
    names = [f"n{number}" for number in range(300)]
    first = translate(objects(service(), *map(ingress, names)), SETTINGS)
    made = first.memo.expansion.objects.hosts
    found = translate(change(first.memo.expansion.base, ingress("n7", "1k")), SETTINGS, first)
    kept = found.memo.expansion.objects.hosts
    assert [host for host in made if made[host] is not kept[host]] == ["n7.test"]
    assert found.work.routes <= 1


def test_a_name_with_a_certificate_moves_no_listener_of_others() -> None:
    few, many = (Sections(f"h{number}.test" for number in range(count)) for count in (62, 500))
    assert {few.gateway(f"h{number}.test") for number in range(62)} == {"Ingress"}
    more = Sections(f"h{number}.test" for number in range(501))
    assert many.count == more.count
    assert all(many.gateway(f"h{n}.test") == more.gateway(f"h{n}.test") for n in range(500))
    sizes = Counter(many.gateway(f"h{number}.test") for number in range(500))
    assert max(sizes.values()) <= 64


def test_the_oldest_ingress_decides_about_tls_at_each_step() -> None:
    tls = "annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS, "
    encrypted = ingress("b").replace(
        "annotations: {", tls
    )  # of the same age: the greater name is first
    alone, both = objects(encrypted, service()), objects(encrypted, ingress("a"), service())
    first = translate(alone, SETTINGS)
    assert [*first.memo.expansion.objects.tables["backend_tls_policies"]] == [
        ("default", "web.Ingress-80")
    ]
    second = translate(both, SETTINGS, first)
    assert second.ir == translate(both, SETTINGS).ir
    assert any("gets TLS by an older Ingress" in one.message for one in second.problems)
    plain = objects(ingress("a"), service())
    third = translate(plain, SETTINGS, second)
    assert third.ir == translate(plain, SETTINGS).ir
    assert not third.memo.expansion.objects.tables["backend_tls_policies"]


ASKING = ingress("a").replace(
    "annotations: {",
    'annotations: {nginx.ingress.kubernetes.io/auth-url: "https://HOST/oauth2/auth", ',
)


@pytest.mark.parametrize("host", ["$host", "login.test"])
def test_a_check_follows_the_ingress_of_its_service(host: str) -> None:
    login = ingress("l").replace("path: /,", "path: /oauth2,").replace("name: web", "name: oauth")
    login = login.replace("host: l.test", f"host: {'a.test' if host == '$host' else host}")
    services = service() + "---\n" + service().replace("name: web", "name: oauth")
    asking = ASKING.replace("HOST", host)
    far = ingress("b")
    first = translate(objects(asking, far, services), SETTINGS)
    base = first.memo.expansion.base
    came = translate(change(base, login), SETTINGS, first)
    refused = login.replace("proxy-body-size: 8m", "allowlist-source-range: 10.0.0.0/8")
    closed = translate(change(base, refused), SETTINGS, came)
    moved = translate(change(base, login.replace("name: oauth", "name: web")), SETTINGS, closed)
    other = change(base, login, service(81).replace("name: web", "name: oauth"))
    port = translate(other, SETTINGS, moved)
    gone = translate(base, SETTINGS, port)
    seen = [first, came, closed, moved, port, gone]
    for one in seen:
        assert one.ir == translate(one.memo.expansion.base, SETTINGS).ir
    names = [_asked(one) for one in seen]
    direct = [name for name in names if name.startswith("Service")]
    assert direct == ["Service oauth 80", "Service web 80", "Service oauth 81"]
    kept = "default", "b.Ingress-http-b.test"
    routes = [one.memo.expansion.snapshot.http_routes[kept] for one in seen]
    assert all(one is routes[0] for one in routes)


def _asked(found: Translation) -> str:
    """Return what the checks of Ingress a ask, "" without a check."""
    policies = found.memo.expansion.snapshot.security_policies
    checks = [one.spec.ext_auth for one in policies.values() if one.spec.ext_auth is not None]
    if not checks:
        return ""
    ref = checks[0].http.backend_ref if len(checks) == 1 and checks[0].http is not None else None
    assert ref is not None
    return f"{ref.kind} {ref.name} {ref.port}"
