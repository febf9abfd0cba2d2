"""Claim: a fleet goes when its Gateway or class is gone, or another controller has the Gateway; a slip of the pen costs none."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from controller.fleets.fleet_owner import Owner, class_of
from controller.fleets.ownership import (
    ObjectFacts,
    Ownership,
    UnownedFleet,
    explain_gateway,
    find_ownership,
)
from edgefast.api.kinds import Object
from edgefast.api.model.meta import LabelSelector
from edgefast.api.snapshot import Snapshot
from edgefast.translate.fleet.fleet import label_value
from edgefast.translate.settings import Settings
from tests.translate import world

pytestmark = pytest.mark.pure

FLEET = "edge-gateway-system/edge-default-gw-00000000"
OWN = Owner("default", "gw")
MERGED = Owner("", "", "edge")
KEY = ("default", "gw")
HERE = ("192.0.2.1",)
OTHER = world.gateway_class("example.com/another")


def claim(
    owner: Owner, *objects: Object, sight: ObjectFacts | None = None, **settings: Any
) -> Ownership | None:
    """Return what speaks for a fleet among these objects."""
    return find_ownership(
        UnownedFleet(FLEET, owner, HERE),
        Snapshot.of(list(objects)),
        Settings(standalone=False, **settings),
        sight or ObjectFacts(),
    )


def namespace(name: str = "default", **labels: str) -> Object:
    meta = {"name": name, "uid": f"uid-{name}", "labels": labels}
    return world.make({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


def why(found: Ownership | None) -> str:
    assert found is not None
    return found.why


@pytest.mark.parametrize("owner", [OWN, MERGED], ids=["own", "merged"])
def test_what_is_gone_keeps_nothing(owner: Owner) -> None:
    assert claim(owner) is None
    gone = ObjectFacts(made_for=lambda fleet: "edge")
    assert claim(owner, world.gateway(), sight=gone) is None  # its class
    assert claim(owner, world.gateway_class()) is None  # its Gateways


@pytest.mark.parametrize("owner", [OWN, MERGED], ids=["own", "merged"])
def test_a_changed_controller_name_deletes_nothing(owner: Owner) -> None:
    """It is the same as a class of another controller, as long as nobody says that it has the Gateway."""
    found = claim(owner, OTHER, world.gateway())
    assert found is not None and found.gateways == (KEY,)
    assert found.why == (
        "GatewayClass edge belongs to controller example.com/another, and this controller is "
        "gateway.edge.io/gatewayclass-controller"
    )


@pytest.mark.parametrize("owner", [OWN, MERGED], ids=["own", "merged"])
def test_what_another_controller_has_programmed_elsewhere_goes(owner: Owner) -> None:
    asked: list[Any] = []

    def elsewhere(gateway: Any, addresses: Collection[str]) -> bool:
        asked.append((gateway, tuple(addresses)))
        return True

    assert claim(owner, OTHER, world.gateway(), sight=ObjectFacts(elsewhere=elsewhere)) is None
    assert asked and set(asked) == {(KEY, HERE)}


def test_a_merged_fleet_waits_for_all_of_its_gateways() -> None:
    moved = ObjectFacts(elsewhere=lambda gateway, addresses: gateway == ("default", "one"))
    objects = (OTHER, world.gateway("one"), world.gateway("two", port=81))
    found = claim(MERGED, *objects, sight=moved)
    assert found is not None and found.gateways == (("default", "two"),)
    assert claim(Owner("default", "", "edge"), *objects, sight=moved) == found
    assert claim(Owner("elsewhere", "", "edge"), *objects, sight=moved) is None


def test_a_merged_fleet_stays_for_those_that_have_left_its_class_for_nobodys() -> None:
    """The class is ours and empty: its last Gateway names a class that is another controller's, which does not serve it."""
    objects = (OTHER, world.gateway())
    spec = {"controllerName": Settings().controller_name}
    meta = {"name": "merged"}
    raw = {"apiVersion": world.GATEWAY, "kind": "GatewayClass", "metadata": meta, "spec": spec}
    owner = Owner("", "", "merged")
    served = ObjectFacts(served=lambda fleet: (KEY, ("default", "no-more")))
    found = claim(owner, world.make(raw), *objects, sight=served)
    assert found is not None and found.gateways == (KEY,)
    assert claim(owner, world.make(raw), *objects) is None


def test_nobody_elsewhere_takes_a_gateway_whose_class_is_ours() -> None:
    """What somebody wrote into its status is no reason: the class does not say so by name."""
    seen = ObjectFacts(elsewhere=lambda gateway, addresses: True)
    unlabelled = claim(
        OWN,
        world.gateway_class(),
        world.gateway(),
        namespace(),
        sight=seen,
        watch_selector=LabelSelector(match_labels={"edge": "yes"}),
    )
    assert why(unlabelled) == "namespace default is not watched"


def test_a_class_that_is_not_there_is_a_slip_of_the_pen_and_a_class_that_is_gone_is_not() -> None:
    """The Gateway names a class that never was; what its fleet was made for is there still."""
    made_for = ObjectFacts(made_for=lambda fleet: "another")
    assert why(claim(OWN, world.gateway(), sight=made_for)) == "GatewayClass edge not found"
    assert why(claim(OWN, world.gateway())) == "GatewayClass edge not found"  # nobody knows


def test_a_namespace_that_loses_its_label_keeps_its_fleets() -> None:
    selector = LabelSelector(match_labels={"edge": "yes"})
    objects = (world.gateway_class(), world.gateway())
    for owner in (OWN, MERGED):
        found = claim(owner, *objects, namespace(edge="no"), watch_selector=selector)
        assert why(found) == "namespace default is not watched"
    never = ObjectFacts(told=lambda gateway: False)
    unserved = claim(MERGED, *objects, namespace(edge="no"), sight=never, watch_selector=selector)
    assert unserved is None  # it was never in the merged fleet: this one's Gateways are gone


def test_a_namespace_that_is_listed_no_more_keeps_its_fleets_while_it_is_there() -> None:
    """Its Gateway cannot be seen any more, which is not the same as being gone."""
    watch = {"watch_namespaces": ("other",)}
    assert why(claim(OWN, world.gateway_class(), namespace(), **watch)) == (
        "namespace default is not watched, and its Gateway cannot be read"
    )
    assert claim(OWN, world.gateway_class(), **watch) is None
    assert claim(Owner("other", "gw"), world.gateway_class(), namespace("other"), **watch) is None


def test_what_cannot_be_read_is_not_gone() -> None:
    unread = ObjectFacts(unread={("Gateway", "default", "gw")})
    assert why(claim(OWN, world.gateway_class(), sight=unread)) == (
        "Gateway default/gw cannot be read"
    )
    assert why(claim(MERGED, world.gateway_class(), sight=unread)) == (
        "a Gateway that it possibly serves cannot be read"
    )
    unread = ObjectFacts(unread={("GatewayClass", "", "edge")}, made_for=lambda fleet: "edge")
    for owner in (OWN, MERGED):
        assert why(claim(owner, world.gateway(), sight=unread)) == (
            "GatewayClass edge cannot be read"
        )


def test_kinds_that_are_not_served_for_now_delete_nothing() -> None:
    """A CRD that is not established for a while takes all objects from sight, and none from the cluster."""
    for owner in (OWN, MERGED):
        lost = ObjectFacts(unserved={"GatewayClass", "Gateway", "TLSRoute"})
        assert (
            why(claim(owner, sight=lost)) == "the API server serves no Gateway and no GatewayClass"
        )
        assert claim(owner, sight=ObjectFacts(unserved={"ListenerSet"})) is None


def test_names_that_labels_cut_are_found() -> None:
    name = "g" * 80
    assert claim(Owner("default", label_value(name)), OTHER, world.gateway(name)) is not None
    assert claim(Owner("default", label_value("h" * 80)), OTHER, world.gateway(name)) is None


def test_what_is_answered_for_has_no_explanation() -> None:
    snapshot = Snapshot.of([world.gateway_class(), world.gateway()])
    settings = Settings(standalone=False)
    assert explain_gateway(KEY, snapshot.gateways[KEY], snapshot, settings) == ""


def test_the_class_is_read_from_owner_references() -> None:
    owned = {"metadata": {"ownerReferences": [{"kind": "GatewayClass", "name": "edge"}]}}
    certificate = {"metadata": {"ownerReferences": [{"kind": "ServiceAccount", "name": "edge"}]}}
    of_gateway = {"metadata": {"ownerReferences": [{"kind": "Gateway", "name": "gw"}]}}
    assert class_of([owned, certificate]) == "edge"
    assert class_of([certificate, owned]) == "edge", "watches show a fleet's objects in any order"
    assert class_of([certificate, of_gateway, {"metadata": {}}]) == ""
    assert class_of([]) == ""
