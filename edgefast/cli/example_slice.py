"""Example EndpointSlice: a text to paste, for a Service of files without endpoints.

In: the objects that were read, and their problems.
Out: a text with one EndpointSlice, or "" when every Service has one.
Must never: be part of the output that programs read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefast.api.core.service import Service
from edgefast.cli.inputs import Inputs
from edgefast.diagnostics.problem import Problem

__all__ = ["show_slice"]

_SAID = re.compile(r"Service ([a-z0-9-]+)/([a-z0-9-]+) has no endpoints")


def show_slice(inputs: Inputs, problems: Iterable[Problem]) -> str:
    """Return the EndpointSlice for the first Service without endpoints, with an address of this machine."""
    found = {_SAID.search(one.message) for one in problems if one.reason == "EndpointsNotFound"}
    names = sorted((one[1], one[2]) for one in found if one)
    services = [inputs.reading.snapshot.services.get(one) for one in names]
    first = next((one for one in services if one is not None), None)
    return _write(first) if first is not None else ""


def _write(service: Service) -> str:
    meta = service.metadata
    ports = "".join(
        f"- {{{f'name: {one.name}, ' if one.name else ''}port: {_number(one.target_port, one.port)}}}\n"
        for one in service.spec.ports
    )
    return (
        "In files a Service needs an EndpointSlice with the addresses of its backends.\n"
        "To try the route without one, use --backend "
        f"{meta.namespace}/{meta.name}=127.0.0.1:8080, or edgefast run --echo.\n"
        "For example:\n"
        "---\n"
        "apiVersion: discovery.k8s.io/v1\n"
        "kind: EndpointSlice\n"
        "metadata:\n"
        f"  name: {meta.name}-1\n"
        f"  namespace: {meta.namespace}\n"
        f"  labels: {{kubernetes.io/service-name: {meta.name}}}\n"
        "addressType: IPv4\n"
        f"ports:\n{ports}"
        "endpoints:\n"
        "- {addresses: [127.0.0.1]}"
    )


def _number(target: int | str | None, port: int) -> int:
    """Return the port of a backend; only Pods define a named target port."""
    return target if isinstance(target, int) and target else port
