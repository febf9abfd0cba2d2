"""A browser without scripts: it follows redirects, keeps cookies, fills in login forms and submits them.

In: URLs with any host name; every name is 127.0.0.1. Out: the page at which a journey ends, and the steps to it.
Must never: open a connection to another machine.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from urllib.parse import urljoin

import httpx

from identity_provider.provider import PASSWORD, USER

_STEPS = 25  # redirects and forms of one journey
_DEADLINE = 60.0  # seconds for one answer
_TIMEOUT = httpx.Timeout(_DEADLINE).as_dict()
NAVIGATION = {
    "accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "sec-fetch-dest": "document",
    "sec-fetch-mode": "navigate",
    "sec-fetch-site": "none",
}
FETCH = {"accept": "*/*", "sec-fetch-dest": "empty", "sec-fetch-mode": "cors"}


@dataclass(frozen=True)
class Page:
    """The end of a journey. `answer` is None if the journey ended before a request (`until`)."""

    url: str
    answer: httpx.Response | None
    steps: list[str] = field(default_factory=list)  # every URL that was requested
    forms: int = 0  # login forms that were submitted

    @property
    def status(self) -> int:
        """The status code; 0 without a request."""
        return self.answer.status_code if self.answer is not None else 0

    @property
    def text(self) -> str:
        """The body; "" without a request."""
        return self.answer.text if self.answer is not None else ""


class _Loopback(httpx.HTTPTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        name = request.url.host
        return super().handle_request(
            httpx.Request(
                request.method,
                request.url.copy_with(host="127.0.0.1"),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": name},
            )
        )


class UserAgent:
    """Use as a context manager. `trust` verifies servers with TLS."""

    def __init__(self, trust: ssl.SSLContext | None = None, user: str = USER) -> None:
        self.user = user
        # A browser sends Secure cookies to localhost without TLS.
        policy = DefaultCookiePolicy(secure_protocols=("https", "http"))
        self.jar = CookieJar(policy)
        self._cookies = httpx.Cookies(self.jar)
        self._client = httpx.Client(transport=_Loopback(verify=trust or False))

    def __enter__(self) -> UserAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        data: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request with the cookies of its URL; redirects are not followed."""
        # The client's own cookies have the usual policy: every request is made without the client.
        request = httpx.Request(
            method, url, headers=headers, data=data, extensions={"timeout": _TIMEOUT}
        )
        self._cookies.set_cookie_header(request)
        answer = self._client.send(request)
        self._cookies.extract_cookies(answer)
        return answer

    def fetch(self, url: str) -> httpx.Response:
        """Send what a script's fetch() sends."""
        return self.request("GET", url, headers=FETCH)

    def follow(self, url: str, *, until: str = "") -> Page:
        """Navigate: follow redirects and submit forms until a page without a form.

        `until` ends the journey before the request of a URL that begins with it; another end is an AssertionError.
        """
        method, data = "GET", None
        steps: list[str] = []
        forms = 0
        for _ in range(_STEPS):
            if until and url.startswith(until):
                return Page(url, None, steps, forms)
            steps.append(url)
            answer = self.request(method, url, headers=NAVIGATION, data=data)
            method, data = "GET", None
            if answer.is_redirect:
                url = urljoin(url, answer.headers["location"])
                continue
            form = _Form.of(answer)
            if form is None:
                assert not until, f"{until} was not reached: {steps}\n{answer.text}"
                return Page(url, answer, steps, forms)
            method, data = form.method, form.filled(self.user)
            forms += "password" in data
            url = urljoin(url, form.action)
        raise AssertionError(f"no end after {_STEPS} steps: {steps}")

    def cookies(self, name: str = "") -> list[Cookie]:
        """Return cookies with a name that begins with this."""
        return [one for one in self.jar if one.name.startswith(name)]


class _Form(HTMLParser):
    """The first form of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.action, self.method = "", "GET"
        self._found = self._inside = False
        self._fields: dict[str, str] = {}

    @classmethod
    def of(cls, answer: httpx.Response) -> _Form | None:
        """Return the form of a page, or None."""
        if "html" not in answer.headers.get("content-type", ""):
            return None
        parser = cls()
        parser.feed(answer.text)
        parser.close()
        return parser if parser._found else None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form" and not self._found:
            self._found = self._inside = True
            self.action, self.method = values.get("action", ""), values.get("method", "get").upper()
        elif tag == "input" and self._inside and values.get("name"):
            kind = values.get("type", "text")
            if kind in ("text", "password", "hidden", "email"):
                self._fields[values["name"]] = values.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "form"

    def filled(self, user: str) -> dict[str, str]:
        """Return all fields, with user name and password where the form asks for them."""
        filled = dict(self._fields)
        if "password" in filled:
            filled |= {"username": user, "password": PASSWORD}
        return filled
