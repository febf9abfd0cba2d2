"""Selected pod: the Pods of a selector: addresses, readiness, and whether the list is current.

In: Pods of an API server, as the controller follows them. Out: values of `Snapshot.pods`. Files
have no Pods.
Source: as in Kubernetes' own EndpointSlices: the first address of the Pod; ready, or serving while
it terminates.
Must never: hold a field that changes while these stay the same.
"""

from __future__ import annotations

import msgspec

__all__ = ["SelectedPod", "SelectedPods"]


class SelectedPod(msgspec.Struct, frozen=True, kw_only=True, order=True, gc=False):
    """A Pod with an address that serves."""

    address: str
    leaving: bool = False  # it is terminating: used only while no other is left


class SelectedPods(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Those of one selector."""

    pods: tuple[SelectedPod, ...] = ()  # sorted
    unread: str = ""  # why they cannot be read now, in a word or two; those that were known stay
