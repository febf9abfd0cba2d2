"""Policy target: targets of policies that `targetRefs` does not name, and newer versions with a mistake.

In: what decoding found in a policy. Out: Structs that edgefast's and the standard's policies carry.
Nothing is looked up here.
Must never: name anything of another namespace.
"""

from __future__ import annotations

import msgspec

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.meta import LabelSelector


class PolicyTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a policy is meant for that `targetRefs` do not say: it is closed for that, and for nothing else.

    Of the policy's own namespace, whatever is written: nobody closes what is others'.
    """

    path: tuple[str | int, ...]  # of the field
    kind: str  # of TARGET_KINDS or BACKEND_TARGETS
    name: str = ""
    section: str = ""
    selector: LabelSelector | None = (
        None  # chooses among the objects of the kind, in place of `name`
    )


class Newer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A version of a policy that came after the one in force, and has a mistake."""

    closed: Closed  # what is wrong with it
    aimed: tuple[PolicyTarget, ...] = ()  # what it is for, as far as that can be read
    generation: int = 0  # 0: of a file

    @property
    def said(self) -> str:
        """Which version is in force, and why."""
        return f"the previous version is in force; the new one has an error: {self.closed.said}"
