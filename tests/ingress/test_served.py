"""What the product serves for Ingresses against the naive evaluator, without sockets: `explain` on the compiled table.

Compared: status, Location, the Service, the request target and Host at the backend. The heavy run is 440 sets with 500 requests each,
of which more than 100,000 are compared.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import Any

import pytest

from edgefast.api.decode.decode import decode_api_object
from edgefast.api.kinds import KINDS
from edgefast.api.snapshot import Snapshot
from edgefast.explain import RequestSpec, serve_translation
from edgefast.explain.explain import explain
from edgefast.explain.explanation import Explanation
from edgefast.explain.forwarded import RANDOM_ID
from edgefast.explain.served_fleet import Served
from edgefast.translate import Settings, translate
from ingress.differ import Ask, Objects, Unknown, compare
from ingress.generate import PREFIX
from ingress.message import (
    AUTH_ANSWER,
    BACKEND_STATUS,
    RANDOM,
    Answer,
    Backend,
    Request,
    answer_auth,
    answer_headers,
)
from ingress.naive import Evaluator
from ingress.naive.access import external_of, needs_login
from ingress.naive.annotations import Annotations
from ingress.naive.client import name_of_host
from ingress.naive.forwarding import IGNORED
from ingress.naive.hosts import Upstream
from ingress.naive.matching import match, normalise
from ingress.naive.objects import CONTROLLER
from ingress.naive.objects import Objects as NaiveObjects
from ingress.refused_checks import is_refused
from ingress.standard_objects import standard_objects, tls_secret

pytestmark = [
    pytest.mark.pure,
    pytest.mark.skipif(
        ("networking.k8s.io", "Ingress") not in KINDS,
        reason="the decoder does not know the kind Ingress",
    ),
]

#: Any value.
ANY = "(?s).*"
#: `spec.controller` of the classes that edgefast serves.
OURS = "gateway.edge.io/ingress-controller"
#: Annotations and settings of the ConfigMap that edgefast does not serve -> the values that the comparison leaves out, and the limit
#: in docs/guides/ingress.md.
LEFT_OUT = {
    "permanent-redirect": ("/.*", "a path stays a path in Location"),
    "permanent-redirect-code": ("30[0456]", "redirects with these statuses have a Location"),
    "temporal-redirect-code": ("30[0456]", "redirects with these statuses have a Location"),
    "block-cidrs": (ANY, "the 404 without any Ingress is given to all addresses"),
    "block-user-agents": (ANY, "all locations answer 503"),
    "block-referers": (ANY, "all locations answer 503"),
    "cors-allow-origin": (".*null.*", "origins of http and https only"),
}
#: Those of them that answer 503, with a value: `test_a_refused_setting_answers_503`.
CLOSING_SETTINGS = {
    "block-user-agents": "~*curl,Bot",
    "block-referers": "bad.test",
    "global-auth-url": "http://$host/auth",
}
CLOSING_ANNOTATIONS: tuple[dict[str, str], ...] = (
    {"rewrite-target": "https://$1.else.test/"},
    {"auth-url": "http://$host/check"},
    {"auth-url": "http://auth.web/check?t=$arg_t"},
    {"auth-url": "http://auth.web/check", "auth-signin": "https://in.test/$args"},
)
#: Headers of the authentication service, which an explanation leaves open.
SAID = frozenset(name.lower() for name, _ in AUTH_ANSWER)
FIELDS = ("status", "location", "backend", "target", "sent", "response")


def serve(objects: Objects) -> Ask:
    """The table that the product compiles for these objects."""
    from edgefast.translate.settings import IngressSettings

    decoded = [
        decode_api_object(_adopted(one), one["kind"])
        for one in (*objects, tls_secret("ingress-nginx", "default", "ingress.local"))
    ]
    ingress = IngressSettings(certificate="ingress-nginx/default")
    settings = Settings(standalone=True, ingress=ingress)
    return ask_table(serve_translation(translate(Snapshot.of(decoded), settings)), objects)


def ask_table(served: Served, objects: Objects) -> Ask:
    """Questions to a compiled table that serves these objects."""
    naive = NaiveObjects(objects)
    forwarded = naive.setting("use-forwarded-headers") == "true"
    hosts = {
        rule.get("host", "") for one in naive.ingresses() for rule in one["spec"].get("rules", ())
    }

    addresses_only = naive.setting("enable-real-ip") == "true"

    def ask(request: Request) -> Answer:
        if not naive.ingresses() or limit_of(request, hosts, forwarded=forwarded):
            raise Unknown  # without any Ingress of its classes the product opens no port
        names = ("x-forwarded-proto", "x-forwarded-host")
        if addresses_only and any(request.value(one) for one in names):
            raise Unknown  # enable-real-ip trusts them, too
        found = explain(served, _spec(request))
        answer = found.answers[0]
        if answer.asks and not 200 <= answer_auth(request.headers)[0] < 300:
            raise Unknown  # the explanation leaves open what the service answers
        if " asks service/" in answer.why:
            raise Unknown  # the explanation leaves open what the service of error pages answers
        if answer.kind != "backend":
            return Answer(answer.status, comparable(answer.location or _written_location(found)))
        part = next(one for one in found.backends if one.name == answer.backend)
        _, space, name, port = part.name.split("/")[:4]
        pairs = [line.partition(": ") for line in part.head[1:]]
        sent = [(key.lower(), _read_value(value)) for key, _, value in pairs]
        location, cookies = rewritten_headers(found, request)
        return Answer(
            200,
            comparable(location),
            response=cookies,
            backend=Backend(space, name, int(port)),
            target=part.head[0].split(" ")[1],
            sent=tuple(
                sorted(
                    one
                    for one in sent
                    if not is_own(one[0]) and not (answer.asks and one[0] in SAID)
                )
            ),
        )

    return ask


#: A rewrite of a response, as an explanation describes it.
_REWRITE = re.compile(
    r"rewrite (Location|Domain of cookies|Path of cookies) in responses: (prefix|value|every) (\S+) to (\S+)"
)


def rewritten_headers(
    found: Explanation, request: Request
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Location and cookies of the scripted backend after the rewrites of the rule."""
    rewrites = [one.groups() for one in map(_REWRITE.match, found.filters) if one is not None]

    def change(about: str, value: str) -> str:
        for what, kind, pattern, to in rewrites:
            if what != about:
                continue
            text = to.replace("{scheme}", request.scheme)
            text = text.replace("{host}", name_of_host(request.host).lower())
            plain = value.removeprefix(".").lower()
            if kind == "every" and re.search(pattern, value):
                return re.sub(pattern, text, value, count=1)
            if kind == "prefix" and value.startswith(pattern):
                return text + value.removeprefix(pattern)
            if kind == "value" and plain == pattern:
                return ("." if value.startswith(".") else "") + text
        return value

    def change_cookie(value: str) -> str:
        parts = value.split("; ")
        for at, one in enumerate(parts[1:], 1):
            name, _, text = one.partition("=")
            about = {"domain": "Domain of cookies", "path": "Path of cookies"}.get(name.lower())
            parts[at] = f"{name}={change(about, text)}" if about else one
        return "; ".join(parts)

    location = ""
    cookies = []
    for name, value in answer_headers(request.headers):
        if name == "Location":
            location = change("Location", value)
        else:
            cookies.append(("set-cookie", change_cookie(value)))
    return location, tuple(sorted(cookies))


def _read_value(value: str) -> str:
    return RANDOM if value == RANDOM_ID else value


def is_own(name: str) -> bool:
    """A header that edgefast adds for every backend, or one that no comparison looks at."""
    return name.startswith("x-edge-") or name in IGNORED


def _adopted(item: dict[str, object]) -> dict[str, object]:
    changed = copy.deepcopy(item)
    if item["kind"] == "IngressClass" and changed["spec"] == {"controller": CONTROLLER}:
        changed["spec"] = {"controller": OURS}
    return changed


def _written_location(found: Explanation) -> str:
    """The Location that a filter sets, "" without one."""
    matches = (re.match(r"set response headers? location: ([^\s,]+)", one) for one in found.filters)
    return next((one[1] for one in matches if one is not None), "")


def _spec(request: Request) -> RequestSpec:
    return RequestSpec(
        method=request.method,
        scheme=request.scheme,
        port=request.port,
        host=request.host,
        target=request.target,
        headers=request.headers,
        source=request.peer,
        sni=request.sni,
        http10=request.http10,
        has_host=bool(request.host),
    )


def prepare(request: Request) -> Request:
    """Standard ports, no body, and a backend that answers 200."""
    headers = tuple(one for one in request.headers if one[0] != BACKEND_STATUS)
    port = 443 if request.scheme == "https" else 80
    return replace(request, headers=headers, port=port, body=0, chunked=False)


def limit_of(request: Request, hosts: set[str], *, forwarded: bool) -> str:
    """The documented limit for which a request is not compared, "" if it is (docs/guides/ingress.md, docs/reference/http1.md)."""
    path, mark, query = request.target.partition("?")
    if not re.fullmatch(r"(/[A-Za-z0-9._~!$&'()*+,=:@-]*)+", path):
        return "paths are forwarded and matched in their normalized form; other bytes than those of RFC 3986 get 400"
    if "//" in path or re.search(r"/[.]{1,2}(/|$)", path):
        return "edgefast forwards the normalized path"
    if mark and not query:
        return "a Location contains no empty query"
    if any("_" in name for name, _ in request.headers):
        return "header names with an underscore get 400"
    if request.scheme == "https" and request.sni not in ("", name_of_host(request.host)):
        return "a Host that differs from the SNI gets 421 where its listener is another"
    proto = request.value("x-forwarded-proto")
    if forwarded and proto not in ("", request.scheme) and not request.value("x-forwarded-port"):
        return "X-Forwarded-Port is the port of the scheme in X-Forwarded-Proto"
    if forwarded and request.value("x-forwarded-host"):
        return "edgefast keeps the Host of the request with use-forwarded-headers"
    if request.target.partition("?")[0] == "/" and re.search(":[0-9]+$", request.host):
        return "a Location of app-root has the port of the listener"
    name = name_of_host(request.host)
    deep = [
        one
        for one in hosts
        if one.startswith("*.") and re.fullmatch(r".+[.].+" + re.escape(one[1:]), name)
    ]
    if request.scheme == "https" and deep:
        return "names with several labels below a wildcard host over TLS get 404"
    return ""


def reduced(expected: Answer) -> Answer:
    """What an explanation knows of an answer."""
    if expected.backend and is_unsafe(expected.target):
        return Answer(500)  # a rewrite whose result has `//` or dot segments
    backend = expected.backend and replace(expected.backend, canary=False)
    said = SAID if expected.auth else frozenset[str]()
    sent = tuple(
        (name, without_dot(value) if name in ("host", "x-forwarded-host") else value)
        for name, value in expected.sent
        if name not in said
        and name != "x-format"  # "A default backend in place of a Service gets no X-Format"
    )
    location = comparable(expected.location)
    location = re.sub(r"(=https?://[A-Za-z0-9.-]*)[.](?=:|%2F)", r"\1", location)  # of a sign-in
    response = tuple(
        one
        for one in expected.response
        if expected.backend and one[0] == "set-cookie" and one[1] not in dict(AUTH_ANSWER).values()
    )
    return replace(expected, backend=backend, sent=sent, location=location, response=response)


def is_unsafe(target: str) -> bool:
    """A rewritten target for which edgefast answers 500."""
    return re.search("//|/[.]{1,2}(/|$)", target.partition("?")[0]) is not None


def comparable(location: str) -> str:
    """A Location with its host in lower case, as nginx writes it in some, and without the final dot of the host."""
    scheme, mark, rest = location.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{without_dot(host.lower())}{slash}{path}"


def without_dot(host: str) -> str:
    """A host without its final dot: edgefast writes it so in a Location and in the Host for backends."""
    name, colon, port = host.partition(":")
    return f"{name.removesuffix('.')}{colon}{port}"


class _Refused(Annotations):
    """The annotations of an Ingress whose locations edgefast refuses with 503."""

    def closed(self) -> str:
        return "edgefast does not serve its access rules"


class _Evaluator(Evaluator):
    """The evaluator with access before endpoints: nginx answers 503 for a Service without endpoints first, edgefast checks access."""

    _all_up = False

    def answer(self, request: Request) -> Answer:
        found = super().answer(request)
        steps = ("backend", "default backend", "no endpoints")
        if found.step in steps and self._has_denylist_alone(request):
            raise Unknown  # `satisfy: any` with a denylist alone answers 403
        if found.step not in ("no endpoints", "default page"):
            return found
        self._all_up = True
        behind = super().answer(request)
        self._all_up = False
        if behind.access in ("unauthorized", "forbidden"):
            return behind
        return behind if behind.backend and is_unsafe(behind.target) else found

    def _has_denylist_alone(self, request: Request) -> bool:
        host = self.hosts.find(name_of_host(request.host))
        served = match(host, normalise(request.target)).served
        owner = served.location.owner
        if owner is None or owner.text("satisfy") != "any":
            return False
        denied = owner.networks("denylist-source-range")
        listed = self.objects.setting("denylist-source-range")
        asks = owner.text("auth-type") or external_of(served.location, self.objects)
        return bool(denied or listed) and not (needs_login(served, self.objects) and asks)

    def _is_up(self, upstream: Upstream) -> bool:
        return self._all_up or super()._is_up(upstream)


def evaluate(objects: Objects) -> Evaluator:
    """An evaluator for which the locations that edgefast refuses are closed: the comparison asserts their 503."""
    made, plain = _Evaluator(objects), Evaluator(objects)
    for host in made.hosts.hosts.values():
        for one in host.locations:
            if one.owner is not None and is_refused(one, host, plain):
                one.owner = _Refused(one.owner.ingress, made.objects)
    return made


HOW: dict[str, Any] = {
    "fields": FIELDS,
    "without": {name: values for name, (values, _) in LEFT_OUT.items()},
    "evaluate": evaluate,
    "prepare": prepare,
    "reduce": reduced,
}


@pytest.mark.parametrize("first", range(0, 80, 10))
def test_no_difference(first: int) -> None:
    compared = compare(serve, range(first, first + 10), 100, **HOW)
    assert compared > 300


def prepare_http10(request: Request) -> Request:
    """Half of them have no Host."""
    request = replace(prepare(request), http10=True)
    return replace(request, host="", sni="") if len(request.target) % 2 else request


@pytest.mark.parametrize("first", range(100, 120, 10))
def test_no_difference_in_http10(first: int) -> None:
    how = {**HOW, "prepare": prepare_http10}
    assert compare(serve, range(first, first + 10), 100, **how) > 300


def _served(annotations: dict[str, str], data: dict[str, str]) -> Answer:
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "namespace": "shop",
            "name": "one",
            "annotations": {PREFIX + name: value for name, value in annotations.items()},
        },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [
                {
                    "host": "a.test",
                    "http": {
                        "paths": [
                            {
                                "path": "/foo(.*)",
                                "pathType": "ImplementationSpecific",
                                "backend": {"service": {"name": "one", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
        },
    }
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "ingress-nginx", "name": "ingress-nginx-controller"},
        "data": data,
    }
    return serve([*standard_objects(), ingress, settings])(Request(host="a.test", target="/foo"))


def test_the_location_is_open_without_a_refused_annotation() -> None:
    assert _served({"use-regex": "true"}, {}).status == 200


@pytest.mark.parametrize("annotations", CLOSING_ANNOTATIONS, ids=lambda one: next(iter(one)))
def test_a_refused_annotation_answers_503(annotations: dict[str, str]) -> None:
    assert _served({"use-regex": "true", **annotations}, {}).status == 503


@pytest.mark.parametrize(("name", "value"), CLOSING_SETTINGS.items())
def test_a_refused_setting_answers_503(name: str, value: str) -> None:
    assert _served({"use-regex": "true"}, {name: value}).status == 503


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(2000, 2440, 20))
def test_no_difference_over_many_sets(first: int) -> None:
    compared = compare(serve, range(first, first + 20), 500, **HOW)
    assert compared > 4000


def _ingress(
    name: str,
    host: str,
    path: str,
    annotations: dict[str, str] | None = None,
    kind: str = "Prefix",
    **spec: Any,
) -> dict[str, Any]:
    backend = {"service": {"name": "one", "port": {"number": 80}}}
    rule: dict[str, Any] = {
        "http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}
    }
    if host:
        rule["host"] = host
    marked = {PREFIX + key: value for key, value in (annotations or {}).items()}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"namespace": "shop", "name": name, "annotations": marked},
        "spec": {"ingressClassName": "nginx", "rules": [rule], **spec},
    }


_AUTH = "http://auth.web/check"
_ALIASES = {"server-alias": "alias.test, *.alias.test, a.test"}
_WILDCARD = [{"hosts": ["a.test"], "secretName": "wildcard"}]
_CLOSED = {"custom-headers": "web/missing"}
#: Small sets whose answers need a rule of their own, and a request: host, target, headers.
SMALL: dict[str, tuple[list[dict[str, Any]], dict[str, str], tuple[str, str, dict[str, str]]]] = {
    "a closed location leaves the path without its slash to a shorter prefix": (
        [_ingress("a", "a.test", "/dir/", _CLOSED), _ingress("b", "a.test", "/")],
        {},
        ("a.test", "/dir", {}),
    ),
    "a closed location leaves the path without its slash to nobody": (
        [_ingress("a", "a.test", "/dir/", _CLOSED)],
        {},
        ("a.test", "/dir", {}),
    ),
    "an open location of the same path redirects": (
        [
            _ingress("a", "a.test", "/dir/", {"auth-url": _AUTH}),
            _ingress("b", "a.test", "/"),
        ],
        {},
        ("a.test", "/dir", {}),
    ),
    "the app-root of a location that another one with the same expression hides": (
        [
            _ingress("a", "a.test", "/"),
            _ingress("b", "a.test", "/", {"use-regex": "true", "app-root": "/app"}, kind="Exact"),
        ],
        {},
        ("a.test", "/", {}),
    ),
    "the check of $host goes to the Service of another Ingress": (
        [
            _ingress("a", "a.test", "/", {"auth-url": "https://$host/oauth2/auth"}),
            _ingress("b", "a.test", "/oauth2"),
        ],
        {},
        ("a.test", "/x", {}),
    ),
    "the check of $host with access rules at its path closes the location": (
        [
            _ingress("a", "a.test", "/", {"auth-url": "https://$host/oauth2/auth"}),
            _ingress("b", "a.test", "/oauth2", {"denylist-source-range": "10.0.0.0/8"}),
        ],
        {},
        ("a.test", "/x", {}),
    ),
    "an auth-url that is not valid closes no-auth-locations": (
        [_ingress("a", "a.test", "/.well-known/acme-challenge", {"auth-url": "http:///x"})],
        {},
        ("a.test", "/.well-known/acme-challenge/x", {}),
    ),
    "a method that is not valid closes no-auth-locations": (
        [
            _ingress(
                "a",
                "a.test",
                "/.well-known/acme-challenge",
                {"auth-url": _AUTH, "auth-method": "post"},
            )
        ],
        {},
        ("a.test", "/.well-known/acme-challenge/x", {}),
    ),
    "the name without www comes before an alias": (
        [
            _ingress("a", "www.a.test", "/", {"from-to-www-redirect": "true"}),
            _ingress("b", "b.test", "/", _ALIASES),
        ],
        {},
        ("a.test", "/x", {}),
    ),
    "an alias of the catch-all host comes before a wildcard host": (
        [_ingress("a", "", "/x", _ALIASES), _ingress("b", "*.test", "/")],
        {},
        ("alias.test", "/y", {}),
    ),
    "the certificate of a wildcard alias covers one label": (
        [
            _ingress(
                "a",
                "*.w.test",
                "/",
                _ALIASES,
                tls=[{"hosts": ["*.w.test"], "secretName": "wildcard"}],
            ),
        ],
        {},
        ("two.one.alias.test", "/", {}),
    ),
    "an alias of two hosts has the certificate of the last host": (
        [
            _ingress(name, host, "/", {"server-alias": "*.alias.test"}, tls=_WILDCARD)
            for name, host in (("a", "www.c.test"), ("b", "x.w.test"))
        ],
        {},
        ("one.alias.test", "/", {}),
    ),
    "an alias of two hosts has no certificate if the last host has none for it": (
        [
            _ingress(name, host, "/", {"server-alias": "*.alias.test"}, tls=_WILDCARD)
            for name, host in (("a", "x.w.test"), ("b", "z.test"))
        ],
        {},
        ("one.alias.test", "/", {}),
    ),
    "enable-real-ip decides for lists of addresses": (
        [_ingress("a", "a.test", "/", {"denylist-source-range": "10.0.0.0/8"})],
        {"enable-real-ip": "true"},
        ("a.test", "/", {"X-Forwarded-For": "10.1.1.1"}),
    ),
    "the redirect to the slash has the scheme of the connection": (
        [_ingress("a", "a.test", "/dir/")],
        {"use-forwarded-headers": "true"},
        ("a.test", "/dir", {"X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"}),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_set_is_served_as_ingress_nginx_does(name: str) -> None:
    ingresses, data, (host, target, headers) = SMALL[name]
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "ingress-nginx", "name": "ingress-nginx-controller"},
        "data": data,
    }
    objects = [*standard_objects(), *ingresses, settings]
    request = Request(host=host, target=target, headers=tuple(headers.items()))
    expected, got = reduced(evaluate(objects).answer(request)), serve(objects)(request)
    for field in FIELDS:
        assert getattr(got, field) == getattr(expected, field), field
