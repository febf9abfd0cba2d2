"""Export thread: sends the workers' spans from the agent to collectors, in its own thread.

In: batches of spans, and the collector of each listener.
Out: exports by an `Exporter` per collector (otlp_exporter.py, with the extra `edgefast[tracing]`), and
exemplars of exported traces for listeners that enable them. The queue is bounded. Spans that do not
fit, lost their collector, or were refused by it are counted as lost.
Must never: block its caller, keep the process alive, or end with a collector.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Protocol

import msgspec

from edgefast import ir
from edgefast.proxy.settings import STAT_ROWS
from edgefast.proxy.traces.exemplars import Exemplars
from edgefast.proxy.traces.span_record import Record, SpanRecord, count_spans, decode_spans

__all__ = ["EXTRA", "QUEUE_BYTES", "Exporter", "SpanExport", "has_tracing"]

log = logging.getLogger(__name__)

#: Bytes of spans that may wait for a slow collector, of all workers.
QUEUE_BYTES = 16 * 1024 * 1024
#: Seconds for which a collector that took nothing is not asked again.
_PAUSE = 5.0
EXTRA = "pip install 'edgefast[tracing]'"


class Exporter(Protocol):
    """Sends spans to one collector; blocks for at most some seconds."""

    def export(self, records: list[Record]) -> bool:
        """Tell whether the collector took them."""

    def shutdown(self) -> None:
        """Let go of connections."""


def has_tracing() -> bool:
    """Tell whether the extra is installed, without importing it."""
    try:
        return all(
            importlib.util.find_spec(f"opentelemetry.{name}") is not None
            for name in ("sdk", "exporter.otlp.proto.http", "exporter.otlp.proto.grpc")
        )
    except ModuleNotFoundError:
        return False


def _make_exporter(tracing: ir.Tracing, own_ports: tuple[int, ...]) -> Exporter:
    # Imported with the first span: it takes a second and 30 MB, which is nothing to ask of who does not trace.
    from edgefast.proxy.traces.otlp_exporter import OtlpExporter

    return OtlpExporter(tracing, own_ports)


class SpanExport:
    """Exports the workers' spans to collectors, in its own thread."""

    def __init__(
        self,
        make: Callable[[ir.Tracing], Exporter] | None = None,
        rows: int = STAT_ROWS,
        own_ports: Callable[[], tuple[int, ...]] = tuple,
    ) -> None:
        """`rows`: number of counter rows of a worker, and of exemplars. `own_ports`: of this proxy's own servers, which get no spans."""
        self._make = make or (lambda tracing: _make_exporter(tracing, own_ports()))
        self.exemplars = Exemplars(rows)
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = threading.Lock()  # guards the numbers: held for one addition at a time
        self._waiting = 0
        self.exported = 0
        self.lost = 0
        self._tracings: dict[bytes, ir.Tracing] = {}
        self._exporters: dict[ir.Tracing, Exporter] = {}
        self._failing: dict[ir.Tracing, float] = {}  # until when it is not tried
        self._thread: threading.Thread | None = None
        self._reported = False

    def use(self, listeners: Iterable[ir.Listener]) -> None:
        """Follow a table."""
        before = {name for name, one in self._tracings.items() if one.exemplars}
        self._tracings = {
            one.name.encode(): one.tracing for one in listeners if one.tracing is not None
        }
        if not all(name in self._tracings and self._tracings[name].exemplars for name in before):
            self.exemplars.clear()  # which ones are of a listener that has none now, rows do not tell
        if self._tracings and not self._reported and not has_tracing():
            self._reported = True
            log.error(
                "tracing: a package that spec.tracing needs is not installed; spans are "
                "dropped: %s",
                EXTRA,
            )

    @property
    def marking(self) -> bool:
        """Whether a listener in force has exemplars."""
        return any(one.exemplars for one in self._tracings.values())

    def take(self, batch: bytes) -> None:
        """Queue a worker's batch. Called on the event loop."""
        with self._lock:
            if self._reported or self._waiting + len(batch) > QUEUE_BYTES:
                self.lost += count_spans(batch)
                return
            self._waiting += len(batch)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
            self._thread.start()
        self._queue.put(batch)

    def close(self, deadline: float) -> None:
        """Export what is queued, for at most `deadline` seconds."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(deadline)

    def _run(self) -> None:
        more = True
        while more:
            batches = [self._queue.get()]
            try:
                while len(batches) < 16:
                    batches.append(self._queue.get_nowait())
            except Empty:
                pass
            more = None not in batches
            self._export([one for one in batches if one is not None])
        for exporter in self._exporters.values():
            _end(exporter)

    def _export(self, batches: list[bytes]) -> None:
        by_tracing: dict[ir.Tracing, list[Record]] = {}
        lost = exported = 0
        for batch in batches:
            try:
                records = decode_spans(batch)
            except msgspec.MsgspecError as error:
                log.error("tracing: spans of a worker cannot be read: %s", error)
                lost += count_spans(batch)
                continue
            for one in records:
                tracing = self._tracings.get(one.listener)
                if tracing is None:
                    lost += 1
                else:
                    by_tracing.setdefault(tracing, []).append(one)
        for tracing, records in by_tracing.items():
            if self._try(tracing, records):
                exported += len(records)
                if tracing.exemplars:
                    self._mark(records)
            else:
                lost += len(records)
        self._forget()
        with self._lock:
            self._waiting -= sum(map(len, batches))
            self.exported += exported
            self.lost += lost

    def _mark(self, records: list[Record]) -> None:
        """Take exemplars of what a collector has now; the table may have changed since. Durations are of requests alone."""
        for one in records:
            tracing = self._tracings.get(one.listener)
            if isinstance(one, SpanRecord) and tracing is not None and tracing.exemplars:
                self.exemplars.add(one)

    def _try(self, tracing: ir.Tracing, records: list[Record]) -> bool:
        if time.monotonic() < self._failing.get(tracing, 0.0):
            return False  # the others' spans do not wait for a collector that is not there
        try:
            exporter = self._exporters.get(tracing)
            if exporter is None:
                exporter = self._exporters[tracing] = self._make(tracing)
            taken = exporter.export(records)
        except Exception as error:  # whatever a library raises: serving and tracing go on
            taken = False
            if tracing not in self._failing:
                log.warning("tracing: spans for %s: %s", tracing.endpoint, error)
        if not taken and tracing not in self._failing:
            log.warning(
                "tracing: %s does not accept spans; they are dropped and counted", tracing.endpoint
            )
        if taken:
            self._failing.pop(tracing, None)
        else:
            self._failing[tracing] = time.monotonic() + _PAUSE
        return taken

    def _forget(self) -> None:
        """Let go of collectors that no listener names any more."""
        used = set(self._tracings.values())
        for tracing in [one for one in self._exporters if one not in used]:
            _end(self._exporters.pop(tracing))
            self._failing.pop(tracing, None)


def _end(exporter: Exporter) -> None:
    try:
        exporter.shutdown()
    except Exception as error:  # whatever a library raises: the others' spans go on
        log.warning("tracing: an exporter cannot be closed: %s", error)
