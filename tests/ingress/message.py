"""A request and its expected answer: the values that evaluator, oracle and product are compared by.

In: nothing. Out: `Request`, `Answer`, and two scripted services: a backend and an authentication service that answer as the
request's own headers ask. Text is Latin-1: one character is one byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Headers = tuple[tuple[str, str], ...]

#: Request headers that the scripted services obey.
BACKEND_STATUS = "x-answer-status"
BACKEND_LOCATION = "x-answer-location"
BACKEND_COOKIES = "x-answer-cookies"  # separated by "|"
AUTH_STATUS = "x-auth-answer"
#: What the scripted authentication service adds to each answer.
AUTH_ANSWER: Headers = (
    ("Set-Cookie", "auth=1"),
    ("X-Auth-User", "alice"),
    ("WWW-Authenticate", "Bearer"),
)
#: Stands for a value that the proxy makes by chance.
RANDOM = "<random>"


@dataclass(frozen=True)
class Request:
    """One request as the client sends it."""

    host: str  # the value of Host; "": no Host header (HTTP/1.0)
    target: str = "/"  # path and query, as sent
    scheme: str = "http"
    port: int = 80  # the listener's
    sni: str = ""  # https only; "": no extension
    method: str = "GET"
    headers: Headers = ()  # without Host and framing
    peer: str = "127.0.0.1"
    body: int = 0  # bytes
    chunked: bool = False
    http10: bool = False

    def value(self, name: str) -> str:
        """The first value of a header, or ""."""
        return first(self.headers, name)


@dataclass(frozen=True)
class Backend:
    """The Service that got the request."""

    namespace: str
    service: str
    port: int
    canary: bool = False


@dataclass(frozen=True)
class AuthCall:
    """A request to an authentication service."""

    url: str
    method: str
    headers: tuple[tuple[str, str], ...]  # sorted, names in lower case


@dataclass(frozen=True)
class Answer:
    """The client's answer, and the request as a backend saw it."""

    status: int
    location: str = ""
    backend: Backend | None = None  # None: nginx answered by itself
    target: str = ""  # as the backend saw it
    sent: tuple[tuple[str, str], ...] = ()  # request headers at the backend: sorted, lower case
    response: tuple[tuple[str, str], ...] = ()  # response headers of the proxy: sorted, lower case
    certificate: str = ""  # namespace/name of the Secret, "default", or "" without TLS
    auth: AuthCall | None = None
    access: str = ""  # "", "allowed", "forbidden", "unauthorized", "error"
    step: str = field(default="", compare=False)  # which step decided


def first(headers: Iterable[tuple[str, str]], name: str) -> str:
    """The first value of a header, or ""."""
    return next((value for key, value in headers if key.lower() == name.lower()), "")


def answer_auth(headers: Iterable[tuple[str, str]]) -> tuple[int, Headers]:
    """Status and headers of the scripted authentication service: as the request's `x-auth-answer` asks, else 200."""
    return int(first(headers, AUTH_STATUS) or 200), AUTH_ANSWER


def answer_backend(headers: Iterable[tuple[str, str]]) -> int:
    """Status of the scripted backend: as the request's `x-answer-status` asks, else 200."""
    return int(first(headers, BACKEND_STATUS) or 200)


def answer_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Location and Set-Cookie of the scripted backend, as the request asks."""
    headers = tuple(headers)
    location, cookies = first(headers, BACKEND_LOCATION), first(headers, BACKEND_COOKIES)
    found = [("Location", location)] if location else []
    return (*found, *(("Set-Cookie", one) for one in cookies.split("|") if one))
