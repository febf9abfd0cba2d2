"""A browser, as far as logins need one: cookies with their prefixes and lifetimes, navigations, redirects one at a time."""

from __future__ import annotations

from urllib.parse import urlencode

from wire.harness.client import Client
from wire.harness.responses import Response
from wire.oidc.provider import Provider

NAVIGATION = (("sec-fetch-mode", "navigate"), ("accept", "text/html"))


class Browser:
    """One browser at one host of the proxy."""

    def __init__(self, port: int, host: str = "shop.example.com") -> None:
        self.port = port
        self.host = host
        self.cookies: dict[str, str] = {}
        self.attributes: dict[str, str] = {}

    def get(self, target: str, *headers: tuple[str, str], method: str = "GET") -> Response:
        """Send one request with the cookies of the host, and take those of the answer."""
        lines = list(headers or NAVIGATION)
        if self.cookies:
            lines.append(
                ("cookie", "; ".join(f"{name}={one}" for name, one in self.cookies.items()))
            )
        with Client(("127.0.0.1", self.port)) as client:
            answer = client.request(method, target, host=self.host, headers=lines)
        for value in values(answer, "set-cookie"):
            self._take(value)
        return answer

    def _take(self, line: str) -> None:
        pair, _, attributes = line.partition("; ")
        name, _, value = pair.partition("=")
        assert len(pair) <= 4096, "no browser keeps it"
        if name.startswith("__Host-"):
            assert "Secure" in attributes and "Path=/" in attributes and "Domain" not in attributes
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value
            self.attributes[name] = attributes

    def begin(self, target: str = "/") -> str:
        """Return the address at the provider to which a navigation is redirected."""
        answer = self.get(target)
        assert answer.status == 302, (answer.status, answer.body)
        return location(answer)

    def call_back(self, parameters: dict[str, str]) -> Response:
        """Come back from the provider."""
        return self.get("/oauth2/callback?" + urlencode(parameters))

    def log_in(self, provider: Provider, target: str = "/") -> Response:
        """Log in, up to the redirect to the target."""
        answer = self.call_back(provider.authorize(self.begin(target)))
        assert answer.status == 302, (answer.status, answer.body)
        return answer

    @property
    def sessions(self) -> list[str]:
        return [name for name in self.cookies if "edge-session" in name]

    @property
    def logins(self) -> list[str]:
        return [name for name in self.cookies if "edge-login" in name]


def values(answer: Response, name: str) -> list[str]:
    return [one.decode() for key, one in answer.headers if key.lower() == name.encode()]


def location(answer: Response) -> str:
    (found,) = values(answer, "location")
    return found
