"""What all tests share: the option that rewrites golden files, loggers that no test leaves changed, asserts that explain themselves,
and generated inputs that are the same in every run.

Must never: hold fixtures of one room; those stand in the room's own conftest.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
from collections.abc import Iterator

import pytest
import uvloop
from hypothesis import HealthCheck, settings

pytest_plugins = ["coroutines", "leisure"]

# The product's processes read compiled modules, as an installed one does: compiling 300 sources takes longer than all else at a start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A test says the same on every machine and in every run, however slow it is. `--hypothesis-profile=explore` looks for more.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _PATIENT, derandomize=True, database=None)
settings.register_profile("explore", _PATIENT)
settings.load_profile("repeatable")

# Whichever room imports the harness of tests/wire first.
for _module in ("oracle", "runner", "gateway", "cases", "client", "responses", "logs"):
    pytest.register_assert_rewrite(f"wire.harness.{_module}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-goldens`: write what came out instead of comparing with it."""
    parser.addoption(
        "--update-goldens", action="store_true", help="rewrite golden files with today's output"
    )


DEADLINE = 100.0  # seconds for a test that is a coroutine: only a hang comes near it


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on a loop of its own, within a deadline; tests/core has loops of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    uvloop.run(asyncio.wait_for(pyfuncitem.obj(**arguments), DEADLINE))
    return True


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Parts of the product own their process's loggers; the tests that follow get them back."""
    loggers = [logging.getLogger(name) for name in ("edgefast", "controller", "asyncio")]
    before = [(logger.handlers[:], logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, (handlers, propagate, level) in zip(loggers, before, strict=True):
        logger.handlers[:] = handlers
        logger.propagate = propagate
        logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _end_of_kept_gateways() -> Iterator[None]:
    """Gateways that tests of the harness in tests/wire pass on live as long as the tests."""
    yield
    if "wire.harness.kept" in sys.modules:
        from wire.harness.kept import end_all

        end_all()
