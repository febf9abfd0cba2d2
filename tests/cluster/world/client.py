"""Requests from outside the node: one at a time here, a steady load in `load`.

In: a URL whose host is an address (the client has no DNS), the Host header, headers. Out: an `Answer`.
Must never: follow redirects, retry, or reuse a connection unless asked to.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from cluster.world import netns
from cluster.world.load import Load


@dataclass(frozen=True)
class Answer:
    """A whole answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """A client in a network namespace (None: this process's own)."""

    def __init__(self, in_netns: str | None) -> None:
        self.in_netns = in_netns

    def request(
        self,
        url: str,
        *,
        host: str | None = None,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        tls: ssl.SSLContext | None = None,
        seconds: float = 10.0,
    ) -> Answer:
        """Send one request on a connection of its own; OSError or HTTPException when there is no whole answer.

        With an https URL, `host` is the server name of the TLS handshake too; without `tls` nothing is verified.
        """
        parts = urlsplit(url)
        assert parts.hostname is not None
        secure = parts.scheme == "https"
        sock = netns.connect(
            self.in_netns, parts.hostname, parts.port or (443 if secure else 80), seconds
        )
        connection = http.client.HTTPConnection(parts.hostname)
        try:
            if secure:
                name = (host or parts.hostname).rsplit(":", 1)[0]
                sock = (tls or _unverified()).wrap_socket(sock, server_hostname=name)
            connection.sock = sock
            sent = {"Host": host or parts.netloc, **(headers or {})}
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body, sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()
            sock.close()

    def wait(
        self,
        url: str,
        until: Callable[[Answer], object],
        *,
        host: str | None = None,
        seconds: float = 60.0,
    ) -> Answer:
        """Repeat a request until the condition holds for its answer; failures to connect count as no answer."""
        deadline = time.monotonic() + seconds
        last: object = None
        while True:
            try:
                answer = self.request(url, host=host, seconds=2.0)
                if until(answer):
                    return answer
                last = answer
            except (OSError, http.client.HTTPException) as error:
                last = error
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{host or ''} {url} not as expected after {seconds} s: {last!r}"
                )
            time.sleep(0.02)

    def load(
        self, url: str, hosts: Sequence[str] = (), rate: float = 200.0, **options: object
    ) -> Load:
        """Return a load generator in this client's namespace; see `Load`."""
        return Load(self.in_netns, url, hosts, rate, **options)  # type: ignore[arg-type]

    def command(self, *command: str) -> list[str]:
        """Return the command that runs another one where this client is."""
        return [*netns.prefix(self.in_netns), *command]


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
