"""Addresses: what a Gateway asks for in spec.addresses, against what is bound.

In: a Gateway and the settings. Out: types that are not supported go to the report; values that cannot
be had come back as problems, which make Programmed False. In standalone an address counts when --bind
names it; without --bind all interfaces are bound, and translation, which sees none of them, vouches
for loopback alone. In a cluster a fleet's addresses are compared later, see gateway.py.
Source: Gateway API GatewaySpec.addresses.
Must never: call an address usable that nobody bound.
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
    return tuple(unusable)


def is_bound(value: str, settings: Settings) -> bool:
    """Tell whether an address is surely bound in standalone."""
    address = read_address(value)
    if address is None:
        return False
    bound = [read_address(one) for one in settings.addresses]
    wild = not bound or any(one is not None and one.is_unspecified for one in bound)
    return address in bound or (wild and (address.is_loopback or address.is_unspecified))


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
    message = f"{value} is not known to be bound"
    if settings.addresses:
        message = f"{value} is not bound (bound: {', '.join(settings.addresses)})"
    return report.warn(path, "AddressNotUsable", message, f"add --bind {value}")
