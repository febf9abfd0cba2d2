"""`edgefast run` when nobody hears it: standard error is full, or its reader is gone."""

import os
from pathlib import Path

import pytest

from proxy.command import Start, gateway, gateway_class, mark_of, route, save
from proxy.living import taken
from wire.harness.ports import free_port

pytestmark = pytest.mark.wire


def test_a_full_standard_error_keeps_nobody_from_serving(start: Start, tmp_path: Path) -> None:
    port = free_port()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v1"))
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        run = start("-f", str(tmp_path), "--workers", "1", stderr=full)
        run.wait_ready()
        save(tmp_path / "a.yaml", gateway_class(), gateway(port), route("v2"))
        run.until(lambda: mark_of(port) == "v2", "reload")
        run.stop()
    finally:
        os.close(full)


def test_a_reader_that_goes_away_ends_nothing(start: Start, tmp_path: Path) -> None:
    """Whatever is said next: a reload, a problem, a port that comes free."""
    port, (busy, late) = free_port(), taken()
    save(tmp_path / "a.yaml", gateway_class(), gateway(port, late), route("v1"))
    reading, writing = os.pipe()
    run = start("-f", str(tmp_path), "--workers", "1", stderr=writing)
    os.close(writing)
    run.wait_ready()
    pids = run.workers()
    os.close(reading)
    busy.close()
    run.until(lambda: mark_of(late) == "v1", "late port")
    save(tmp_path / "a.yaml", gateway_class(), gateway(port, late), route("v2"))
    run.until(lambda: mark_of(port) == "v2", "reload")
    (tmp_path / "a.yaml").write_text("half: [")
    run.until(lambda: run.dump()["problems"], "problem")
    assert mark_of(port) == "v2"
    assert run.workers() == pids
    assert run.stop() == 0
