"""Address: checks spec.addresses of a Gateway against the bound addresses.

In: a Gateway and the settings. Out: unsupported types go to the report. Unusable values come back
as problems, which make Programmed False. In standalone an address is usable when --bind names it,
or a wildcard of its IP version, or when --bind is not set. The proxy reports an address that the
machine does not have when it binds (PortUnavailable). In a cluster gateway.py compares a fleet's
addresses later.
Source: Gateway API GatewaySpec.addresses.
Must never: call an address usable that --bind excludes.
"""

from __future__ import annotations

from edgefast.api.gateway.gateway import Gateway, GatewaySpecAddress
from edgefast.api.kinds import ref_of
from edgefast.diagnostics.problem import Problem, supported_text
from edgefast.netaddr import read_address
from edgefast.translate.report.report import Report
from edgefast.translate.settings import Settings

TYPES = ("IPAddress", "Hostname")


def check_addresses(gateway: Gateway, report: Report, settings: Settings) -> tuple[Problem, ...]:
    """Return a problem for each value that cannot be used."""
    unusable = []
    for at, one in enumerate(gateway.spec.addresses):
        path = f"spec.addresses[{at}]"
        if one.type not in TYPES:
            report.refuse(f"{path}.type", "UnsupportedAddress", supported_text(one.type, TYPES))
        elif one.value:
            problem = _check_value(one, one.value, f"{path}.value", gateway, settings)
            if problem is not None:
                unusable.append(problem)
    if has_no_address(gateway, settings) and not report.refused:
        message = "no requested address is usable; the listeners of the Gateway are not bound"
        hint = "request an address that --bind has, or no address"
        unusable.append(
            Problem(ref_of(gateway), "spec.addresses", "AddressNotUsable", message, hint)
        )
    return tuple(unusable)


def has_no_address(gateway: Gateway, settings: Settings) -> bool:
    """Tell whether the listeners of a Gateway have no address in standalone."""
    return settings.standalone and usable_addresses(gateway, settings) is None


def usable_addresses(gateway: Gateway, settings: Settings) -> frozenset[str] | None:
    """Return the addresses that a Gateway requests and --bind allows; empty: all that are bound. None: no requested one is usable."""
    found = set()
    for one in gateway.spec.addresses:
        if not one.value:
            return frozenset()
        address = read_address(one.value)
        if one.type == "IPAddress" and address is not None and is_bound(one.value, settings):
            if address.is_unspecified:
                return frozenset()
            found.add(str(address))
    return None if gateway.spec.addresses and not found else frozenset(found)


def is_bound(value: str, settings: Settings) -> bool:
    """Tell whether --bind allows an address in standalone."""
    address = read_address(value)
    if address is None:
        return False
    bound = [read_address(one) for one in settings.addresses]
    wild = {one.version for one in bound if one is not None and one.is_unspecified}
    return not bound or address in bound or address.version in wild


def _check_value(
    one: GatewaySpecAddress, value: str, path: str, gateway: Gateway, settings: Settings
) -> Problem | None:
    report = Report(ref_of(gateway))
    if one.type == "IPAddress" and read_address(value) is None:
        return report.refuse(path, "AddressNotUsable", f'"{value}" is not an IP address')
    if not settings.standalone or is_bound(value, settings):
        return None
    if one.type == "Hostname":
        message = f'"{value}" is a host name; listeners are bound to addresses'
        return report.warn(path, "AddressNotUsable", message)
    message = f"{value} is not bound (bound: {', '.join(settings.addresses)})"
    return report.warn(path, "AddressNotUsable", message, f"add --bind {value}")
