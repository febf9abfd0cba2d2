"""SelectedPods: what is known of the Pods that a selector has: where each is, whether it takes requests, and whether all this is so now.

In: Pods of an API server, as the controller follows them. Out: values of `Snapshot.pods`. There are no Pods in files.
Source: what Kubernetes' own EndpointSlices say of the same Pod: its first address; ready, or serving while it terminates.
Must never: hold what changes although neither does.
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
