"""Status author: whether this controller or another one wrote the status of an object.

In: an object as the API server sent it, the relevant condition (of an Ingress: its addresses), the
field manager of this controller's writes.
Out: the result. Conditions do not name their writer, and a controllerName can move to another
controller. The API server records the writer of each field.
Source: Kubernetes API, server-side apply (managedFields; updates are recorded too).
Must never: treat a status as this controller's if another one wrote its content.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from controller.kube.depth import decode_json

__all__ = ["AUTHOR", "Word", "author_of", "find_own_entry"]

#: Whose word a status is.
Word = Literal["", "ours", "unsigned"]

#: What writes without a field manager's name carry: the first word of our User-Agent.
AUTHOR = "edgefast-controller"
_MARK = f'"manager":"{AUTHOR}'.encode()
#: The kind whose status is a list of addresses, and no conditions.
_ADDRESSED = "Ingress"
#: The condition by which it is told whose word a status is.
_TELLING = {"GatewayClass": "Accepted", "Gateway": "Programmed", "ListenerSet": "Programmed"}


def author_of(identity: str) -> str:
    """Return the field manager of an installation's statuses; `identity` is Placement.identity."""
    return f"{AUTHOR}/{identity}"


class _Entry(msgspec.Struct, rename="camel"):
    manager: str = ""
    subresource: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw()


class _Meta(msgspec.Struct, rename="camel"):
    managed_fields: tuple[_Entry, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta


def find_own_entry(raw: bytes | msgspec.Raw, kind: str, author: str) -> Word:
    """Tell whose word the telling condition of an object is; "" of kinds without one, and of whoever else wrote it.

    "unsigned" was written under the bare AUTHOR: by this very installation, of a release before, or by another one of such.
    """
    telling = _TELLING.get(kind)
    # Most objects are not ours, or of kinds that are not asked for: looking for a word costs next to nothing.
    if (telling is None and kind != _ADDRESSED) or _MARK not in bytes(raw):
        return ""
    for entry in decode_json(raw, _Object).metadata.managed_fields:
        if entry.subresource == "status" and entry.manager in (author, AUTHOR):
            fields: dict[str, Any] = decode_json(entry.fields_v1)
            written = fields.get("f:status") or {}
            conditions = written.get("f:conditions") or {}
            if kind == _ADDRESSED and "f:loadBalancer" in written:
                return "ours" if entry.manager == author else "unsigned"
            if "f:message" in (conditions.get(f'k:{{"type":"{telling}"}}') or {}):
                return "ours" if entry.manager == author else "unsigned"
    return ""
