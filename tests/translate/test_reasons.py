"""Every condition and reason that the product documents occurs in a golden case."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from edgefast.translate.features import SUPPORTED_FEATURES
from tests.translate.golden import HERE

DOCUMENTED = {
    "GatewayClass": {
        ("Accepted", "True", "Accepted"),
        ("Accepted", "False", "InvalidParameters"),
        ("SupportedVersion", "True", "SupportedVersion"),
        ("SupportedVersion", "False", "UnsupportedVersion"),
    },
    "Gateway": {
        ("Accepted", "True", "Accepted"),
        ("Accepted", "True", "ListenersNotValid"),
        ("Accepted", "False", "ListenersNotValid"),
        ("Accepted", "False", "InvalidParameters"),
        ("Accepted", "False", "UnsupportedAddress"),
        ("Programmed", "True", "Programmed"),
        ("Programmed", "False", "Invalid"),
        ("Programmed", "False", "AddressNotAssigned"),
        ("Programmed", "False", "NoResources"),
        ("Programmed", "False", "AddressNotUsable"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
        ("ResolvedRefs", "False", "InvalidClientCertificateRef"),
        ("ResolvedRefs", "False", "RefNotPermitted"),
        ("ResolvedRefs", "False", "ListenersNotResolved"),
        ("InsecureFrontendValidationMode", "True", "ConfigurationChanged"),
    },
    "Listener": {
        ("Accepted", "True", "Accepted"),
        ("Accepted", "False", "UnsupportedProtocol"),
        ("Accepted", "False", "PortUnavailable"),
        ("Accepted", "False", "NoValidCACertificate"),
        ("Accepted", "False", "UnsupportedValue"),
        ("Programmed", "True", "Programmed"),
        ("Programmed", "False", "Invalid"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
        ("ResolvedRefs", "False", "InvalidCertificateRef"),
        ("ResolvedRefs", "False", "PartiallyInvalidCertificateRef"),
        ("ResolvedRefs", "False", "RefNotPermitted"),
        ("ResolvedRefs", "False", "InvalidRouteKinds"),
        ("ResolvedRefs", "False", "InvalidCACertificateRef"),
        ("ResolvedRefs", "False", "InvalidCACertificateKind"),
        ("Conflicted", "True", "HostnameConflict"),
        ("Conflicted", "True", "ProtocolConflict"),
        ("OverlappingTLSConfig", "True", "OverlappingHostnames"),
    },
    "HTTPRoute": {
        ("Accepted", "True", "Accepted"),
        ("Accepted", "False", "NoMatchingParent"),
        ("Accepted", "False", "NotAllowedByListeners"),
        ("Accepted", "False", "NoMatchingListenerHostname"),
        ("Accepted", "False", "UnsupportedValue"),
        ("Accepted", "False", "IncompatibleFilters"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
        ("ResolvedRefs", "False", "BackendNotFound"),
        ("ResolvedRefs", "False", "RefNotPermitted"),
        ("ResolvedRefs", "False", "InvalidKind"),
        ("ResolvedRefs", "False", "PortNotFound"),
        ("ResolvedRefs", "False", "UnsupportedProtocol"),
        ("ResolvedRefs", "False", "UnsupportedValue"),
        ("ResolvedRefs", "False", "InvalidBackendRef"),
        ("BackendsAvailable", "False", "EndpointsNotFound"),
        ("PartiallyInvalid", "True", "UnsupportedValue"),
        ("RouteRulesOverlap", "True", "RouteRulesOverlap"),
    },
    "BackendTLSPolicy": {
        ("Accepted", "True", "Accepted"),
        ("Accepted", "False", "Conflicted"),
        ("Accepted", "False", "TargetNotFound"),
        ("Accepted", "False", "Invalid"),
        ("Accepted", "False", "NoValidCACertificate"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
        ("ResolvedRefs", "False", "InvalidCACertificateRef"),
        ("ResolvedRefs", "False", "InvalidKind"),
    },
    "ListenerSet": {
        ("Accepted", "False", "NotAllowed"),
        ("Accepted", "False", "ListenersNotValid"),
        ("Programmed", "False", "NotAllowed"),
        ("Programmed", "False", "ListenersNotValid"),
    },
}


def _conditions(kind: str, status: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    found = {
        (kind, one["type"], one["status"], one["reason"])
        for holder in (status, *status.get("parents", ()), *status.get("ancestors", ()))
        for one in holder.get("conditions", ())
    }
    for listener in status.get("listeners", ()):
        found |= _conditions("Listener", listener)
    return found


@pytest.mark.pure
def test_every_documented_reason_occurs_and_no_other() -> None:
    found: set[tuple[str, str, str, str]] = set()
    for path in (HERE / "cases").glob("*.out.yaml"):
        for name, status in yaml.safe_load(path.read_text())["statuses"].items():
            found |= _conditions(name.split()[0], status)
    # A listener's Accepted names the conflict it lost as well; PortNotSpecified is second there.
    conflicts = {
        ("Listener", "Accepted", "False", f"{one}Conflict") for one in ("Hostname", "Protocol")
    }
    documented = {(kind, *one) for kind, reasons in DOCUMENTED.items() for one in reasons}
    assert documented | conflicts == found


@pytest.mark.pure
def test_port_not_specified_occurs() -> None:
    assert "PortNotSpecified" in (HERE / "cases" / "backend-ports.out.yaml").read_text()


@pytest.mark.pure
def test_features_are_sorted_and_free_of_what_needs_http2() -> None:
    assert list(SUPPORTED_FEATURES) == sorted(set(SUPPORTED_FEATURES))
    assert not [
        name
        for name in SUPPORTED_FEATURES
        if "H2C" in name or name.startswith(("GRPC", "TLSRoute", "Mesh", "ListenerSet"))
    ]
