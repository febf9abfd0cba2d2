"""StatusTracker: every desired status, the progress of every fleet, and the part that may be written now.

In: translations as they are published, the proxies' reports, present statuses, the time.
Out: the objects to check, and for one object the fields to write. It is the state of the writer
without I/O, so that each decision can be tested alone.
Must never: read a clock, or keep more than one status of an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from controller.status.merge import merge_status
from controller.status.progress import NO_REASONS, Progress, Reach
from controller.status.readiness import OPEN, ReadinessGate, gate_status
from controller.status.rejections import NO_REJECTIONS, Rejections
from controller.status.shape import SHAPES, Json, is_bad
from controller.status.stale import NONE, StaleStatuses
from edgefast.api.model.origin import is_made
from edgefast.api.model.route_name import ROUTE_KINDS, ref_of_key, route_key
from edgefast.collections.sorted_map import find_unlike
from edgefast.translate.conditions.status import AnyStatus, Statuses

#: (kind, namespace, name)
Ref = tuple[str, str, str]
Key = tuple[str, str]

#: Seconds that news of both kinds waits for its good part, to be written at once.
GRACE = 0.25

_NOTHING: tuple[tuple[str, ...], bool] = ((), False)

_TABLES = {
    "GatewayClass": "gateway_classes",
    "Gateway": "gateways",
    "ListenerSet": "listener_sets",
    "HTTPRoute": "http_routes",
    "GRPCRoute": "grpc_routes",
    "TLSRoute": "tls_routes",
    "TCPRoute": "tcp_routes",
    "UDPRoute": "udp_routes",
    "BackendTLSPolicy": "backend_tls_policies",
    "SecurityPolicy": "security_policies",
    "BackendTrafficPolicy": "backend_traffic_policies",
    "XBackend": "x_backends",
    "XBackendTrafficPolicy": "x_backend_traffic_policies",
    "Ingress": "ingresses",
}
#: Kinds with entries that say whether they are programmed.
_PROGRAMMED = ("SecurityPolicy", "BackendTrafficPolicy", "XBackendTrafficPolicy")


class Wanted(msgspec.Struct, frozen=True):
    """A status, the revision that it is of, and when that was."""

    status: AnyStatus
    revision: int
    since: float


class WriteDecision(msgspec.Struct, frozen=True):
    """What to do about one object now: write `fields` (None: nothing), and look again after some seconds (0: never)."""

    fields: Json | None = None
    again: float = 0.0


class StatusTracker:
    """Holds the wanted status of each object and decides what can be written now.

    Methods that change something return the objects worth a look.
    """

    def __init__(self, controller: str) -> None:
        self.controller = controller  # spec.controllerName
        self._wanted: dict[str, dict[Key, Wanted]] = {kind: {} for kind in _TABLES}
        self._tables: dict[str, Mapping[Key, AnyStatus]] = {}  # as they came last
        self._fleet_of: Mapping[Key, str] = {}
        self._ingress_fleet: str | None = None  # that serves Ingresses
        self._parents: Mapping[Key, Key] = {}  # Gateways of ListenerSets
        self._progress: dict[str, Progress] = {}
        self._reached: dict[str, int] = {}
        self._reach: dict[str, Reach] = {}
        self._rejections: dict[str, Rejections] = {}
        self._notes: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._keys: dict[str, Mapping[Key, str]] = {}  # by fleet: key sets of policies that fail
        self._waiting: dict[str, set[Ref]] = {}  # by fleet: looked at while its gate was closed
        self._ever: set[Ref] = set()  # ours once; entries may be left at the server
        self.farewells: StaleStatuses = NONE

    def __len__(self) -> int:
        return sum(map(len, self._wanted.values()))

    def refs(self) -> list[Ref]:
        """Return every object with a status of ours, or with one to take away."""
        ours = [(kind, *key) for kind, table in self._wanted.items() for key in table]
        rest = self._ever | self.farewells.statuses.keys()
        return [*ours, *(ref for ref in rest if self._find(ref) is None)]

    def is_ours(self, ref: Ref) -> bool:
        """Tell whether there is anything to say about an object."""
        return self._find(ref) is not None or ref in self._ever or ref in self.farewells.statuses

    def wants(self, ref: Ref) -> bool:
        """Tell whether an object has a status of ours."""
        return self._find(ref) is not None

    def _find(self, ref: Ref) -> Wanted | None:
        return self._wanted[ref[0]].get(ref[1:])

    def disown(self, ref: Ref) -> None:
        """Note an object that has entries of ours at the server, whether or not any are wanted."""
        self._ever.add(ref)

    def take_leave(self, stale: StaleStatuses) -> set[Ref]:
        """Take what is to be said of objects that are answered for no more; after `want`."""
        before, self.farewells = self.farewells, stale
        return {ref for ref, status in stale.statuses.items() if before.statuses.get(ref) != status}

    def forget(self, ref: Ref) -> None:
        """Drop an object that is gone."""
        if self._find(ref) is None:
            self._ever.discard(ref)

    def want(
        self,
        statuses: Statuses,
        revision: int,
        versions: Mapping[str, str],
        fleet_of: Mapping[Key, str],
        now: float,
    ) -> set[Ref]:
        """Take the statuses of a revision, the version of each fleet's tables and the fleet of each Gateway."""
        dirty: set[Ref] = set()
        for kind, table in _TABLES.items():
            dirty |= self._compare(kind, getattr(statuses, table), revision, now)
        if fleet_of != self._fleet_of:
            dirty |= {("Gateway", *key) for key in fleet_of}
            self._fleet_of = dict(fleet_of)
            made = (one for key, one in fleet_of.items() if is_made(key[1]))
            self._ingress_fleet = next(made, None)
        self._parents = statuses.parents
        for fleet, version in versions.items():
            self._progress.setdefault(fleet, Progress()).publish(revision, version, now)
        for fleet in self._progress.keys() - versions.keys():
            dirty |= self._waiting.pop(fleet, set())
            dirty |= self.see_keys(fleet, {})
            for state in (
                self._progress,
                self._reached,
                self._reach,
                self._rejections,
                self._notes,
            ):
                state.pop(fleet, None)
        return dirty | self.look(now)

    def _compare(
        self, kind: str, table: Mapping[Key, AnyStatus], revision: int, now: float
    ) -> set[Ref]:
        dirty: set[Ref] = set()
        wanted = self._wanted[kind]
        gone, events = find_unlike(self._tables.get(kind, {}), table)
        self._tables[kind] = table
        for key, status in events.items():
            before = wanted.get(key)
            if before is None or (before.status is not status and before.status != status):
                wanted[key] = Wanted(status, revision, now)
                dirty.add((kind, *key))
        for key in gone.keys() - events.keys():
            del wanted[key]
            self._ever.add((kind, *key))
            dirty.add((kind, *key))
        return dirty

    def see_proxies(
        self,
        fleet: str,
        ready: Iterable[str],
        served: dict[str, str],
        blame: Rejections,
        now: float,
        why: Mapping[str, str] = NO_REASONS,
    ) -> set[Ref]:
        """Take what is known of a fleet's proxies: who is ready, what each serves, what was refused.

        `why`: of those that cannot serve the newest table, the reason.
        """
        self._progress.setdefault(fleet, Progress()).see_proxies(ready, served, why)
        dirty: set[Ref] = set()
        before = self._rejections.get(fleet, NO_REJECTIONS)
        if blame != before:
            self._rejections[fleet] = blame
            for one in (before, blame):
                dirty |= {("Gateway", *key) for key in one.gateways}
                for ref in map(ref_of_key, one.routes):
                    dirty.add((ref.kind, ref.namespace, ref.name))
                dirty |= {
                    ("ListenerSet", *key)
                    for key, gateway in self._parents.items()
                    if gateway in one.gateways
                }
        return dirty | self.look(now, (fleet,))

    def see_keys(self, fleet: str, texts: Mapping[Key, str]) -> set[Ref]:
        """Take, by SecurityPolicy, the text about key sets that proxies of a fleet cannot fetch."""
        before = self._keys.pop(fleet, {})
        if texts:
            self._keys[fleet] = texts
        both = {*before, *texts}
        return {("SecurityPolicy", *key) for key in both if before.get(key) != texts.get(key)}

    def see_fleet(self, fleet: str, notes: tuple[str, ...], *, awaited: bool = False) -> set[Ref]:
        """Take what there is to say of a fleet besides tables, for the statuses of its Gateways; see Gate."""
        seen = (notes, awaited)
        before = self._notes.get(fleet, _NOTHING)
        if seen == before:
            return set()
        self._notes[fleet] = seen
        found = self._fronts_of(fleet)
        return found | self._policies() if before[1] != awaited else found

    def look(self, now: float, fleets: Iterable[str] | None = None) -> set[Ref]:
        """Return the objects whose gates have moved since the last look, at some fleets or all."""
        dirty: set[Ref] = set()
        for fleet in self._progress if fleets is None else fleets:
            progress = self._progress[fleet]
            reached, reach = progress.reached(now), progress.reach(now)
            if reached != self._reached.get(fleet):
                self._reached[fleet] = reached
                dirty |= self._release(fleet, reached)
            before = self._reach.get(fleet, Reach())
            if fleet not in self._reach or reach != before:
                self._reach[fleet] = reach
                dirty |= self._fronts_of(fleet)
            if reach.deserted != before.deserted:
                dirty |= self._policies()
        return dirty

    def _policies(self) -> set[Ref]:
        """Return the policies that say themselves whether they are programmed; where there is no proxy they are not."""
        return {(kind, *key) for kind in _PROGRAMMED for key in self._wanted[kind]}

    def _fronts_of(self, fleet: str) -> set[Ref]:
        """Return the Gateways and ListenerSets that a fleet serves."""
        gateways = {key for key, one in self._fleet_of.items() if one == fleet}
        sets = (key for key, gateway in self._parents.items() if gateway in gateways)
        return {*(("Gateway", *key) for key in gateways), *(("ListenerSet", *key) for key in sets)}

    def _release(self, fleet: str, reached: int) -> set[Ref]:
        waiting = self._waiting.get(fleet, set())
        free = {
            ref
            for ref in waiting
            if (wanted := self._find(ref)) is None or wanted.revision <= reached
        }
        waiting -= free
        return free

    def next_look(self, now: float) -> float:
        """Return the seconds until `look` may say something new, 0 for never."""
        soon = [wait for one in self._progress.values() if (wait := one.next_look(now)) > 0]
        return min(soon, default=0.0)

    def judge(
        self, ref: Ref, present: Json, now: float, stamp: str, *, ours: bool = True
    ) -> WriteDecision:
        """Return what to write into an object whose status is `present`; `stamp` is the time as RFC 3339 text.

        `ours`: this controller wrote the present status (kube/status_author.py); only then a final status is written, and the addresses
        of an Ingress are cleared.
        """
        kind, namespace, name = ref
        wanted = self._find(ref)
        if wanted is None:
            last = self.farewells.statuses.get(ref) if ours else None
            return WriteDecision(self._merge(ref, present, last, stamp))
        # As the server would give it back: lists, so that equal is equal.
        plain: Json = msgspec.json.decode(msgspec.json.encode(wanted.status))
        if kind == "Ingress" and not ours and not plain.get("loadBalancer", {}).get("ingress"):
            return WriteDecision()  # clients still find it at the addresses of another controller
        closed: set[str] = set()

        def find_gate(parent_kind: str, parent_namespace: str, parent: str) -> ReadinessGate:
            gateway = (parent_namespace, parent)
            if parent_kind == "ListenerSet":
                gateway = self._parents.get(gateway, gateway)
            fleet = self._fleet_of.get(gateway)
            if parent_kind == "Ingress":
                fleet = self._ingress_fleet
            if fleet is None:
                return OPEN
            found = self._gate(ref, gateway, fleet, wanted.revision)
            if not found.open:
                closed.add(fleet)
            return found

        held = gate_status(kind, namespace, name, present, plain, find_gate, self.controller)
        for fleet in closed:
            self._waiting.setdefault(fleet, set()).add(ref)
        if closed and (wait := wanted.since + GRACE - now) > 0 and _is_mixed(plain):
            return WriteDecision(again=wait)
        return WriteDecision(self._merge(ref, present, held, stamp))

    def _merge(self, ref: Ref, present: Json, wanted: Json | None, stamp: str) -> Json | None:
        kind, namespace, _ = ref
        return merge_status(
            kind,
            namespace,
            present,
            wanted,
            controller=self.controller,
            now=stamp,
            is_stale=self.farewells.is_stale if self.farewells.former else None,
        )

    def _gate(self, ref: Ref, gateway: Key, fleet: str, revision: int) -> ReadinessGate:
        blame = self._rejections.get(fleet, NO_REJECTIONS)
        if ref[0] in ("Gateway", "ListenerSet"):
            refused = blame.gateways.get(gateway, ())
        else:
            named = route_key(*ref) if ref[0] in ROUTE_KINDS else None
            refused = blame.routes.get(named, ()) if named else ()
        notes, awaited = self._notes.get(fleet, _NOTHING)
        return ReadinessGate(
            open=self._reached.get(fleet, 0) >= revision,
            reach=self._reach.get(fleet, Reach()),
            refused=refused,
            notes=notes if ref[0] == "Gateway" else (),
            awaited=awaited,
            unfetched=self._keys.get(fleet, {}).get(ref[1:], "")
            if ref[0] == "SecurityPolicy"
            else "",
        )

    def explain(self) -> list[dict[str, Any]]:
        """Return each fleet's progress, for the admin server."""
        return [
            {
                "fleet": name,
                "reached": self._reached.get(name, 0),
                "proxies": self._reach.get(name, Reach()).ready,
                "behind": list(self._reach.get(name, Reach()).behind),
                "statusesWaiting": len(self._waiting.get(name, ())),
            }
            for name in sorted(self._progress)
        ]


def _is_mixed(status: Json) -> bool:
    """Tell whether some news is bad and some is good, in a kind whose good news waits."""
    conditions = [
        condition
        for field in ("parents", "ancestors")
        for entry in status.get(field) or ()
        for condition in entry["conditions"]
    ]
    return len({is_bad(one) for one in conditions}) > 1


assert _TABLES.keys() == SHAPES.keys()
