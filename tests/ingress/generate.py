"""Random sets of Ingresses and requests that meet the rules: few hosts, paths and Services, so that everything collides.

In: a seed and a size. Out: objects as YAML gives them, and requests. The same seed gives the same, except for the keys of
certificates. `heavy` annotations (authentication, error pages, canaries) come with a probability each.
Must never: make what the proxy decides by chance, or a set that nginx refuses (`nginx_servers.without_duplicates`).
"""

from __future__ import annotations

import base64
import copy
import random
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ingress.generate_responses import random_answers, random_responses, random_setting
from ingress.limits import random_limits
from ingress.message import AUTH_STATUS, BACKEND_STATUS, Request
from ingress.standard_objects import SERVICES, SPACES, Object, standard_objects

PREFIX = "nginx.ingress.kubernetes.io/"
HOSTS = ("a.test", "b.test", "www.a.test", "www.c.test", "*.w.test", "x.w.test", "*.test", "")
NAMES = (
    "a.test", "b.test", "www.a.test", "c.test", "www.c.test", "www.b.test", "x.w.test", "y.w.test", "a-_1.w.test",
    "d.e.w.test", "z.test", "alias.test", "one.alias.test", "two.one.alias.test", "other.org", "A.TEST", "b.test:8080",
    "a.test.", "y.w.test:80",
)  # fmt: skip
PATHS = (
    "/",
    "/foo",
    "/foo/",
    "/foo/bar",
    "/Foo",
    "/dir/",
    "/dir/sub/",
    "/a.b",
    "/foob",
    "/.well-known/acme-challenge/x",
    "",
)
REGEXES = (
    "/foo(/|$)(.*)", "/api/v[0-9]+/(.*)", "/(a|b)/?(.*)", "/foo/[^/]+", "/dir/(x)?(.*)", "/()(.*)", "/foo$", "/a.b(.*)",
)  # fmt: skip
TARGETS = (
    "/",
    "/$1",
    "/$2",
    "/new/$1",
    "/foo",
    "/x$2y$1",
    "/dir/",
    "https://else.test/$1",
    "http://else.test/to",
)
REQUESTS = (
    "/", "/foo", "/foo/", "/foobar", "/FOO/x", "/foo/bar", "/foo/bar/baz", "/foob", "/foob/", "/dir", "/dir/", "/dir/x",
    "/dir/sub", "/dir/sub/x", "/DIR/", "/a.b", "/aXb", "/api/v1/users", "/api/v2/", "/a/1", "/b/2/3", "/none",
    "/foo//bar", "/foo/./bar", "/foo/../dir/", "/%66oo", "/foo%2Fbar", "/foo/%2e%2e/dir", "/foo/a%20b", "/foo/%C3%A4",
    "/foo/a%7Cb", "/foo/a%25b", "/foo/a+b", "/foo/;v=1", "/.well-known/acme-challenge/x",
    "/.well-known/acme-challenge/", "/foo/'(*)!", "/foo/a%3Fb", "/foo/a%23b", "/foo/x|y", "/foo/%7B%7D/",
    "/foo/{x}", "/foo/a\"b<c>", "/foo/^`", "/foo/\xe4", "/api/v1/x|y+z&w;", "/a/%7C+", "/api/v1/a%20b%C3%A4%26%3B%25",
)  # fmt: skip
BAD_REQUESTS = ("/..", "/foo/%00", "/foo/%zz", "/foo/../../x", "/%2e%2e/")
QUERIES = ("", "", "", "?", "?q=1", "?q=a%2Fb&r=/", "?x=/y/", "?a=b?c")
PORTS = ({"number": 80}, {"name": "http"}, {"number": 8080}, {"name": "web"}, {"number": 81})
PEERS = ("127.0.0.1", "127.0.0.2", "127.0.1.3")
RANGES = (
    "127.0.0.1",
    "127.0.0.0/24",
    "10.0.0.0/8",
    "127.0.0.2,127.0.1.0/24",
    "127.0.0.1/32, 10.0.0.0/8",
)
LOGIN = "Basic " + base64.b64encode(b"user:secret").decode()
WRONG = "Basic " + base64.b64encode(b"user:wrong").decode()
#: Lines of configuration-snippet, in forms that test_snippet_against_nginx.py has, too.
SNIPPETS = (
    "return 418;",
    "return 307 https://s.test$request_uri;",
    'if ($host = "a.test") { return 302 https://s.test/x; }',
    "if ($request_method !~ ^(GET|HEAD)$) { return 405; }",
    'if ($http_x_forwarded_proto != "https") { return 308 https://$host$request_uri; }',
    'if ($http_x_forwarded_proto = "http") { return 404; }\nif ($scheme = https) { return 403; }',
    "if ($http_x_forwarded_proto ~* ^HTTPS$) { return 410; }\nreturn 204;",
)


class Generator:
    """Objects and requests of one seed."""

    def __init__(
        self, seed: int, size: int = 12, without: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`without`: annotations and settings of the ConfigMap that are left out, with the expression of their values."""
        self._random = random.Random(seed)
        self._of_limits = random.Random(f"limits {seed}")  # the other choices stay as they are
        self._responses_random = random.Random(f"responses {seed}")
        self._without = without
        self._size = size
        self._hosts: list[str] = list(HOSTS)
        self._paths: list[str] = []

    def objects(self) -> list[Object]:
        """A set of objects with `size` Ingresses at most."""
        self._hosts = self._random.sample(HOSTS, 3)
        made: list[Object] = []
        for number in range(self._random.randint(1, self._size)):
            made.append(self._ingress(number))
            if made[-1]["metadata"]["annotations"].get(PREFIX + "canary") and self._chance(0.8):
                self._follow(made[-1], made[:-1])
        self._paths = [
            path["path"]
            for one in made
            for rule in one["spec"].get("rules", ())
            for path in rule.get("http", {"paths": ()})["paths"]
            if re.fullmatch(r"/[a-zA-Z0-9/._-]+", path.get("path", ""))
        ]
        found = standard_objects() + made
        if self._chance(0.45):
            found.append(self._configuration())
        self._random.shuffle(found)
        return found

    def requests(self, count: int) -> list[Request]:
        """Requests."""
        return [self._request() for _ in range(count)]

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    # ---- Ingresses ----

    def _ingress(self, number: int) -> Object:
        pick = self._random.choice
        annotations = self._annotations()
        spec: Object = {"ingressClassName": "nginx"}
        if self._chance(0.05):
            spec["ingressClassName"] = "other"
        elif self._chance(0.08):
            del spec["ingressClassName"]
            annotations["kubernetes.io/ingress.class"] = pick(("nginx", "nginx", "else"))
        is_canary = annotations.get(PREFIX + "canary") in ("true", "1")
        uses_regex = PREFIX + "use-regex" in annotations or PREFIX + "rewrite-target" in annotations
        if self._chance(0.12):
            spec["defaultBackend"] = self._backend(is_canary)
        if "defaultBackend" not in spec or self._chance(0.5):
            spec["rules"] = [
                self._rule(regex=uses_regex, canary=is_canary)
                for _ in range(self._random.choice((1, 1, 2)))
            ]
        if self._chance(0.35):
            spec["tls"] = [self._tls() for _ in range(self._random.choice((1, 1, 2)))]
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {
                "namespace": pick(SPACES),
                "name": f"i{number}",
                "creationTimestamp": f"2026-01-01T00:00:0{self._random.randrange(6)}Z",
                "annotations": annotations,
            },
            "spec": spec,
        }

    def _follow(self, canary: Object, others: list[Object]) -> None:
        """Give a canary the hosts and paths of another Ingress."""
        # A canary's rule without paths crashes the controller.
        primaries = [
            one for one in others if any("http" in rule for rule in one["spec"].get("rules", ()))
        ]
        if not primaries:
            return
        primary = self._random.choice(primaries)
        canary["metadata"]["namespace"] = primary["metadata"]["namespace"]
        rules = [rule for rule in primary["spec"]["rules"] if "http" in rule]
        canary["spec"]["rules"] = copy.deepcopy(rules)
        for rule in canary["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                path["backend"] = self._backend(True)

    def _rule(self, *, regex: bool, canary: bool) -> Object:
        rule: Object = {}
        if host := self._random.choice(self._hosts if self._chance(0.9) else HOSTS):
            rule["host"] = host
        if self._chance(0.04) and not canary:
            return rule
        paths = [self._path(regex=regex, canary=canary) for _ in range(self._random.randint(1, 3))]
        rule["http"] = {"paths": paths}
        return rule

    def _path(self, *, regex: bool, canary: bool) -> Object:
        pick = self._random.choice
        path: Object = {"backend": self._backend(canary)}
        if regex and self._chance(0.6):
            return {**path, "path": pick(REGEXES), "pathType": "ImplementationSpecific"}
        path["path"] = pick(PATHS)
        kind = pick(("Prefix", "Prefix", "Exact", "ImplementationSpecific", ""))
        return {**path, "pathType": kind} if kind else path

    def _backend(self, canary: bool) -> Object:
        # A canary with the Service of a primary is rare, and decides which of both exists.
        names = ("canary",) if canary and self._chance(0.85) else SERVICES
        port = self._random.choice(PORTS[:2] if self._chance(0.8) else PORTS)
        return {"service": {"name": self._random.choice(names), "port": dict(port)}}

    def _tls(self) -> Object:
        pick = self._random.choice
        entry: Object = {}
        if self._chance(0.8):
            entry["hosts"] = self._random.sample([host for host in HOSTS if host], 2)
        if self._chance(0.85):
            entry["secretName"] = pick(("exact", "wildcard", "www", "missing"))
        return entry

    def _annotations(self) -> dict[str, str]:
        pick = self._random.choice
        found: dict[str, str] = {}
        groups = (
            (0.2, self._canary),
            (0.25, self._rewrite),
            (0.3, self._redirect),
            (0.2, self._addresses),
            (0.2, self._password),
            (0.2, self._external),
            (0.25, self._pages),
            (0.3, self._single),
            (0.12, self._cors),
        )
        for share, group in groups:
            if self._chance(share):
                found |= group()
        if self._responses_random.random() < 0.25:
            found |= random_responses(self._responses_random)
        if self._chance(0.5):
            found.setdefault("ssl-redirect", "false")
        if self._chance(0.2):
            found["satisfy"] = pick(("any", "any", "all", "some"))
        if self._of_limits.random() < 0.15:
            found |= random_limits(self._of_limits, RANGES)
        if "canary" in found:  # error pages of an upstream with a canary may come from the canary
            found.pop("default-backend", None)
        return {PREFIX + name: value for name, value in self._kept(found)}

    def _kept(self, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        for name, value in found.items():
            left_out = self._without.get(name)
            if left_out is None or not re.fullmatch(left_out, value):
                yield name, value

    def _canary(self) -> dict[str, str]:
        pick = self._random.choice
        found = {"canary": pick(("true", "true", "true", "1", "false"))}
        if self._chance(0.6):
            found["canary-by-header"] = "X-Canary"
        if self._chance(0.3):
            found["canary-by-header-value"] = "Yes"
        if self._chance(0.3):
            found["canary-by-header-pattern"] = pick(("^ye", "s$", "[a-m]+"))
        if self._chance(0.4):
            found["canary-by-cookie"] = "canary"
        if self._chance(0.4):
            found["canary-weight"] = pick(("0", "100", "150"))
        if self._chance(0.1) and found.get("canary-weight") != "100":
            found["canary-weight-total"] = "150"
        elif self._chance(0.1):
            found["canary-weight-total"] = "10"
        return found

    def _rewrite(self) -> dict[str, str]:
        found = {}
        if self._chance(0.7):
            found["rewrite-target"] = self._random.choice(TARGETS)
        if self._chance(0.5):
            found["use-regex"] = self._random.choice(("true", "true", "false"))
        if self._chance(0.1):
            found["x-forwarded-prefix"] = "/prefix"
        return found

    def _redirect(self) -> dict[str, str]:
        pick = self._random.choice
        return pick(
            (
                {"ssl-redirect": pick(("false", "false", "true", "no"))},
                {"ssl-redirect": "false", "force-ssl-redirect": "true"},
                {"force-ssl-redirect": "true"},
                {"preserve-trailing-slash": "true"},
                {"app-root": pick(("/app", "/app/x", "app"))},
                {"from-to-www-redirect": "true"},
                {"from-to-www-redirect": pick(("true", "maybe"))},
                {"relative-redirects": "true"},
                {"use-port-in-redirects": "true"},
                {"temporal-redirect": "https://t.test/x"},
                {"temporal-redirect": "https://t.test/x", "temporal-redirect-code": pick(("307", "303", "308", "300"))},
                {"permanent-redirect": "https://p.test/"},
                {"permanent-redirect": "https://p.test/", "permanent-redirect-code": pick(("308", "302", "400", "305"))},
                {"permanent-redirect": "/new/place"},
                {"permanent-redirect": "/new/place", "relative-redirects": "true"},
                {"temporal-redirect": "/new/place", "from-to-www-redirect": "true"},
                {"temporal-redirect": "https://t.test/", "permanent-redirect": "https://p.test/"},
                {"temporal-redirect": "https://t.test$request_uri"},
                {"permanent-redirect": "https://$host/new?to=$request_uri"},
            )
        )  # fmt: skip

    def _addresses(self) -> dict[str, str]:
        pick = self._random.choice
        found = {}
        if self._chance(0.6):
            name = pick(("whitelist-source-range", "allowlist-source-range"))
            found[name] = pick((*RANGES, *RANGES, "no address", ""))
        if self._chance(0.5):
            found["denylist-source-range"] = pick((*RANGES, *RANGES, "10.0.0.0/99"))
        return found

    def _password(self) -> dict[str, str]:
        space = "shop/" if self._chance(0.1) else ""
        found = {
            "auth-type": "basic",
            "auth-secret": space + ("missing" if self._chance(0.1) else "users"),
        }
        if self._chance(0.2):
            found |= {"auth-secret": "map", "auth-secret-type": "auth-map"}
        if self._chance(0.5):
            found["auth-realm"] = "Some realm"
        if self._chance(0.08):
            found["auth-type"] = "kerberos"
        return found

    def _external(self) -> dict[str, str]:
        pick = self._random.choice
        found = {
            "auth-url": pick(
                (
                    "http://auth.web:8080/check",
                    "http://auth.web/a?b=c",
                    "https://$host/foo/bar",
                    "http://auth.web/$request_method/$host?s=$scheme&u=$request_uri",
                )
            )
        }
        if self._chance(0.05):
            found["auth-url"] = "http:///x"
        if self._chance(0.4):
            found["auth-signin"] = pick(
                (
                    "https://in.test/start",
                    "https://in.test/?a=b",
                    "https://in.test/?rd=/x",
                    "$scheme://$http_host/in?rd=$escaped_request_uri",
                )
            )
        if self._chance(0.2):
            found["auth-signin-redirect-param"] = "to"
        if self._chance(0.4):
            found["auth-response-headers"] = pick(("X-Auth-User", "X-Auth-User, X-Missing"))
        elif self._chance(0.05):
            found["auth-response-headers"] = "X Bad!"
        if self._chance(0.2):
            found["auth-method"] = pick(("POST", "POST", "GET", "post"))
        if self._chance(0.2):
            found["auth-always-set-cookie"] = "true"
        if self._chance(0.1):
            found["auth-request-redirect"] = "https://back.test/"
        return found

    def _pages(self) -> dict[str, str]:
        pick = self._random.choice
        found = {}
        if self._chance(0.8):
            found["custom-http-errors"] = pick(("503", "404,403", "401,403,500", "404,503,413"))
        if self._chance(0.8):
            found["default-backend"] = pick(("pages", "pages", "pages", "missing", "empty"))
        return found

    def _cors(self) -> dict[str, str]:
        pick = self._random.choice
        found = {"enable-cors": pick(("true", "true", "maybe"))}
        if self._chance(0.6):
            found["cors-allow-origin"] = pick(
                (
                    "*",
                    "https://o.test",
                    "https://*.o.test, http://p.test:81",
                    "o.test",
                    "null",
                    "a b",
                )
            )
        if self._chance(0.2):
            found["cors-allow-credentials"] = "false"
        if self._chance(0.2):
            found["cors-expose-headers"] = "X-One, X-Two"
        if self._chance(0.2):
            found["cors-allow-methods"] = pick(("PUT, GET", "GET1"))
        if self._chance(0.2):
            found["cors-max-age"] = pick(("60", "x"))
        return found

    def _single(self) -> dict[str, str]:
        pick = self._random.choice
        return pick(
            (
                {"server-alias": "alias.test"},
                {"server-alias": "*.alias.test"},
                {"server-alias": "alias.test, *.alias.test, a.test, z.test"},
                {"upstream-vhost": "inner.test"},
                {"proxy-body-size": pick(("10", "1k", "0", "8m", "x"))},
                {"custom-headers": pick(("web/headers", "web/headers", "web/missing"))},
                *[{"configuration-snippet": one} for one in SNIPPETS],
                {"disable-proxy-intercept-errors": "true", "custom-http-errors": "404,403"},
            )
        )

    def _configuration(self) -> Object:
        options = {
            "ssl-redirect": "false",
            "force-ssl-redirect": "true",
            "use-forwarded-headers": "true",
            "proxy-body-size": "10",
            "hsts": "false",
            "http-redirect-code": "301",
            "no-auth-locations": "/foo",
            "no-tls-redirect-locations": "/dir",
            "proxy-add-original-uri-header": "true",
            "global-auth-url": "http://global.web/auth",
            "whitelist-source-range": "127.0.0.0/24",
            "denylist-source-range": "127.0.0.2",
            "global-allowed-response-headers": "X-Custom-A,X-Custom-B",
            "enable-real-ip": "true",
            "block-cidrs": "127.0.1.0/24",
            "block-user-agents": "~*curl,Bot",
            "block-referers": "bad.test",
        }
        names = self._random.sample(sorted(options), self._random.choice((1, 1, 2)))
        more = random_setting(self._responses_random)
        options |= more
        names += more
        allowed = ("allow-snippet-annotations", "annotations-risk-level")
        options |= dict(zip(allowed, ("true", "Critical"), strict=True))
        if self._chance(0.6):
            names += allowed
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "ingress-nginx", "name": "ingress-nginx-controller"},
            "data": dict(self._kept({name: options[name] for name in names})),
        }

    # ---- requests ----

    def _request(self) -> Request:
        pick = self._random.choice
        host = pick(NAMES)
        if self._chance(0.7):
            host = pick([one.replace("*", "y") for one in self._hosts]) or host
        scheme = "https" if self._chance(0.25) else "http"
        sni = ""
        if scheme == "https":
            plain = host.partition(":")[0].rstrip(".").lower()
            sni = plain if self._chance(0.8) else pick(("", "a.test", "y.w.test", "other.org"))
        body = pick((5, 50)) if self._chance(0.08) else 0
        return Request(
            host=host,
            target=self._target() + pick(QUERIES),
            scheme=scheme,
            port=8443 if scheme == "https" else 8080,
            sni=sni,
            method="POST" if body else pick(("GET", "GET", "GET", "OPTIONS")),
            headers=self._headers(),
            peer=pick(PEERS),
            body=body,
            chunked=bool(body) and self._chance(0.4),
        )

    def _target(self) -> str:
        pick = self._random.choice
        if self._chance(0.02):
            return pick(BAD_REQUESTS)
        if not self._paths or self._chance(0.5):
            return pick(REQUESTS)
        path = pick(self._paths)
        return pick((path, path, path + "/x", path + "x", path.rstrip("/"), path.upper())) or "/"

    def _headers(self) -> tuple[tuple[str, str], ...]:
        pick = self._random.choice
        optional = (
            (0.35, "Authorization", (LOGIN, LOGIN, WRONG, "Bearer x")),
            (0.3, AUTH_STATUS, ("200", "204", "401", "401", "403", "302", "500")),
            (0.2, BACKEND_STATUS, ("404", "404", "404", "403", "401", "503", "201")),
            (0.25, "X-Canary", ("always", "never", "Yes", "yes", "bad", "")),
            (0.2, "Cookie", ("canary=always", "canary=never", "a=b; canary=always", "canary=x")),
            (0.1, "X-Forwarded-For", ("10.1.1.1", "10.1.1.1, 127.0.0.2", "bad, 10.2.2.2")),
            (0.1, "X-Forwarded-Proto", ("https", "http")),
            (0.08, "X-Forwarded-Host", ("fwd.test", "fwd.test:81, other.test")),
            (0.05, "X-Forwarded-Port", ("8443",)),
            (0.1, "X-Auth-User", ("mallory",)),
            (0.1, "X-Request-ID", ("r1",)),
            (0.1, "Accept", ("text/html",)),
            (0.05, "Proxy", ("evil",)),
            (0.05, "X-Real-IP", ("1.1.1.1",)),
            (0.05, "x_under", ("1",)),
            (
                0.15,
                "Origin",
                (
                    "https://o.test",
                    "https://a.o.test",
                    "HTTP://P.test:81",
                    "xhttps://o.test",
                    "null",
                ),
            ),
            (0.05, "User-Agent", ("my Curl/1", "bot", "botx")),
            (0.05, "Referer", ("bad.test", "bad.test/x")),
        )
        found = [(name, pick(values)) for share, name, values in optional if self._chance(share)]
        found += random_answers(self._responses_random)
        return tuple(found)
