"""Added backends: what `--backend` and `--echo` give to Services without endpoints."""

from __future__ import annotations

import pytest

from edgefast.api.core.endpointslice import (
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointPort,
    EndpointSlice,
)
from edgefast.api.core.service import Service, ServicePort, ServiceSpec
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.snapshot import Snapshot
from edgefast.providers.added_backends import add_backends, parse_backend

pytestmark = pytest.mark.pure


def service(name: str, *ports: ServicePort, namespace: str = "shop", kind: str = "ClusterIP") -> Service:  # fmt: skip
    spec = ServiceSpec(ports=ports, type=kind)  # type: ignore[arg-type]
    return Service(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def served(name: str) -> EndpointSlice:
    return EndpointSlice(
        metadata=ObjectMeta(name=f"{name}-1", namespace="shop", labels={SERVICE_NAME_LABEL: name}),
        address_type="IPv4",
        endpoints=(Endpoint(addresses=("10.0.0.1",)),),
        ports=(EndpointPort(name="http", port=80),),
    )


HTTP = ServicePort(name="http", port=80, target_port="web")
ADMIN = ServicePort(name="admin", port=81, protocol="TCP")
DNS = ServicePort(name="dns", port=53, protocol="UDP")
WORLD = Snapshot.of(
    [
        service("web", HTTP, ADMIN),
        service("full", HTTP),
        served("full"),
        service("twice", HTTP),
        service("twice", HTTP, namespace="other"),
        service("far", HTTP, kind="ExternalName"),
        service("dns", DNS),
    ]
)


def added(snapshot: Snapshot, name: str, namespace: str = "shop") -> list[tuple[str, str, int | None]]:  # fmt: skip
    """Return address, name of the Service's port and port of every endpoint."""
    return [
        (endpoint.addresses[0], port.name, port.port)
        for one in snapshot.slices_by_service.get((namespace, name), ())
        for endpoint in one.endpoints
        for port in one.ports
    ]


@pytest.mark.parametrize(
    ("given", "endpoints"),
    [
        (["web=127.0.0.1:3001"], [("127.0.0.1", "http", 3001), ("127.0.0.1", "admin", 3001)]),
        (["shop/web:81=localhost:9"], [("127.0.0.1", "admin", 9)]),
        (["web:80=[::1]:1"], [("::1", "http", 1)]),
        (
            ["web:80=10.0.0.1:1", "web:80=10.0.0.2:2"],
            [("10.0.0.1", "http", 1), ("10.0.0.2", "http", 2)],
        ),
    ],
)
def test_a_service_gets_the_addresses_given(
    given: list[str], endpoints: list[tuple[str, str, int]]
) -> None:
    snapshot, problems = add_backends(WORLD, [parse_backend(one) for one in given])
    assert (added(snapshot, "web"), problems) == (endpoints, ())
    assert not WORLD.slices_by_service.get(("shop", "web"))
    assert snapshot.services is WORLD.services


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("wbe=127.0.0.1:1", "NotFound the files have no such Service, did you mean web?"),
        ("shp/web=127.0.0.1:1", "NotFound the files have no such Service, did you mean shop/web?"),
        ("twice=127.0.0.1:1", "Invalid several Services have this name (other/twice, shop/twice)"),
        ("far=127.0.0.1:1", "Invalid a Service of type ExternalName has no endpoints"),
        ("full=127.0.0.1:1", "Invalid the files have endpoints for this Service; they are used, "),
        ("web:82=[::1]:1", "PortNotFound the Service has no port 82 (its ports: 80, 81)"),
    ],
)
def test_a_backend_that_is_not_used_is_an_error(given: str, said: str) -> None:
    snapshot, (problem,) = add_backends(WORLD, [parse_backend(given)])
    assert snapshot is WORLD
    assert problem.line().startswith(f"--backend {given}: {said}")
    assert problem.severity == "error"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("web", "invalid address"),
        ("web=3001", "invalid address"),
        ("web=::1:3001", "invalid address"),
        ("=127.0.0.1:1", "invalid Service name"),
        ("a/b/c=127.0.0.1:1", "invalid Service name"),
        ("web:x=127.0.0.1:1", "invalid Service name"),
        ("web=127.0.0.1:0", "port must be 1-65535"),
        ("web:0=127.0.0.1:1", "port must be 1-65535"),
        ("web=127.0.0.1:65536", "port must be 1-65535"),
        (f"web=127.0.0.1:{'9' * 5000}", "port must be 1-65535"),
        ("web=shop.example:80", '"shop.example" is not an IP address'),
    ],
)
def test_a_value_that_is_wrong_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_backend(text)


def test_the_origin_is_for_services_that_have_no_endpoints() -> None:
    asked: list[tuple[str, str]] = []

    def get_port(key: tuple[str, str]) -> int | None:
        asked.append(key)
        return None if key[0] == "other" else 7000

    given = [parse_backend("web=10.0.0.1:1")]
    snapshot, (problem,) = add_backends(WORLD, given, get_port)
    assert asked == [("other", "twice"), ("shop", "twice")]
    assert added(snapshot, "twice") == [("127.0.0.1", "http", 7000)]
    assert [port for _, _, port in added(snapshot, "web")] == [1, 1]
    assert added(snapshot, "full") == [("10.0.0.1", "http", 80)]
    assert "--echo: TooMany the origin has no port left for Services other/twice;" in problem.line()
