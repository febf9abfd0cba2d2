"""Metadata that all objects of a fleet share: name, namespace, labels, annotations, owner.

In: a fleet and the placement.
Out: `metadata` of a manifest. `adopt` adds it to an object of another component.
Source: spec section 2 (labels); Gateway API GatewayInfrastructure ("applied to any resources
created in response").
Must never: name an owner in another namespace, because the garbage collector would remove the
object; or put a name of `Infra.service_only` on pods or objects that create pods.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.fleets.placement import CONTROLLER_LABEL, Manifest, Placement
from edgefast import ir
from edgefast.api.model.reference import GATEWAY_GROUP


def render_metadata(
    infra: ir.Infra,
    place: Placement,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    of_service: bool = False,
) -> Manifest:
    """Return metadata with what this object has besides; a Gateway's labels win over an EdgeProxy's."""
    shared_labels, shared_annotations = (
        (dict(infra.labels), dict(infra.annotations)) if of_service else pod_metadata(infra)
    )
    made: Manifest = {
        "name": infra.name,
        "namespace": infra.namespace,
        "labels": _sorted({**(labels or {}), **shared_labels, CONTROLLER_LABEL: place.identity}),
    }
    noted = {**(annotations or {}), **shared_annotations}
    if noted:
        made["annotations"] = _sorted(noted)
    if infra.owner is not None:
        kind, name, uid = infra.owner
        made["ownerReferences"] = [
            {"apiVersion": f"{GATEWAY_GROUP}/v1", "kind": kind, "name": name, "uid": uid}
        ]
    return made


def pod_metadata(infra: ir.Infra) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels and annotations that pods may have, of those that the fleet's objects share."""
    withheld = set(infra.service_only)
    kept = dict(infra.selector)  # an annotation of a selecting label's name takes nothing from it
    labels = {name: text for name, text in infra.labels if name in kept or name not in withheld}
    return labels, {name: text for name, text in infra.annotations if name not in withheld}


def adopt(manifest: Manifest, infra: ir.Infra, place: Placement) -> Manifest:
    """Return a manifest with the fleet's metadata; its name, labels and annotations stay."""
    given = manifest["metadata"]
    made = render_metadata(
        infra, place, labels=given.get("labels"), annotations=given.get("annotations")
    )
    return {**manifest, "metadata": {**made, "name": given["name"]}}


def _sorted(values: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(values.items()))
