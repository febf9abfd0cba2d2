"""The reserve: what control work can still have when connections have everything."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterator

import pytest

from edgefast.proxy.process.reserved_descriptors import ReservedDescriptors, is_shortage
from proxy.full import exhausted

pytestmark = pytest.mark.pure


@pytest.fixture
def reserve() -> Iterator[ReservedDescriptors]:
    made = ReservedDescriptors()
    made.hold(4)
    yield made
    made.hold(0)


def opened() -> int:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def test_work_without_descriptors_gets_those_kept_back(reserve: ReservedDescriptors) -> None:
    with exhausted():
        with pytest.raises(OSError, match="Too many open files"):
            opened()
        assert reserve.spare(opened) > 0
        assert reserve.held == 4
        with pytest.raises(OSError, match="Too many open files"):
            opened()


def test_what_was_lent_for_good_comes_back_when_there_is_room(reserve: ReservedDescriptors) -> None:
    with exhausted() as taken:
        taken.append(reserve.spare(lambda: os.open("/dev/null", os.O_RDONLY)))
        assert reserve.held == 3
        os.close(taken.pop())
        reserve.fill()
        assert reserve.held == 4


def test_other_errors_are_not_tried_again(reserve: ReservedDescriptors) -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        raise FileNotFoundError(errno.ENOENT, "gone")

    with pytest.raises(FileNotFoundError):
        reserve.spare(work)
    assert len(tries) == 1


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (OSError(errno.EMFILE, ""), True),
        (OSError(errno.ENFILE, ""), True),
        (MemoryError(), True),
        (ExceptionGroup("", [OSError(errno.ENOMEM, "")]), True),
        (ExceptionGroup("", [OSError(errno.ENOMEM, ""), ValueError()]), False),
        (OSError(errno.EACCES, ""), False),
        (ValueError(), False),
    ],
)
def test_what_is_a_shortage(error: BaseException, short: bool) -> None:
    assert is_shortage(error) is short


def test_an_error_of_openssl_is_none() -> None:
    with pytest.raises(ssl.SSLError) as caught:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata="rubbish")
    caught.value.errno = errno.EMFILE
    assert not is_shortage(caught.value)
