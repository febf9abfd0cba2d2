"""What processes write to standard error: every line has its time and its level, whoever writes it."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from daemon.lines import LINE
from edgefast.daemon.logs import LogThrottle

_PROCESS = """
import logging, threading, warnings
from edgefast.daemon.logs import start_logging, write_line
start_logging("warning")
log = logging.getLogger("edgefast.proxy.agent.agent")
log.info("not told")
log.warning("two\\nlines, %s", "one record")
try:
    raise ValueError("with a traceback")
except ValueError:
    log.exception("a mistake")
warnings.warn("something old")
logging.getLogger("somebody.else").warning("a stranger")
logging.getLogger("somebody.else").info("not told")
logging.getLogger("asyncio").error("the loop's")
write_line("info", "edgefast", "told whatever the level")
def fail(): raise KeyError("in a thread")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
class Bad:
    def __del__(self): raise OSError("in a finalizer")
Bad()
raise RuntimeError("at the end")
"""


def test_every_line_has_time_and_level() -> None:
    done = subprocess.run([sys.executable, "-c", _PROCESS], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert [line for line in lines if not LINE.match(line)] == []
    assert done.returncode == 1 and "not told" not in done.stderr
    for word in (
        r"two\nlines, one record",
        "ValueError: with a traceback",
        "something old",
        "a stranger",
        "the loop's",
        "info edgefast",
        "KeyError: 'in a thread'",
        "OSError: in a finalizer",
        "RuntimeError: at the end",
    ):
        assert sum(word in line for line in lines) == 1, word


def test_a_trouble_that_comes_often_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:

    now = 100.0
    seldom = LogThrottle(logging.getLogger("edgefast.test"), lambda: now)
    for _ in range(5):
        seldom.warn("no %s", "more")
    now += 11
    seldom.warn("no %s", "more")
    assert [one.getMessage() for one in caplog.records] == [
        "no more",
        "no more (4 more of this since the last line)",
    ]
