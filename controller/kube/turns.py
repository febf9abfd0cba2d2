"""Turns: changed objects that cost much, each namespace in its turn.

In: objects by name, with what they cost. Out: one after another, round-robin over namespaces, in the order of their changes within one.
A newer version of an object takes the place of the one that waits. Must never: give a namespace two turns while another one waits.
"""

from __future__ import annotations

from edgefast.resources.kinds import Object

__all__ = ["Turns"]

_Name = tuple[str, str, str]  # kind, namespace, name


class Turns:
    """See the module's text."""

    def __init__(self) -> None:
        self.waiting: dict[_Name, Object] = {}
        self._costs: dict[_Name, int] = {}
        #: By namespace, the one whose turn is next first; dicts keep the order of their keys.
        self._queues: dict[str, dict[_Name, None]] = {}

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, name: _Name, obj: Object, cost: int) -> None:
        """Have an object wait, in place of an older version."""
        self.waiting[name] = obj
        self._costs[name] = cost
        self._queues.setdefault(name[1], {})[name] = None

    def drop(self, name: _Name) -> None:
        """Let no version of an object wait any more."""
        if self.waiting.pop(name, None) is None:
            return
        del self._costs[name]
        queue = self._queues[name[1]]
        del queue[name]
        if not queue:
            del self._queues[name[1]]

    def next(self) -> tuple[_Name, Object, int]:
        """Take the next one: its name, itself, what it costs. KeyError when there is none."""
        namespace = next(iter(self._queues), None)
        if namespace is None:
            raise KeyError("nothing waits")
        name = next(iter(self._queues[namespace]))
        obj, cost = self.waiting[name], self._costs[name]
        self.drop(name)
        if (queue := self._queues.pop(namespace, None)) is not None:
            self._queues[namespace] = queue  # the last one of all
        return name, obj, cost
