"""What stands beside a measurement, each in a process of its own, so that none of it holds up who measures: a backend, a crowd.

In: a port to serve, or how many clients do what with which port. Out: a line on standard output when it is there; it ends with its standard
input. Must never share an interpreter with the clock.
"""

from __future__ import annotations

import argparse
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from subprocess import PIPE, Popen

from origin.large import LargeOrigin

POST = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000000\r\n\r\n" + b"x" * 20_000
ASK = b"GET /large/100000000 HTTP/1.1\r\nHost: a\r\n\r\n"


@contextmanager
def beside(*arguments: str) -> Iterator[str]:
    """A process of this module; yields what it said."""
    command = [sys.executable, "-m", __name__, *arguments]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(30)


def _serve() -> None:
    with LargeOrigin() as origin:
        _write_message(str(origin.port))


def _crowd(port: int, posters: int, readers: int) -> None:
    with ExitStack() as stack:
        for number in range(max(posters, readers)):
            if number < posters:
                one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                with suppress(OSError):  # it gave way already
                    one.sendall(POST)
            if number < readers:
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect(("127.0.0.1", port))
                one.sendall(ASK)
        _write_message("there")


def _write_message(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    sys.stdin.read()


def main() -> None:
    """One of the two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0, help="the crowd's; without it, serve")
    parser.add_argument("--posters", type=int, default=0)
    parser.add_argument("--readers", type=int, default=0)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.port:
        _crowd(options.port, options.posters, options.readers)
    else:
        _serve()


if __name__ == "__main__":
    main()
