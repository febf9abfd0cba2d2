"""Store: the objects of a cache between their arrival and the next Snapshot.

In: items as the API server sent them, and removed names.
Out: a Snapshot and the `present` statuses. An object that differs only in its status or resource
version stays the identical object. An object that cannot be decoded is a problem, and its last
valid version stays. Without one, a route, Gateway or ListenerSet, or the targets of a policy, fail
closed. Changes of a `Source` are held until it is released, so that a namespace or a kind joins
completely. Routes with regular expressions cost milliseconds each. After the first `renew`, a
snapshot includes a slice of them, round-robin over namespaces. The rest waits for the next `renew`
and keeps its previous version. Later changes that depend on a waiting one wait for it
(change_queue.py): a policy must not leave before the route change that made it unnecessary.
Services and EndpointSlices never wait: they grant nothing, and old addresses fail.
Must never: do I/O, or raise for the content of an object.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection

import msgspec

from controller.kube.change_queue import ChangeQueue
from controller.kube.depth import DEPTH, MARK, cut_deep, decode_json
from controller.kube.intern import Intern
from controller.kube.pods import Table
from controller.kube.reflector import Item
from controller.kube.scope import REFERENCED_KINDS
from controller.kube.status_author import AUTHOR, Word, find_own_entry
from edgefast.api.core.endpointslice import SERVICE_NAME_LABEL, Endpoint, EndpointSlice
from edgefast.api.core.namespace import Namespace, label_namespace
from edgefast.api.core.service import Service, ServiceSpec
from edgefast.api.decode.decode import (
    DecodeError,
    close_api_object,
    decode_api_object,
    keep_api_object,
)
from edgefast.api.ingress.ingress import NETWORKING_GROUP
from edgefast.api.kinds import EDGE_GROUP, EXPERIMENTAL_GROUP, KINDS, KindInfo, Object
from edgefast.api.model.fail_closed import is_closed
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Snapshot
from edgefast.api.validation.regexes import count_regexes
from edgefast.api.validation.rule import Violation
from edgefast.diagnostics.problem import ObjectRef

__all__ = ["REGEX_SLICE", "Name", "Present", "Source", "Store"]

log = logging.getLogger(__name__)

_INFO: dict[str, KindInfo] = {info.kind: info for info in KINDS.values()}
#: Regular expressions of changed routes that one snapshot takes in, but at least one route: some 10 ms of CPU with common patterns. A
#: namespace that changes more of them delays others by one such slice.
REGEX_SLICE = 64
#: `kubectl apply` keeps a copy of the whole object here; nobody reads it.
_TOO_DEEP = Violation((), "TooLong", f"nested deeper than {DEPTH} levels")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_WITH_STATUS = (GATEWAY_GROUP, EDGE_GROUP, EXPERIMENTAL_GROUP, NETWORKING_GROUP)

#: Kinds that never wait.
_ADDRESSES = frozenset({"Service", "EndpointSlice"})
_NAMESPACE = re.compile(rb'"namespace":"([^"]*)"')

Name = tuple[str, str, str]  # kind, namespace, name


class Present(msgspec.Struct, frozen=True):
    """What a status writer needs to know of an object as last seen; `status` is JSON, b"" when there is none."""

    resource_version: str
    generation: int
    uid: str
    status: bytes
    word: Word = ""  # whose the status is


class Source:
    """Where changes come from; unreleased ones wait in `pending`."""

    def __init__(self, released: bool = False) -> None:
        self.released = released
        self.pending: dict[Name, Object | None] = {}


class _WithStatus(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw()


class Store:
    """Collects objects from the watches until the next Snapshot; single-threaded."""

    def __init__(
        self,
        on_change: Callable[[], None],
        on_status: Callable[[ObjectRef], None],
        author: str = AUTHOR,
    ) -> None:
        """`author`: the field manager of our statuses."""
        self.problems: dict[Name, str] = {}  # objects that do not decode, and why
        self.refused: Counter[str] = Counter()  # decodings that failed, by kind
        self.counts: Counter[str] = Counter()  # objects held, by kind
        self._on_change = on_change
        self._on_status = on_status
        self._author = author
        self._snapshot = Snapshot()
        self._pending: dict[Name, Object | None] = {}  # None: it is gone
        self._turns = ChangeQueue()  # what waits for a slice
        self._left: int | None = None  # of the slice; None: all is taken in at once
        self._present: dict[Name, Present] = {}
        self._sharing = Intern()

    def put(self, source: Source, kind: str, item: Item) -> None:
        """Take in an object."""
        name = (kind, item.namespace, item.name)
        try:
            if _is_too_deep(kind, bytes(item.raw)):
                raise DecodeError(kind, [_TOO_DEEP])
            obj = _strip(decode_api_object(item.raw, kind))
        except Exception as error:
            # Whatever it is, one object must not stop the others; a fault of ours shows its traceback.
            self._refuse(name, error)
            closed = self._close(source, name, item, error)
            if closed is None:
                return
            obj = closed
        else:
            self._forgive(name)
        present = self._current(source, name)
        same = present is not None and present == obj
        if _INFO[kind].group in _WITH_STATUS:
            # Of what stays as it was nothing new is kept.
            self._note_status(name, present if same and present is not None else obj, item)
        if same:
            return
        if present is None:
            self.counts[kind] += 1
        self._sharing.share(obj)
        self._change(source, name, obj)

    def delete(self, source: Source, kind: str, namespace: str, name: str) -> None:
        """Let an object go."""
        key = (kind, namespace, name)
        self.problems.pop(key, None)
        self._present.pop(key, None)
        if self._current(source, key) is not None:
            self.counts[kind] -= 1
            self._change(source, key, None)

    def created(self, source: Source, name: Name) -> str:
        """Return when an object was created, RFC 3339; "" when it is not there or does not say."""
        found = self._current(source, name)
        return found.metadata.creation_timestamp if found is not None else ""

    def forget_status(self, name: Name) -> None:
        """Keep an object that the API server no longer has; its status cannot be written."""
        self._present.pop(name, None)

    def release(self, *sources: Source) -> None:
        """Add the held-back objects of sources to the snapshot, and from now on all their objects."""
        joining: list[tuple[Name, Object | None]] = []
        for source in sources:
            source.released = True
            joining += source.pending.items()
            source.pending = {}
        # The order of these changes is unknown: policies come before the routes that wait for a slice, and leave after them.
        for name, obj in sorted(joining, key=lambda one: _rank(*one)):
            self._schedule(name, obj)
        if joining:
            self._on_change()

    def snapshot(self) -> Snapshot:
        """Return all objects; the identical Snapshot when nothing has changed."""
        self._take_slice()
        if self._pending:
            changed = [obj for obj in self._pending.values() if obj is not None]
            removed = [_ref(*name) for name, obj in self._pending.items() if obj is None]
            self._pending = {}
            self._snapshot = self._snapshot.replace(changed, removed)
        return self._snapshot

    def renew(self) -> None:
        """Allow another slice, after a snapshot was used; calls `on_change` if changes wait for it."""
        self._left = REGEX_SLICE
        if self._turns:
            self._on_change()

    @property
    def deferred(self) -> int:
        """Routes that wait for their slice; their previous version is in force."""
        return len(self._turns)

    def _take_slice(self) -> None:
        while self._turns and self._left is not None and self._left > 0:
            taken, weight = self._turns.next()
            self._pending.update(taken)
            self._left -= weight

    def take_pods(self, pods: Table) -> Snapshot:
        """Put the Pods that are selected beside the objects, and return all."""
        self._snapshot = msgspec.structs.replace(self.snapshot(), pods=pods)
        return self._snapshot

    def present(self, ref: ObjectRef) -> Present | None:
        """Return what is known of an object's status, None when there is no such object."""
        return self._present.get((ref.kind, ref.namespace, ref.name))

    def saying(self, kinds: Collection[str], texts: Collection[bytes]) -> list[ObjectRef]:
        """Return the objects of some kinds in whose status one of the texts is."""
        return [
            _ref(*name)
            for name, present in self._present.items()
            if name[0] in kinds and any(text in present.status for text in texts)
        ]

    # --- inside ---------------------------------------------------------------------------------

    def _current(self, source: Source, name: Name) -> Object | None:
        return source.pending[name] if name in source.pending else self._released(name)

    def _released(self, name: Name) -> Object | None:
        """Return the newest version of an object that is in force or will be."""
        for pending in (self._turns.waiting, self._pending):
            if name in pending:
                return pending[name]
        found = self._snapshot.get(_ref(*name))
        if found is None or name[0] != "Namespace":
            return found
        # A Snapshot has every namespace that something is in; those without a uid are implicit.
        return found if found.metadata.uid else None

    def _change(self, source: Source, name: Name, obj: Object | None) -> None:
        if source.released:
            self._schedule(name, obj)
            self._on_change()
        else:
            source.pending[name] = obj

    def _schedule(self, name: Name, obj: Object | None) -> None:
        weight = count_regexes(obj)
        if self._left is not None and (weight or (self._turns and name[0] not in _ADDRESSES)):
            before = self._released(name)
            refers = _find_namespaces(before) | _find_namespaces(obj)
            # Objects in force need the data that is read for them at once; without it they stay closed.
            needed = name[0] in REFERENCED_KINDS and (before is None or obj is None)
            if weight or name in self._turns.waiting:
                self._turns.put(name, obj, weight, refers)
                return
            if not needed and self._turns.blocks(name, refers):
                self._turns.put(name, obj, 0, refers)
                return
        self._pending[name] = obj

    def _note_status(self, name: Name, obj: Object, item: Item) -> None:
        status = decode_json(item.raw, _WithStatus).status
        meta = obj.metadata
        word = find_own_entry(item.raw, name[0], self._author)
        reported = self._sharing.share_bytes(bytes(status))
        now = Present(item.resource_version, meta.generation, meta.uid, reported, word)
        before = self._present.get(name)
        self._present[name] = now
        if before is None or before.status != now.status:
            self._on_status(_ref(*name))

    def _close(self, source: Source, name: Name, item: Item, error: Exception) -> Object | None:
        """Return what is served while an object cannot be read: what keeps its place closed, or its good version with that noted; None: nothing changes."""
        present = self._current(source, name)
        good = present is not None and not is_closed(present)
        if good and _INFO[name[0]].group != EDGE_GROUP:
            return None
        try:
            # A decoder goes as deep as the stack at that moment; what is cut out names no target and no parent.
            raw = cut_deep(bytes(item.raw)) if _INFO[name[0]].group == EDGE_GROUP else item.raw
            if good and present is not None:
                return keep_api_object(present, raw, _ref(*name), error)
            return close_api_object(raw, _ref(*name), error)
        except Exception:  # as in `put`
            log.exception("%s %s/%s: its hostnames and targets cannot be read", *name)
            return None

    def _forgive(self, name: Name) -> None:
        if self.problems.pop(name, None) is not None:
            log.info("%s %s/%s: can be read again", *name)

    def _refuse(self, name: Name, error: Exception) -> None:
        self.refused[name[0]] += 1
        sound = isinstance(error, DecodeError | msgspec.MsgspecError)
        # Only DecodeError keeps the content of Secrets out of its text.
        text = str(error) if isinstance(error, DecodeError) else type(error).__name__
        if self.problems.get(name) != text:
            self.problems[name] = text
            trace = error if not sound and name[0] != "Secret" else None
            log.warning("%s %s/%s: cannot be read: %s", *name, text, exc_info=trace)


def _is_too_deep(kind: str, raw: bytes) -> bool:
    """Tell whether something is nested too deep for us: a decoder goes deeper than whoever renders and compares a value.

    Only kinds of ours have fields of any shape (an EdgeProxy's affinity), and the API server drops what no schema has.
    """
    if MARK in raw:
        return True
    if _INFO[kind].group != EDGE_GROUP or raw.count(b"{") + raw.count(b"[") <= DEPTH:
        return False
    return MARK in cut_deep(raw)


def _rank(name: Name, obj: Object | None) -> int:
    """Return the sort key of a change among changes that join together."""
    if name[0].endswith("Route"):
        return 2 if count_regexes(obj) else 1
    return 3 if obj is None else 0


def _find_namespaces(obj: Object | None) -> set[str]:
    """Return the namespaces that an object refers to, and its own."""
    if obj is None:
        return set()
    return {one.decode() for one in _NAMESPACE.findall(msgspec.json.encode(obj, enc_hook=str))}


def _ref(kind: str, namespace: str, name: str) -> ObjectRef:
    return ObjectRef(kind, namespace, name, _INFO[kind].group)


def _strip(obj: Object) -> Object:
    """Return the object without what differs although nothing that is read has changed, and without what nobody reads."""
    meta = obj.metadata
    # There are more of these two than of all others together, and most of what they say is others' to read.
    if isinstance(obj, Service):
        least = ObjectMeta(name=meta.name, namespace=meta.namespace, labels=meta.labels)
        spec = ServiceSpec(
            type=obj.spec.type,
            ports=obj.spec.ports,
            cluster_ip=obj.spec.cluster_ip,
            external_name=obj.spec.external_name,
        )
        return msgspec.structs.replace(obj, metadata=least, spec=spec)
    if isinstance(obj, EndpointSlice):
        name = obj.service_name
        labels = {SERVICE_NAME_LABEL: name} if name else {}
        least = ObjectMeta(name=meta.name, namespace=meta.namespace, labels=labels)
        endpoints = tuple(
            Endpoint(addresses=one.addresses[:1], conditions=one.conditions)
            for one in obj.endpoints
        )
        return msgspec.structs.replace(obj, metadata=least, endpoints=endpoints)
    annotations = meta.annotations
    if _LAST_APPLIED in annotations:
        annotations = {key: text for key, text in annotations.items() if key != _LAST_APPLIED}
    stripped = msgspec.structs.replace(meta, resource_version="", annotations=annotations)
    bare: Object = msgspec.structs.replace(obj, metadata=stripped)
    # As the Snapshot keeps it, so that it compares equal.
    return label_namespace(bare) if isinstance(bare, Namespace) else bare
