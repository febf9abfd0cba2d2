"""Intern: shares equal parts of different objects, since most objects of a cluster have equal parts.

In: a newly decoded object that no other component uses; statuses as JSON.
Out: the same object, with its texts, tuples and Structs replaced by equal ones of earlier objects.
Ten thousand routes with one parent keep one list of parents.
Must never: receive an object that another component uses, or keep more than KEPT parts and
STATUSES statuses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from edgefast.api.model.meta import ObjectMeta

__all__ = ["KEPT", "STATUSES", "Intern"]

#: Parts that are remembered; then all are forgotten: those that are common are soon there again.
KEPT = 4096
#: Texts of statuses that are remembered, likewise: routes that were judged in the same second say the same.
STATUSES = 512
#: Characters of a text that may be common; longer ones are somebody's own.
_TEXT = 64
#: Fields whose texts are always somebody's own.
_OWN = frozenset({"uid", "creation_timestamp"})
#: What says by itself whether it is equal.
_PLAIN = (str, int, float, type(None))

_EMPTY: dict[Any, Any] = {}


class Intern:
    """Replaces equal parts of objects with one shared part, to save memory."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}
        self._statuses: dict[bytes, bytes] = {}

    def share_bytes(self, status: bytes) -> bytes:
        """Return bytes that are equal to a status, and the same as those of other objects."""
        found = self._statuses.setdefault(status, status)
        if len(self._statuses) > STATUSES:
            self._statuses.clear()
        return found

    def share(self, obj: msgspec.Struct) -> None:
        """Exchange the parts of an object for equal ones that were seen before."""
        for name in obj.__struct_fields__:
            value = getattr(obj, name)
            if name in _OWN:
                continue
            shared = self._find(value)
            if shared is not value:
                msgspec.structs.force_setattr(obj, name, shared)

    def _find(self, value: Any) -> Any:
        if isinstance(value, str):
            return sys.intern(value) if len(value) <= _TEXT else value
        if isinstance(value, tuple):
            if not value:
                return value
            value = tuple(map(self._find, value))
            parts: Iterable[Any] = value
        elif isinstance(value, msgspec.Struct):
            self.share(value)
            if isinstance(value, ObjectMeta):  # whose name it is has nobody else
                return value
            parts = (getattr(value, name) for name in value.__struct_fields__)
        elif isinstance(value, dict):
            return value or _EMPTY
        else:
            return value
        # Parts that are equal are the same by now, and stay so while what they are parts of is remembered.
        key = (type(value), *(one if isinstance(one, _PLAIN) else id(one) for one in parts))
        found = self._parts.setdefault(key, value)
        if len(self._parts) > KEPT:
            self._parts.clear()
        return found
