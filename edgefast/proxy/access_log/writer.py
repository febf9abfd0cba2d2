"""AccessLogWriter: writes complete lines to standard output or a file (log_file.py), from a thread; it never delays a request.

In: batches of complete lines from the engine.
Out: writes that lines of other workers cannot split: a pipe accepts up to PIPE_BUF (4096) bytes
atomically, a file or terminal up to 64 KiB here. The queue is bounded in bytes. Lines that do not
fit are dropped, and the caller's `dropped` counts them.
Must never: block its caller or raise into it.
"""

from __future__ import annotations

import logging
import os
import select
import stat
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

from edgefast.proxy.access_log.log_file import LogTarget

__all__ = ["QUEUE_BYTES", "AccessLogWriter", "split_lines"]

log = logging.getLogger(__name__)

#: Bytes that may wait for a slow reader: about 16,000 lines, a second of one busy worker's log.
QUEUE_BYTES = 8 * 1024 * 1024
_FILE_WRITE = 64 * 1024


class AccessLogWriter:
    """Callable with one batch of lines; the engine's `access_log`."""

    def __init__(
        self,
        target: LogTarget,
        dropped: Callable[[int], None],
        *,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._target = target
        self._dropped = dropped
        self._limit = queue_bytes
        self._waiting = 0
        self._lock = (
            threading.Lock()
        )  # guards _waiting and dropped: held for one addition at a time
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def __call__(self, batch: bytes) -> None:
        """Queue a batch, or drop it when the queue is full. Called on the event loop."""
        with self._lock:
            fits = self._waiting + len(batch) <= self._limit
            if fits:
                self._waiting += len(batch)
            else:
                self._dropped(batch.count(b"\n"))
        if not fits:
            return
        if self._thread is None:
            # Started with the first line: a worker whose log is off has no thread.
            self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
            self._thread.start()
        self._queue.put(batch)

    def close(self, deadline: float) -> None:
        """Write what is queued, for at most `deadline` seconds."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(deadline)
            if not self._thread.is_alive():
                self._target.close()

    def _run(self) -> None:
        failing = False
        while (batch := self._queue.get()) is not None:
            lost, error = self._write_batch(batch)
            if error is not None and not failing:
                log.warning("access log: cannot be written: %s", error.strerror or error)
            failing = error is not None
            with self._lock:
                self._waiting -= len(batch)
                if lost:
                    self._dropped(lost)

    def _write_batch(self, batch: bytes) -> tuple[int, OSError | None]:
        """Write a batch; return how many lines are lost and the last reason.

        The reader is gone, the disk is full, the folder is not there: serving goes on, lines are counted.
        """
        try:
            fd = self._target.descriptor()
        except OSError as error:
            return batch.count(b"\n"), error
        lost, failed = 0, None
        for piece in split_lines(batch, select.PIPE_BUF if _is_pipe(fd) else _FILE_WRITE):
            try:
                _write(fd, piece)
            except OSError as error:
                lost += piece.count(b"\n")
                failed = error
        return lost, failed


def _write(fd: int, piece: bytes) -> None:
    """Write all of `piece`, waiting where the descriptor was made non-blocking."""
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            poller = select.poll()
            poller.register(fd, select.POLLOUT)
            poller.poll(1000)


def split_lines(batch: bytes, limit: int) -> Iterator[bytes]:
    """Cut a batch into pieces of whole lines of at most `limit` bytes; a longer line goes alone."""
    start, end = 0, len(batch)
    while end - start > limit:
        cut = batch.rfind(b"\n", start, start + limit) + 1
        if cut == 0:
            cut = batch.find(b"\n", start) + 1 or end
        yield batch[start:cut]
        start = cut
    if start < end:
        yield batch[start:end]


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
