"""Listener: checks each entry of `spec.listeners` of a Gateway or of a ListenerSet on its own.

In: a Gateway, the ListenerSet if the listener is of one, grants and the keyring.
Out: a `ListenerDraft` for each. merge.py marks its conflicts; then it becomes an ir.Listener and a status.
Source: Gateway API Listener, ListenerEntry; protocol.py lists the served protocols.
Must never: drop a listener that is broken; routes still attach to it and its status reports the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

import msgspec

from edgefast import ir
from edgefast.api.decode.fail_closed.readable import NAMELESS
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.gateway.listener import Listener, RouteGroupKind
from edgefast.api.gateway.listenerset import ListenerSet
from edgefast.api.kinds import ref_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Key
from edgefast.api.validation.hostname import check_own_hostname
from edgefast.diagnostics.problem import Problem, did_you_mean, supported_text
from edgefast.diagnostics.reasons.word import Word
from edgefast.translate.deps.dependency_facts import ListenerView, World
from edgefast.translate.gateway.allowed_namespaces import check_namespaces
from edgefast.translate.gateway.protocol import (
    KINDS_OF,
    family_of,
    has_port_alone,
    is_stream,
    route_kinds,
    served,
    transport_of,
)
from edgefast.translate.match.hostname import ANY
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import find_closing, refuse_unserved
from edgefast.translate.report.violation import refuse_violations
from edgefast.translate.tls.keyring import Keyring
from edgefast.translate.tls.passthrough import check_passthrough, is_terminated
from edgefast.translate.tls.tls import TlsOutcome, translate_tls

NAMESPACES = ("All", "Same", "Selector")
#: A port: transport, number, and the addresses of the Gateways that share it (empty: all that are bound).
PortKey = tuple[ir.Transport, int, tuple[str, ...]]
_NOT_YET = "it is not served yet"
#: Types of filters.
_FILTERS = ("ExternalAuth",)
_FATE = "the listener answers 404"


class ListenerDraft:
    """A listener while Gateways are translated; conflicts are added until all are known."""

    def __init__(self, gateway: Gateway, index: int, set_: ListenerSet | None = None) -> None:
        meta = gateway.metadata
        owner = set_ or gateway
        self.spec: Listener = owner.spec.listeners[index]
        self.path = f"spec.listeners[{index}]"
        #: The ListenerSet it is of, None: the Gateway's own.
        self.set: Key | None = (set_.metadata.namespace, set_.metadata.name) if set_ else None
        #: Its name inside the Gateway; names of ListenerSets need not differ from the Gateway's.
        self.section = "/".join((*(self.set or ()), self.spec.name))
        self.name = f"{meta.namespace}/{meta.name}/{self.section}"
        self.hostname = self.spec.hostname or ANY
        self.report = Report(ref_of(owner))
        self.conflicts: list[Problem] = []
        #: Its place is somebody's who comes before it: one of the conflicts says so, or its object has no name of its own.
        self.lost = NAMELESS in owner.metadata.name
        self.closed: tuple[
            Problem, ...
        ] = ()  # fields that are not served and may decide who gets in
        self.shut = False  # such a field is in its Gateway
        #: A mistake kept its object from being read: nothing is known but the place.
        self.unread = gateway.closed is not None or bool(set_ and set_.closed)
        self.overlaps: list[str] = []  # names of HTTPS listeners that hosts are shared with
        self.kinds: tuple[RouteGroupKind, ...] = ()
        self.tls: TlsOutcome | None = None
        self.port = self.spec.port
        self.bind_port = self.spec.port
        #: Addresses of the Gateways whose listeners can conflict with it (fleet/bound_at.py); empty: all.
        self.group: tuple[str, ...] = ()
        #: Its Gateway requests addresses, and none is usable.
        self.unbound = False
        #: Addresses that it is bound at; empty: all.
        self.addresses: tuple[str, ...] = ()
        #: Not served, and its place is kept from broader ones: a listener that is, of the same port (fleet/reserved_hostnames.py).
        self.held_by: ListenerDraft | None = None
        #: Of one that keeps its hostname: kept, taken by one that is served, or dark, since nobody serves the port.
        self.fate: Literal["", "kept", "taken", "dark"] = ""

    @property
    def named(self) -> bool:
        """Tell whether its name is its own: statuses have one entry for each."""
        return self.section.endswith(self.spec.name)

    @property
    def known(self) -> bool:
        """Tell whether the protocol is one that is served at all."""
        return self.spec.protocol in served()

    @property
    def accepted(self) -> bool:
        """Tell whether the listener is valid and conflicts with none."""
        return not self.report.refused and not self.conflicts

    @property
    def placed(self) -> bool:
        """Tell whether the data plane gets it: accepted, with something to terminate TLS with.

        One that is closed keeps its port and hostname and answers 404: else others would take its requests.
        """
        usable = self.tls is None or self.tls.usable
        return (
            self.accepted and usable and bool(self.kinds) and not self.unread and not self.unbound
        )

    @property
    def served(self) -> bool:
        """Tell whether routes are served on it."""
        return self.placed and not self.closed and not self.shut

    @property
    def place(self) -> PortKey:
        """Its port: one number of two transports, or at addresses that do not overlap, is two ports."""
        return transport_of(self.spec.protocol), self.port, self.group

    @property
    def bound(self) -> PortKey:
        """Its port in the proxies, which two numbers may have."""
        return self.place[0], self.bind_port, self.group

    @property
    def family(self) -> str:
        """What the listeners of its port have to have in common."""
        return family_of(self.spec.protocol)

    @property
    def alone(self) -> bool:
        """Tell whether the port is its place, beside nobody."""
        return has_port_alone(self.spec.protocol)

    @property
    def passes(self) -> bool:
        """Tell whether its connections are passed on with their TLS as it is."""
        return self.spec.protocol == "TLS" and self.tls is None

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of the units that its filters are, in their order; of one that is not served none is met."""
        given = self.spec.filters
        if given is None or not self.served or is_stream(self.spec.protocol):
            return ()
        named = f"listener/{self.name}#filters.requests"
        return tuple(f"{named}[{at}]" for at in range(len(given.requests)))

    def conflict(self, reason: Word, message: str, *, lost: bool = True) -> None:
        """Mark the listener as Conflicted; not `lost`: with its equals, which conflict as well."""
        self.conflicts.append(Problem(self.report.object, self.path, reason, message))
        self.lost = self.lost or lost

    def view(self, *, gateway_served: bool) -> ListenerView:
        """Return what routes see."""
        allowed = self.spec.allowed_routes.namespaces
        return ListenerView(
            name=self.name,
            section=self.spec.name,
            set=self.set,
            port=self.port,
            hostname=self.hostname,
            kinds=tuple(one.kind for one in self.kinds),
            passes=self.passes,
            from_namespaces=allowed.from_,
            selector=allowed.selector,
            served=self.served and gateway_served,
        )

    def listener(
        self,
        http: ir.HttpSettings,
        stream: ir.StreamSettings,
        log: ir.AccessLog,
        tracing: ir.Tracing | None,
    ) -> ir.Listener:
        """Return the data plane's listener; only of one that is placed or held, which shows no certificate."""
        tls = self.tls.tls if self.tls else None
        spoken = cast("ir.Protocol", self.spec.protocol)
        if self.held_by is not None:
            spoken, tls = _hold(self.held_by)
        listener = ir.Listener(
            name=self.name,
            port=self.port,
            bind_port=self.bind_port,
            protocol=spoken,
            hostname=self.hostname,
            tls=tls,
            tracing=tracing,
            addresses=self.addresses,
        )
        # What is the default stays the very default: the encoding leaves it out then.
        if http != listener.http:
            listener = msgspec.structs.replace(listener, http=http)
        if stream != listener.stream and is_stream(spoken):
            listener = msgspec.structs.replace(listener, stream=stream)
        if log != listener.access_log:
            listener = msgspec.structs.replace(listener, access_log=log)
        if self.filters:
            listener = msgspec.structs.replace(listener, filters=self.filters)
        return listener


def _hold(neighbour: ListenerDraft) -> tuple[ir.Protocol, ir.ListenerTls | None]:
    """Return how a place is held beside a listener that is served: without certificates handshakes end, without routes all is refused."""
    spoken = cast("ir.Protocol", neighbour.spec.protocol)
    tls = neighbour.tls
    return spoken, msgspec.structs.replace(tls.tls, certificates=()) if tls else None


def translate_listener(
    gateway: Gateway, index: int, world: World, keyring: Keyring, set_: ListenerSet | None = None
) -> ListenerDraft:
    """Check one listener of a Gateway, or of a ListenerSet that is attached to it."""
    draft = ListenerDraft(gateway, index, set_)
    if draft.unread:
        kinds = KINDS_OF.get(draft.spec.protocol, ()) if draft.known else route_kinds()
        draft.kinds = tuple(RouteGroupKind(kind=kind) for kind in kinds)
        if set_ is not None and set_.closed is not None:
            message = f"the ListenerSet has an error: {set_.closed.said}"
            draft.report.follow(
                draft.report.refuse("", "Invalid", message, condition="UnsupportedValue")
            )
        return draft
    _check_name(set_ or gateway, index, draft)
    draft.closed = (*_find_closing(set_ or gateway, draft), *_close_filters(draft))
    if not draft.known:
        draft.report.refuse(
            f"{draft.path}.protocol",
            "UnsupportedProtocol",
            supported_text(draft.spec.protocol, served()),
            did_you_mean(draft.spec.protocol, served())
            or (_NOT_YET if draft.spec.protocol in KINDS_OF else ""),
        )
        return draft
    draft.kinds = _translate_kinds(draft)
    refuse_violations(check_own_hostname(draft.spec), draft.report, draft.path)
    where = f"{draft.path}.allowedRoutes.namespaces"
    check_namespaces(draft.spec.allowed_routes.namespaces, NAMESPACES, draft.report, where)
    if draft.spec.protocol == "HTTPS" or is_terminated(draft.spec):
        draft.tls = translate_tls(
            gateway, set_ or gateway, draft.spec, draft.path, world, keyring, draft.report
        )
    elif draft.spec.protocol == "TLS":
        check_passthrough(draft.spec, draft.path, draft.report)
    elif draft.spec.tls is not None:
        message = f"is ignored with protocol {draft.spec.protocol}"
        draft.report.warn(f"{draft.path}.tls", "Forbidden", message)
    return draft


def _check_name(owner: Gateway | ListenerSet, index: int, draft: ListenerDraft) -> None:
    """Refuse a listener whose name one before it has, and keep its place under a name of its own.

    Files and the standard CRDs have none; the data plane knows listeners by their names.
    """
    listeners = owner.spec.listeners
    if all(one.name != draft.spec.name for one in listeners[:index]):
        return
    draft.section += f"{NAMELESS}{index}"
    draft.name += f"{NAMELESS}{index}"
    message = f'"{draft.spec.name}" is the name of an earlier listener; the listener is not served'
    draft.report.refuse(f"{draft.path}.name", "Duplicate", message, condition="UnsupportedValue")


def _find_closing(owner: Gateway | ListenerSet, draft: ListenerDraft) -> tuple[Problem, ...]:
    """Return what closes the listener: its own fields, and those of a ListenerSet; a Gateway's shut it (gateway.py)."""
    if not owner.unserved:
        return ()
    report = Report(draft.report.object)
    refuse_unserved(owner, report, _FATE, path=draft.path)
    found = report.refused
    if isinstance(owner, Gateway):
        whole = {one.path for one in find_closing(owner)}
        found = [one for one in found if one.path not in whole]
    return tuple(found)


def _close_filters(draft: ListenerDraft) -> Iterator[Problem]:
    """Give what its filters close it for: a type that cannot be served is never left out (GEP-5224)."""
    given, path = draft.spec.filters, f"{draft.path}.filters"
    report = Report(draft.report.object)
    if given is not None and draft.known and is_stream(draft.spec.protocol):
        message = f"with protocol {draft.spec.protocol}; {_FATE}"
        yield report.refuse(path, "Forbidden", message, condition="InvalidListenerFilter")
    for at, one in enumerate(given.requests if given else ()):
        if one.type in _FILTERS:
            continue
        message, ref = supported_text(one.type, _FILTERS), one.extension_ref
        if ref is not None:
            message += f": {ref.group}/{ref.kind} {ref.name} is not supported before routing"
        yield report.refuse(f"{path}.requests[{at}]", "UnsupportedValue", f"{message}; {_FATE}")


def _translate_kinds(draft: ListenerDraft) -> tuple[RouteGroupKind, ...]:
    wanted = draft.spec.allowed_routes.kinds
    ours = KINDS_OF[draft.spec.protocol]
    if not wanted:
        return tuple(RouteGroupKind(kind=kind) for kind in ours)
    kinds = []
    for at, kind in enumerate(wanted):
        if kind.group == GATEWAY_GROUP and kind.kind in ours:
            kinds.append(kind)
            continue
        named = kind.kind if kind.group == GATEWAY_GROUP else f"{kind.group}/{kind.kind}"
        draft.report.unresolve(
            f"{draft.path}.allowedRoutes.kinds[{at}]",
            "InvalidRouteKinds",
            supported_text(named, ours),
            _hint_kind(kind.kind, ours),
        )
    return tuple(dict.fromkeys(kinds))


def _hint_kind(kind: str, ours: tuple[str, ...]) -> str:
    """Say which listeners take a kind; a kind that there is was not meant to be another one."""
    taking = [one for one, kinds in KINDS_OF.items() if kind in kinds]
    if not taking:
        return did_you_mean(kind, ours)
    return f"{kind}s are for listeners of protocol {' or '.join(taking)}"
