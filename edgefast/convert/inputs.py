"""Inputs: what a conversion assumes of objects that the input does not have.

In: a snapshot, the settings of Ingresses. Out: both, so that they can be expanded. A Service without any EndpointSlice has an
endpoint: ingress-nginx sends no requests to a canary without one, and files often have no EndpointSlices. A Secret of `spec.tls`
that is not there has a certificate for the hosts of its entry, unless there is a default certificate that they would get: files
often have no Secrets.
Must never: assume anything that decides access.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edgefast.api.core.endpointslice import (
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointPort,
    EndpointSlice,
)
from edgefast.api.ingress.ingress import Ingress
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.snapshot import Key, Snapshot
from edgefast.translate.settings import IngressSettings

__all__ = ["Completed", "complete_inputs"]

#: Of endpoints that are not known (RFC 5737).
_SOME_ADDRESS = "192.0.2.1"
_SOME_PORT = 8080


class Completed(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A snapshot and settings with what is assumed; `certificates`: the Secrets that are not there, with their field by Ingress."""

    snapshot: Snapshot
    settings: IngressSettings
    certificates: dict[tuple[Key, str], Key]


def complete_inputs(snapshot: Snapshot, settings: IngressSettings) -> Completed:
    """Return what a conversion reads."""
    names: dict[Key, dict[str, None]] = {}
    places: dict[tuple[Key, str], Key] = {}
    ingresses = {} if settings.certificate else snapshot.ingresses
    for key, ingress in ingresses.items():
        for at, secret, hosts in _missing_secrets(ingress, snapshot):
            names.setdefault(secret, {}).update(dict.fromkeys(hosts))
            places[key, f"spec.tls[{at}].secretName"] = secret
    assumed = tuple((key, tuple(hosts)) for key, hosts in sorted(names.items()))
    return Completed(
        snapshot=snapshot.replace(changed=list(_make_slices(snapshot))),
        settings=msgspec.structs.replace(settings, assumed_certificates=assumed),
        certificates=places,
    )


def _missing_secrets(
    ingress: Ingress, snapshot: Snapshot
) -> Iterator[tuple[int, Key, tuple[str, ...]]]:
    for at, entry in enumerate(ingress.spec.tls):
        secret = (ingress.metadata.namespace, entry.secret_name or "")
        if entry.secret_name and secret not in snapshot.secrets:
            yield at, secret, tuple(one.lower() for one in entry.hosts)


def _make_slices(snapshot: Snapshot) -> Iterator[EndpointSlice]:
    for (namespace, name), service in snapshot.services.items():
        if (namespace, name) in snapshot.slices_by_service or service.spec.type == "ExternalName":
            continue
        meta = ObjectMeta(
            # No name in a file has an upper-case letter.
            name=f"{name}.Assumed",
            namespace=namespace,
            labels={SERVICE_NAME_LABEL: name},
        )
        ports = tuple(EndpointPort(name=one.name, port=_SOME_PORT) for one in service.spec.ports)
        endpoint = Endpoint(addresses=(_SOME_ADDRESS,))
        yield EndpointSlice(metadata=meta, address_type="IPv4", endpoints=(endpoint,), ports=ports)
