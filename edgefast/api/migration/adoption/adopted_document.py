"""Adopted document: what a document of Envoy Gateway is in edgefast.

In: the readers beside this file. Out: a Struct for the decoder (api/decode/adopted.py).
Must never: have a value that is not plain data.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from edgefast.api.loaded import Path
from edgefast.api.model.policy_target import PolicyTarget

__all__ = ["ENVOY_GROUP", "AdoptedDocument", "Note", "PlainSettings"]

ENVOY_GROUP = "gateway.envoyproxy.io"


class Note(msgspec.Struct, frozen=True):
    """One field that has no counterpart, or another meaning."""

    path: Path  # below the document
    message: str
    hint: str = ""
    #: named: a warning. closes: the targets are closed, because the field decides access or a limit relies on it.
    effect: Literal["named", "closes"] = "named"
    reason: Literal["NotSupported", "Invalid"] = "NotSupported"


class PlainSettings(msgspec.Struct, frozen=True):
    """Settings of routes as plain data; "" and None for what the policy does not set."""

    cors: dict[str, Any] | None = None
    global_limits: dict[str, Any] | None = None
    local_limits: dict[str, Any] | None = None
    retry: dict[str, Any] | None = None
    backend_request: str = ""


class AdoptedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of edgefast, and what belongs to it."""

    raw: dict[str, Any]
    notes: tuple[Note, ...] = ()
    selectors: tuple[PolicyTarget, ...] = ()
    #: The targetRefs of `raw` are only there for the rules about kinds of targets.
    only_selectors: bool = False
    settings: PlainSettings = PlainSettings()
    merges: bool = False  # mergeType of Envoy Gateway is StrategicMerge or JSONMerge
    client: bool = False  # a ClientTrafficPolicy
    targets: tuple[PolicyTarget, ...] = ()  # of a ClientTrafficPolicy
    validation: dict[str, Any] | None = None  # FrontendTLSValidation
    options: dict[str, str] = {}
    decides: tuple[str, ...] = ()
    #: Paths below `raw`, and those of the same values in the document of Envoy Gateway.
    places: tuple[tuple[Path, Path], ...] = ()

    def locate(self, path: Path) -> Path:
        """Return the path in the document of Envoy Gateway of a path below `raw`."""
        found = [one for one in self.places if path[: len(one[0])] == one[0]]
        if not found:
            return path
        ours, theirs = max(found, key=lambda one: len(one[0]))
        return (*theirs, *path[len(ours) :])
