"""What the system refuses is said in words; what only a wrong program brings about keeps its traceback."""

from __future__ import annotations

import errno
import os

import pytest

from edgefast.daemon.os_error import explain_failure, is_refusal

pytestmark = pytest.mark.pure


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EADDRINUSE, errno.ENOMEM]
)
def test_a_refusal_has_words(number: int) -> None:
    assert os.strerror(number) in explain_failure(failure(number))
    assert is_refusal(ExceptionGroup("", [failure(number), MemoryError()]))


@pytest.mark.parametrize("error", [failure(errno.EINVAL), failure(errno.EBADF), KeyError("x")])
def test_a_mistake_has_none(error: Exception) -> None:
    assert explain_failure(error) == ""
    assert not is_refusal(error)
    assert not is_refusal(ExceptionGroup("", [failure(errno.EMFILE), error]))
