"""Meta: ObjectMeta and label selectors: the parts of `k8s.io/apimachinery` that objects carry.

In: the `metadata` of a document. Out: the names, labels and versions that translation reads.
Must never: keep managedFields, owners or finalizers; edgefast does not read them and they are
large.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from edgefast.api.model.fields import DNSSubdomain, Element, expects
from edgefast.api.model.units import TIMESTAMP_PATTERN


class ObjectMeta(Element, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """What identifies an object; `creation_timestamp` is RFC 3339 text, "" in files."""

    #: Known to Kubernetes, read by nobody here: no mistake in a file.
    unread: ClassVar[frozenset[str]] = frozenset(
        {
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generateName",
            "managedFields",
            "ownerReferences",
            "selfLink",
        }
    )

    name: DNSSubdomain
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    uid: str = ""
    generation: int = 0
    creation_timestamp: Annotated[
        str,
        Meta(
            pattern=TIMESTAMP_PATTERN,
            extra=expects("a time of RFC 3339 such as 2026-01-31T12:00:00Z"),
        ),
    ] = ""
    resource_version: str = ""


class LabelSelectorRequirement(Element, frozen=True, kw_only=True):
    """One `matchExpressions` entry."""

    key: Annotated[str, Meta(description="Key of the label.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        Meta(description="Comparison of the label."),
    ]
    values: Annotated[tuple[str, ...], Meta(description="Values. Only for In and NotIn.")] = ()


class LabelSelector(Element, frozen=True, kw_only=True):
    """All of `match_labels` and all of `match_expressions` must hold; an empty one selects all."""

    match_labels: Annotated[
        dict[str, str], Meta(description="Required labels with their values.")
    ] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...], Meta(description="Conditions. All must match.")
    ] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Tell whether a set of labels is selected (apimachinery `labels.Requirement.Matches`)."""
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(_requirement_holds(one, labels) for one in self.match_expressions)


def _requirement_holds(requirement: LabelSelectorRequirement, labels: dict[str, str]) -> bool:
    present = requirement.key in labels
    operator: str = requirement.operator  # an API server newer than us may have other words
    match operator:
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "In":
            return present and labels[requirement.key] in requirement.values
        case "NotIn":  # an absent label is not in the list either
            return not present or labels[requirement.key] not in requirement.values
        case _:  # what is not understood selects nothing
            return False
