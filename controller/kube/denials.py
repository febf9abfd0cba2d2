"""Denials: calls that RBAC denies to the controller, each with its verb and resource, until the same call succeeds.

In: requests and how they ended. Out: `Problem`s for the admin server, `edgefast status` and Events, and one log line each. The
text of the API server identifies a denial ("cannot list resource ..."): a 403 of an admission webhook or a quota is not one.
Source: Kubernetes, "Authorization Overview", message of the RBAC authorizer. Must never: keep a name of an object, or grow without bound.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

import msgspec

from controller.kube.errors import ApiError
from edgefast.diagnostics.problem import ObjectRef, Problem

__all__ = ["KEPT", "LAST", "Denials"]

log = logging.getLogger(__name__)

#: Denials kept, those that were seen last.
KEPT = 64
#: Seconds after which a denial is no longer reported unless a call repeats it: every call is repeated within two minutes.
LAST = 900.0
#: Resources that the controller reads only where it is permitted.
_OPTIONAL = frozenset({"customresourcedefinitions"})
_WORDS = re.compile(
    r'User "(?P<user>[^"]{1,253})" cannot (?P<verb>[a-z]{1,20}) resource "(?P<resource>[a-z0-9./-]{1,253})"'
    r' in API group "(?P<group>[a-z0-9.-]{0,253})"(?: in the namespace "(?P<namespace>[a-z0-9-]{1,63})")?'
)
_ACCOUNT = "system:serviceaccount:"
_Call = tuple[str, str]  # verb of HTTP, or WATCH, and the path of the collection and subresource


class Denial(msgspec.Struct, frozen=True):
    """One denial of the API server."""

    user: str
    verb: str
    resource: str  # "httproutes/status"
    group: str
    namespace: str  # "": all

    def problem(self) -> Problem:
        """Return the problem to report."""
        if self.user.startswith(_ACCOUNT):
            namespace, _, name = self.user.removeprefix(_ACCOUNT).partition(":")
            owner = ObjectRef("ServiceAccount", namespace, name)
        else:
            owner = ObjectRef("User", "", self.user)
        group = f" of API group {self.group}" if self.group else ""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return Problem(
            owner,
            "",
            "AccessDenied",
            f"RBAC denies verb {self.verb} on resource {self.resource}{group} {where}; the controller continues without it and "
            "retries; grant the verb, or install the chart's roles again",
        )


class Denials:
    """Denied calls, each until the same call succeeds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[_Call, tuple[Denial, float]] = {}  # the last seen last

    def fail(self, method: str, path: str, watch: bool, error: ApiError) -> None:
        """Note a call that failed."""
        if error.status != 403 or (found := _WORDS.search(error.message)) is None:
            return
        message = Denial(**{name: text or "" for name, text in found.groupdict().items()})
        if message.resource.partition("/")[0] in _OPTIONAL:
            return
        call = _call_of(method, path, watch)
        before = self._found.pop(call, None)
        self._found[call] = (message, self._clock())
        while len(self._found) > KEPT:
            del self._found[next(iter(self._found))]
        if before is None or before[0] != message:
            log.warning("access denied: %s", message.problem().text())

    def succeed(self, method: str, path: str, watch: bool) -> None:
        """Note a call that succeeded."""
        if self._found and (gone := self._found.pop(_call_of(method, path, watch), None)):
            log.info("access granted: verb=%s resource=%s", gone[0].verb, gone[0].resource)

    def problems(self) -> tuple[Problem, ...]:
        """Return the current denials, in order."""
        since = self._clock() - LAST
        found = {denial for denial, at in self._found.values() if at >= since}
        keys = sorted(found, key=msgspec.structs.astuple)
        return tuple(one.problem() for one in keys)


def _call_of(method: str, path: str, watch: bool) -> _Call:
    """Return the key of a call for RBAC: its path without the object's name."""
    parts = path.split("/")
    at = 3 if parts[1:2] == ["api"] else 4  # "", "api", version; "", "apis", group, version
    if parts[at : at + 1] == ["namespaces"] and len(parts) > at + 2:
        at += 2
    named = len(parts) > at + 1
    verb = "WATCH" if watch else "LIST" if method == "GET" and not named else method
    if named:
        parts[at + 1] = ""
    return verb, "/".join(parts)
