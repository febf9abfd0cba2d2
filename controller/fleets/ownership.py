"""Ownership: reasons to remove a fleet that this controller created and that it no longer serves.

In: the fleet and its owner, the existing objects, and the statuses of Gateways from other
controllers.
Out: an `Ownership` with its reason as text, or None. A fleet may be removed only when its Gateway
or its class is gone, or when the class names another controller that has programmed the Gateway
elsewhere. A changed `controllerName`, a removed namespace label or a missing class may be a typing
error, which must not cost requests.
Must never: treat an object that cannot be read as gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import msgspec

from controller.fleets.fleet_owner import NO_OWNER, Owner
from edgefast.api.gateway.gateway import Gateway
from edgefast.api.snapshot import Key, Snapshot
from edgefast.translate.fleet.fleet import is_cut, label_value
from edgefast.translate.settings import Settings

__all__ = ["Ownership", "ObjectFacts", "UnownedFleet", "explain_gateway", "find_ownership"]


class Ownership(msgspec.Struct, frozen=True):
    """Why a fleet stays, and the Gateways that were served by it, as far as they can be seen."""

    why: str
    gateways: tuple[Key, ...] = ()
    #: This process has the fleet's last table. One that was started since has not: nobody but the proxies themselves has.
    table: bool = True

    @property
    def pods(self) -> str:
        """What to add to "goes on with its last table"."""
        return (
            ""
            if self.table
            else " (new pods get no table because this controller restarted after the table was "
            "made)"
        )

    def tell(self, fleet: str) -> str:
        """Return what there is to say of a fleet that stays."""
        return f"fleet {fleet} serves its last table{self.pods} because no controller handles it: {self.why}"


class UnownedFleet(msgspec.Struct, frozen=True):
    """A fleet that this controller has made and that nobody wants."""

    key: str  # "namespace/name"
    owner: Owner
    addresses: Collection[str] = ()  # at which it can be reached


class ObjectFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of objects besides themselves."""

    #: Objects that are there and cannot be decoded, by (kind, namespace, name).
    unread: Collection[tuple[str, str, str]] = ()
    #: Kinds that the API server does not serve: their objects cannot be seen, whether or not they are there.
    unserved: Collection[str] = ()
    #: Tells whether somebody else has a Gateway programmed, at addresses other than these.
    elsewhere: Callable[[Key, Collection[str]], bool] = lambda gateway, addresses: False
    #: Tells whether the status of a Gateway is this controller's word still.
    told: Callable[[Key], bool] = lambda gateway: True
    #: Finds the class that a fleet ("namespace/name") was made for, "" when its objects do not say.
    made_for: Callable[[str], str] = lambda fleet: ""
    #: Gateways that a merged fleet was for when it was last wanted, () when this process does not know.
    served: Callable[[str], Collection[Key]] = lambda fleet: ()


def find_ownership(
    fleet: UnownedFleet, snapshot: Snapshot, settings: Settings, view: ObjectFacts
) -> Ownership | None:
    """Return what speaks for a fleet; None: nothing, it may go."""
    if fleet.owner == NO_OWNER:
        return Ownership("its labels do not name its owner")
    if lost := sorted({"Gateway", "GatewayClass"} & set(view.unserved)):
        return Ownership(f"the API server serves no {' and no '.join(lost)}")
    if fleet.owner.gateway:
        return _of_gateway(fleet, snapshot, settings, view)
    return _of_class(fleet, snapshot, settings, view)


def explain_gateway(key: Key, gateway: Gateway, snapshot: Snapshot, settings: Settings) -> str:
    """Return why this controller does not answer for a Gateway that is there, "" when it does."""
    name = gateway.spec.gateway_class_name
    gateway_class = snapshot.gateway_classes.get(("", name))
    if gateway_class is None:
        return f"GatewayClass {name} not found"
    other = gateway_class.spec.controller_name
    if other != settings.controller_name:
        return f"GatewayClass {name} belongs to controller {other}, and this controller is {settings.controller_name}"
    if not _is_watched(key[0], snapshot, settings):
        return f"namespace {key[0]} is not watched"
    return ""


def _of_gateway(
    fleet: UnownedFleet, snapshot: Snapshot, settings: Settings, view: ObjectFacts
) -> Ownership | None:
    owner = fleet.owner
    key = _find_gateway(owner, snapshot)
    if key is None:
        if ("Gateway", owner.namespace, owner.gateway) in view.unread:
            return Ownership(f"Gateway {owner.namespace}/{owner.gateway} cannot be read")
        if _is_out_of_sight(owner.namespace, snapshot, settings):
            return Ownership(
                f"namespace {owner.namespace} is not watched, and its Gateway cannot be read"
            )
        return None
    gateway = snapshot.gateways[key]
    name = gateway.spec.gateway_class_name
    gateway_class = snapshot.gateway_classes.get(("", name))
    if gateway_class is None:
        if ("GatewayClass", "", name) in view.unread:
            return Ownership(f"GatewayClass {name} cannot be read", (key,))
        if view.made_for(fleet.key) == name:
            return None  # the very class that it was made for is gone
    elif _is_foreign(name, snapshot, settings) and view.elsewhere(key, fleet.addresses):
        return None
    why = explain_gateway(key, gateway, snapshot, settings)
    return Ownership(why, (key,)) if why else None


def _of_class(
    fleet: UnownedFleet, snapshot: Snapshot, settings: Settings, view: ObjectFacts
) -> Ownership | None:
    owner = fleet.owner
    name = _find_class(owner, snapshot)
    if name is None:
        if ("GatewayClass", "", owner.gateway_class) in view.unread:
            return Ownership(f"GatewayClass {owner.gateway_class} cannot be read")
        return None
    if any(
        kind == "Gateway" and namespace == (owner.namespace or namespace)
        for kind, namespace, _ in view.unread
    ):
        return Ownership("a Gateway that it possibly serves cannot be read")
    foreign = _is_foreign(name, snapshot, settings)
    served = [key for key in view.served(fleet.key) if key in snapshot.gateways]
    found = tuple(dict.fromkeys((*_gateways_of(owner.namespace, name, snapshot), *served)))
    # A Gateway of the class that never was served here is nothing to this fleet.
    held = tuple(
        key
        for key in found
        if not view.elsewhere(key, fleet.addresses)
        and (foreign or key in served or view.told(key))
        and explain_gateway(key, snapshot.gateways[key], snapshot, settings)
    )
    if held:
        why = explain_gateway(held[0], snapshot.gateways[held[0]], snapshot, settings)
        return Ownership(why, held)
    if foreign and not found and settings.watch_namespaces:
        return Ownership(
            f"GatewayClass {name} belongs to another controller, and its Gateways cannot be read"
        )
    return None


def _find_gateway(owner: Owner, snapshot: Snapshot) -> Key | None:
    key = (owner.namespace, owner.gateway)
    if key in snapshot.gateways:
        return key
    if not is_cut(owner.gateway):
        return None
    return next(
        (
            one
            for one in snapshot.gateways
            if one[0] == owner.namespace and label_value(one[1]) == owner.gateway
        ),
        None,
    )


def _find_class(owner: Owner, snapshot: Snapshot) -> str | None:
    if ("", owner.gateway_class) in snapshot.gateway_classes:
        return owner.gateway_class
    names = (name for _, name in snapshot.gateway_classes)
    return next((one for one in names if label_value(one) == owner.gateway_class), None)


def _gateways_of(namespace: str, class_name: str, snapshot: Snapshot) -> Iterator[Key]:
    """Give the Gateways of a class, in one namespace or, with "", in all."""
    for key, gateway in snapshot.gateways.items():
        if gateway.spec.gateway_class_name == class_name and namespace in ("", key[0]):
            yield key


def _is_foreign(class_name: str, snapshot: Snapshot, settings: Settings) -> bool:
    return snapshot.gateway_classes["", class_name].spec.controller_name != settings.controller_name


def _is_watched(namespace: str, snapshot: Snapshot, settings: Settings) -> bool:
    found = snapshot.namespaces.get(("", namespace))
    return settings.watches(namespace, found.metadata.labels if found else {})


def _is_out_of_sight(namespace: str, snapshot: Snapshot, settings: Settings) -> bool:
    """Tell whether nothing of a namespace is read although it is there."""
    if not settings.watch_namespaces or namespace in settings.watch_namespaces:
        return False
    found = snapshot.namespaces.get(("", namespace))
    return found is not None and bool(found.metadata.uid)
