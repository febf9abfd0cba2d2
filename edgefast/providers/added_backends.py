"""Added backends: EndpointSlices for Services of files that have no endpoints, from `--backend` and `--echo`.

In: a snapshot, the backends of the command line, and a function that returns the port of the
built-in origin.
Out: the snapshot with EndpointSlices for these Services, and problems. Pure except for that
function.
Must never: change a Service that has endpoints, or resolve a name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from edgefast import netaddr
from edgefast.api.core.endpointslice import (
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointPort,
    EndpointSlice,
)
from edgefast.api.core.service import Service
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.snapshot import Key, Snapshot
from edgefast.diagnostics.problem import Problem, did_you_mean
from edgefast.diagnostics.reasons.word import Word

__all__ = ["FLAG", "AddedBackend", "add_backends", "make_slice", "parse_backend"]

FLAG = "--backend"
_FORMS = "allowed: SERVICE=IP:PORT, NAMESPACE/SERVICE=IP:PORT, SERVICE:PORT=IP:PORT"
_NAME = re.compile(r"(?:([a-z0-9][a-z0-9.-]{0,252})/)?([a-z0-9][a-z0-9.-]{0,252})(?::([0-9]+))?")
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+):([0-9]+)")
#: The address of the built-in origin.
_LOOPBACK = "127.0.0.1"
_MOST_NAMED = 5

#: Returns the port of the built-in origin for (namespace, name) of a Service; None when it has no room for another one.
GetPort = Callable[[Key], int | None]


class AddedBackend(msgspec.Struct, frozen=True):
    """One `--backend`; an empty namespace means any, a service port of 0 means all ports."""

    namespace: str
    name: str
    service_port: int
    address: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{FLAG} {self._service()}={host}:{self.port}"

    def _service(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{name}:{self.service_port}" if self.service_port else name


def parse_backend(text: str) -> AddedBackend:
    """Parse `[NAMESPACE/]SERVICE[:PORT]=HOST:PORT`; raises ValueError with the allowed forms."""
    service, _, target = text.partition("=")
    named, found = _NAME.fullmatch(service), _ADDRESS.fullmatch(target)
    if named is None:
        raise ValueError(f'"{text}": invalid Service name ({_FORMS})')
    if found is None:
        raise ValueError(f'"{text}": invalid address ({_FORMS}; an IPv6 address is [ADDRESS]:PORT)')
    ports = [int(one) for one in (named[3], found[2]) if one is not None and len(one) <= 5]
    if len(ports) != 1 + (named[3] is not None) or not all(0 < one <= 65535 for one in ports):
        raise ValueError(f'"{text}": port must be 1-65535')
    return AddedBackend(
        namespace=named[1] or "",
        name=named[2],
        service_port=int(named[3] or 0),
        address=_read_host(text, found[1].strip("[]")),
        port=int(found[2]),
    )


def _read_host(text: str, host: str) -> str:
    if host == "localhost":
        return _LOOPBACK
    address = netaddr.read_address(host)
    if address is None:
        raise ValueError(f'"{text}": "{host}" is not an IP address (allowed: an IP or localhost)')
    return str(address)


def add_backends(
    snapshot: Snapshot, given: Sequence[AddedBackend], get_port: GetPort | None = None
) -> tuple[Snapshot, tuple[Problem, ...]]:
    """Return the snapshot with an EndpointSlice for each backend, and a problem for each that is not used.

    `get_port`: every Service that still has no endpoints gets the built-in origin at that port.
    """
    problems: list[Problem] = []
    added: list[EndpointSlice] = []
    served: set[Key] = set()
    for index, one in enumerate(given):
        key, problem = _find_service(snapshot, one)
        if problem is not None:
            problems.append(problem)
            continue
        service = snapshot.services[key]
        served.add(key)
        added.append(make_slice(service, one.address, one.port, of=one.service_port, index=index))
    if get_port is not None:
        added += _add_origin(snapshot, served, get_port, problems)
    return (snapshot.replace(changed=added) if added else snapshot), tuple(problems)


def _add_origin(
    snapshot: Snapshot, served: set[Key], get_port: GetPort, problems: list[Problem]
) -> Iterator[EndpointSlice]:
    left = []
    for key, service in snapshot.services.items():
        has_port = any(one.protocol == "TCP" for one in service.spec.ports)
        if key in served or not has_port or _is_external(service) or _has_endpoints(snapshot, key):
            continue
        port = get_port(key)
        if port is None:
            left.append(f"{key[0]}/{key[1]}")
        else:
            yield make_slice(service, _LOOPBACK, port, protocol="TCP")
    if left:
        names = ", ".join(left[:_MOST_NAMED])
        more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        message = f"the origin has no port left for Services {names}{more}; they have no endpoints"
        problems.append(Problem(None, "--echo", "TooMany", message))


def make_slice(
    service: Service,
    address: str,
    port: int | None = None,
    *,
    of: int = 0,
    index: int | None = None,
    protocol: str = "",
) -> EndpointSlice:
    """Return an EndpointSlice of one address for a Service.

    `port`: of all endpoints; None takes target ports. `of`: only this port of the Service. `index`: distinguishes several
    slices of a Service. `protocol`: only ports of it.
    """
    meta = service.metadata
    is_ipv6 = isinstance(ipaddress.ip_address(address), ipaddress.IPv6Address)
    return EndpointSlice(
        metadata=ObjectMeta(
            # An upper-case letter keeps the name apart from those of all objects in files.
            name=f"{meta.name}.Added" if index is None else f"{meta.name}.Added-{index}",
            namespace=meta.namespace,
            labels={SERVICE_NAME_LABEL: meta.name},
        ),
        address_type="IPv6" if is_ipv6 else "IPv4",
        endpoints=(Endpoint(addresses=(address,)),),
        ports=tuple(
            EndpointPort(
                name=one.name,
                port=port or (one.target_port if isinstance(one.target_port, int) else one.port),
                protocol=one.protocol,
                app_protocol=one.app_protocol,
            )
            for one in service.spec.ports
            if of in (0, one.port) and protocol in ("", one.protocol)
        ),
    )


def _find_service(snapshot: Snapshot, one: AddedBackend) -> tuple[Key, Problem | None]:
    """Return the key of the Service, and the reason why it gets no backend."""
    spaces = [one.namespace] if one.namespace else snapshot.namespaces_of("Service", one.name)
    key = (spaces[0], one.name) if spaces else ("", one.name)
    if len(spaces) > 1:
        names = ", ".join(f"{space}/{one.name}" for space in spaces[:_MOST_NAMED])
        return key, _problem(one, "Invalid", f"several Services have this name ({names})")
    service = snapshot.services.get(key)
    if service is None:
        hint = did_you_mean(*_choose_names(snapshot, one))
        return key, _problem(one, "NotFound", "the files have no such Service", hint)
    if _is_external(service):
        return key, _problem(one, "Invalid", "a Service of type ExternalName has no endpoints")
    if _has_endpoints(snapshot, key):
        message = "the files have endpoints for this Service; they are used"
        return key, _problem(one, "Invalid", message, "remove its EndpointSlices or this option")
    ports = [str(port.port) for port in service.spec.ports]
    if one.service_port and str(one.service_port) not in ports:
        message = f"the Service has no port {one.service_port} (its ports: {', '.join(ports)})"
        return key, _problem(one, "PortNotFound", message)
    return key, None


def _choose_names(snapshot: Snapshot, one: AddedBackend) -> tuple[str, Iterable[str]]:
    """Return the name as given, and similar names of Services."""
    if not one.namespace:
        return one.name, [name for _, name in snapshot.services]
    return f"{one.namespace}/{one.name}", [f"{space}/{name}" for space, name in snapshot.services]


def _problem(one: AddedBackend, reason: Word, message: str, hint: str = "") -> Problem:
    return Problem(None, str(one), reason, message, hint)


def _is_external(service: Service) -> bool:
    return service.spec.type == "ExternalName"


def _has_endpoints(snapshot: Snapshot, key: Key) -> bool:
    return any(one.endpoints for one in snapshot.slices_by_service.get(key, ()))
