"""Route sums: statuses that depend on routes alone, attachedRoutes, users of Services and XBackends, problems.

In: the sums of the previous translation and (old, new) pairs of route outcomes.
Out: the next sums; the cost is proportional to the pairs.
Must never: differ from the sums of all present outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.snapshot import Key
from edgefast.collections.sorted_map import EMPTY, Draft, SortedMap
from edgefast.diagnostics.problem import Problem
from edgefast.translate.conditions.status import RouteStatus
from edgefast.translate.route.outcome import RouteOutcome, key_of_route

_T = TypeVar("_T")


class RouteSums(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is asked of all routes together; never changed after it was made."""

    statuses: SortedMap[Key, RouteStatus] = EMPTY  # as far as each route alone decides
    attached: SortedMap[str, int] = EMPTY  # routes by listener
    users: SortedMap[tuple[Key, Key], int] = EMPTY  # routes by (Service, Gateway)
    x_users: SortedMap[tuple[Key, Key], int] = EMPTY  # routes by (XBackend, Gateway)
    problems: SortedMap[Key, tuple[Problem, ...]] = EMPTY  # of routes that have any

    def every_problem(self) -> Iterator[Problem]:
        """Give the problems of all routes."""
        for problems in self.problems.values():
            yield from problems

    def users_of(self, service: Key) -> Iterator[Key]:
        """Give the Gateways that use a Service, in order."""
        return _gateways_of(self.users, service)

    def x_users_of(self, backend: Key) -> Iterator[Key]:
        """Give the Gateways that use an XBackend, in order."""
        return _gateways_of(self.x_users, backend)


def _gateways_of(users: SortedMap[tuple[Key, Key], int], one: Key) -> Iterator[Key]:
    for used, gateway in users.starting_at((one, ("", ""))):
        if used != one:
            return
        yield gateway


def sum_routes(
    changes: Iterable[tuple[RouteOutcome | None, RouteOutcome | None]], previous: RouteSums
) -> RouteSums:
    """Return the sums after (old, new) pairs of outcomes; None means absent."""
    statuses, problems = previous.statuses.edit(), previous.problems.edit()
    attached, users = previous.attached.edit(), previous.users.edit()
    x_users = previous.x_users.edit()
    for old, new in changes:
        one = new or old
        assert one is not None
        route, meta = one.route, one.route.metadata
        key = (
            (meta.namespace, meta.name) if type(route) is HTTPRoute else key_of_route(route)
        )  # most there are cost no call
        if new is not None and new.status.parents:
            statuses[key] = new.status
        else:
            statuses.pop(key, None)
        if new is not None and new.problems:
            problems[key] = new.problems
        else:
            problems.pop(key, None)
        _count(attached, old.counted if old else (), new.counted if new else ())
        _count(users, old.users if old else (), new.users if new else ())
        if (old and old.x_users) or (new and new.x_users):
            _count(x_users, old.x_users if old else (), new.x_users if new else ())
    return RouteSums(
        statuses=statuses.done(),
        attached=attached.done(),
        users=users.done(),
        x_users=x_users.done(),
        problems=problems.done(),
    )


def _count(counts: Draft[_T, int], gone: Iterable[_T], come: Iterable[_T]) -> None:
    if gone == come:
        return  # most changes are of something else, and the map stays the identical one
    for one in come:
        counts[one] = counts.get(one, 0) + 1
    for one in gone:
        counts[one] -= 1
        if not counts[one]:
            del counts[one]
