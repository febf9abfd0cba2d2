"""The access log writer: whole lines, bounded, never in the way."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefast.proxy.access_log.log_file import LogFile, Standard, check_log_file
from edgefast.proxy.access_log.writer import AccessLogWriter, split_lines

LINE = st.binary(max_size=90).map(lambda text: text.replace(b"\n", b"?") + b"\n")


class Dropped:
    """Counts what the writer says it dropped."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, lines: int) -> None:
        self.lines += lines


@pytest.mark.pure
@given(st.lists(LINE, max_size=60).map(b"".join), st.integers(1, 100))
def test_pieces_are_whole_lines_within_the_limit(batch: bytes, limit: int) -> None:
    pieces = list(split_lines(batch, limit))
    assert b"".join(pieces) == batch
    for piece in pieces:
        assert piece.endswith(b"\n")
        assert len(piece) <= limit or piece.count(b"\n") == 1


def test_lines_arrive_in_order(tmp_path: Path) -> None:
    dropped = Dropped()
    target = tmp_path / "log"
    fd = os.open(target, os.O_WRONLY | os.O_CREAT)
    writer = AccessLogWriter(Standard(fd), dropped)
    batches = [b"".join(b'{"n":%d}\n' % (i * 100 + j) for j in range(100)) for i in range(50)]
    for batch in batches:
        writer(batch)
    writer.close(20)
    os.close(fd)
    assert target.read_bytes() == b"".join(batches)
    assert dropped.lines == 0


def test_several_writers_do_not_tear_each_others_lines_in_a_pipe() -> None:
    read_end, write_end = os.pipe()
    dropped = Dropped()
    writers = [AccessLogWriter(Standard(write_end), dropped) for _ in range(4)]
    lines = [bytes([65 + number]) * (300 + 61 * number) + b"\n" for number in range(4)]
    received: list[bytes] = []

    def read() -> None:
        while data := os.read(read_end, 65536):
            received.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        for writer, line in zip(writers, lines, strict=True):
            writer(line * 40)
    for writer in writers:
        writer.close(30)
    os.close(write_end)
    reader.join(30)
    os.close(read_end)
    found = b"".join(received).splitlines(keepends=True)
    assert len(found) == 4 * 50 * 40
    assert set(found) == set(lines)


def test_a_reader_that_stands_still_costs_lines_not_time() -> None:
    read_end, write_end = os.pipe()
    dropped = Dropped()
    writer = AccessLogWriter(Standard(write_end), dropped, queue_bytes=300_000)
    batch = (b"x" * 99 + b"\n") * 100
    for _ in range(200):  # 2 MB: a pipe holds 64 KiB, the queue 300 kB
        writer(batch)
    assert 20_000 > dropped.lines >= 16_000
    assert dropped.lines % 100 == 0
    os.close(read_end)  # the thread's write fails now, and it goes on to the end
    writer.close(20)
    os.close(write_end)
    assert dropped.lines == 20_000 or dropped.lines > 19_000


def test_a_nonblocking_descriptor_is_waited_for() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    dropped = Dropped()
    writer = AccessLogWriter(Standard(write_end), dropped)
    batch = (b"y" * 99 + b"\n") * 3000  # more than the pipe holds
    writer(batch)
    received = b""
    while len(received) < len(batch):
        assert select.select([read_end], [], [], 20)[0]
        received += os.read(read_end, 65536)
    writer.close(20)
    assert received == batch
    assert dropped.lines == 0
    os.close(read_end)
    os.close(write_end)


def test_a_writer_that_logs_nothing_has_no_thread() -> None:
    before = threading.active_count()
    writer = AccessLogWriter(Standard(), Dropped())
    assert threading.active_count() == before
    writer.close(1)


def test_a_file_that_is_renamed_is_opened_anew_and_no_line_is_lost(tmp_path: Path) -> None:
    """As logrotate does it, without telling anybody."""
    path = tmp_path / "access.log"
    dropped = Dropped()
    writers = [AccessLogWriter(LogFile(path), dropped) for _ in range(3)]
    old: list[Path] = []
    for turn in range(4):
        for number, writer in enumerate(writers):
            writer(b"%d %d\n" % (turn, number))
        # The lines are in the file before it is renamed.
        wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") == 3)
        assert path.stat().st_mode & 0o777 == 0o640 & ~_umask()
        if turn == 2:
            path.unlink()  # or removed, which is as good
        else:
            old.append(path.rename(tmp_path / f"access.log.{turn}"))
    for writer in writers:
        writer.close(20)
    told = b"".join(one.read_bytes() for one in old)
    assert sorted(told.split()[::2]) == [b"0"] * 3 + [b"1"] * 3 + [b"3"] * 3
    assert dropped.lines == 0


def test_a_folder_that_is_gone_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    dropped = Dropped()
    writer = AccessLogWriter(LogFile(folder / "access.log"), dropped)
    writer(b"lost\nlost\n")
    wait_for(lambda: dropped.lines == 2)
    folder.mkdir()
    writer(b"there\n")
    wait_for(lambda: (folder / "access.log").exists())
    # What is open stays open where nothing can be opened anew.
    wait_for(lambda: (folder / "access.log").read_bytes() == b"there\n")
    (folder / "access.log").rename(tmp_path / "old")
    folder.rmdir()
    writer(b"still there\n")
    writer.close(20)
    assert (tmp_path / "old").read_bytes() == b"there\nstill there\n"
    assert dropped.lines == 2


def test_a_file_that_is_cut_is_written_from_its_new_end(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    writer = AccessLogWriter(LogFile(path), Dropped())
    writer(b"one\n")
    wait_for(lambda: path.exists() and path.read_bytes() == b"one\n")
    os.truncate(path, 0)
    writer(b"two\n")
    writer.close(20)
    assert path.read_bytes() == b"two\n"


@pytest.mark.pure
def test_only_regular_files_are_log_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null"), tmp_path / "no" / "file"):
        with pytest.raises(OSError, match=r"\S"):
            check_log_file(path)
    check_log_file(tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == b""


def wait_for(check: Callable[[], bool], ceiling: float = 60.0) -> None:
    end = time.monotonic() + ceiling
    while not check():
        assert time.monotonic() < end
        time.sleep(0.005)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
