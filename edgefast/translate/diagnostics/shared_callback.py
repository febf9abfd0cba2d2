"""Shared callback: policies with OIDC logins of different clients that disturb each other on one host.

In: virtual hosts, units of policies. Out: a warning for each such policy: two clients with one
callback path, of which one answers the callbacks of both; or one client with two secrets, whose
sessions have the same cookies.
Must never: report policies that share sessions, or show a secret.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast import ir
from edgefast.diagnostics.problem import ObjectRef, Problem
from edgefast.translate.policy.edge_policies import EdgePolicies
from edgefast.translate.virtual_host.virtual_host import Hosts

__all__ = ["find_shared_callbacks"]

_Clients = dict[bytes, str]  # by client_scope: the first unit


def find_shared_callbacks(hosts: Hosts, own: EdgePolicies) -> Iterator[Problem]:
    """Report each policy once for a callback path, and once for a secret."""
    logins = {name: one.unit.oidc for name, one in own.units.items() if one.unit.oidc is not None}
    if len(logins) < 2:
        return
    from edgefast.auth.oidc.cookie_names import client_scope, session_name  # loads a library

    scopes = {name: client_scope(one) for name, one in logins.items()}
    paths: dict[tuple[str, str], _Clients] = {}
    names: dict[tuple[str, str], _Clients] = {}
    used: dict[str, list[str]] = {}  # hostnames by unit
    for (_, hostname), outcome in hosts.outcomes.items():
        for unit in outcome.units:
            if unit not in logins:
                continue
            used.setdefault(unit, []).append(hostname)
            paths.setdefault(_callback_of(logins[unit], hostname), {}).setdefault(
                scopes[unit], unit
            )
            names.setdefault((hostname, session_name(logins[unit])), {}).setdefault(
                scopes[unit], unit
            )
    for unit in sorted(used):
        spec = logins[unit]
        for hostname in sorted(used[unit]):
            same = _find_other(names[hostname, session_name(spec)], scopes[unit])
            if same:
                message = f"{_ref(same)} has the same client with another secret on {hostname}; each policy ends the sessions of the other"
                yield _warn(unit, "clientSecret", message, "use one secret for a client")
                break
        for hostname in sorted(used[unit]):
            host, path = _callback_of(spec, hostname)
            other = _find_other(paths[host, path], scopes[unit])
            if other and session_name(logins[other]) != session_name(spec):
                message = f"{_ref(other)} has another client with the callback {host}{path}; one of them answers 400 to logins of the other"
                yield _warn(unit, "redirectURL", message, "give each client its own path")
                break


def _callback_of(spec: ir.Oidc, hostname: str) -> tuple[str, str]:
    return spec.callback_origin.partition("://")[2] or hostname, spec.callback_path


def _find_other(clients: _Clients, scope: bytes) -> str:
    return next((unit for one, unit in clients.items() if one != scope), "")


def _ref(unit: str) -> ObjectRef:
    """Return the policy of a unit ("security/NAMESPACE/NAME#oidc")."""
    _, namespace, rest = unit.split("/", 2)
    return ObjectRef("SecurityPolicy", namespace, rest.partition("#")[0])


def _warn(unit: str, field: str, message: str, hint: str) -> Problem:
    return Problem(
        _ref(unit), f"spec.oidc.{field}", "Duplicate", message, hint=hint, severity="warning"
    )
