"""What the product serves for Ingresses against the naive evaluator, without sockets: `explain` on the compiled table.

Compared: status, Location, the Service, the request target and Host at the backend. The heavy run is 200 sets with 300 requests each.
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
from edgefast.translate import Settings, translate
from ingress.differ import Ask, Objects, Unknown, compare
from ingress.generate import tls_secret
from ingress.message import BACKEND_STATUS, Answer, Backend, Request, answer_auth
from ingress.naive.objects import CONTROLLER

pytestmark = [
    pytest.mark.pure,
    pytest.mark.skipif(
        ("networking.k8s.io", "Ingress") not in KINDS,
        reason="the decoder does not know the kind Ingress",
    ),
]

#: `spec.controller` of the classes that edgefast serves.
OURS = "gateway.edge.io/ingress-controller"
#: Annotations and settings that the product refuses by closing the location or the Ingress.
REFUSED: frozenset[str] = frozenset()
FIELDS = ("status", "location", "backend", "target", "sent")


def serve(objects: Objects) -> Ask:
    """The table that the product compiles for these objects."""
    from edgefast.translate.settings import IngressSettings

    decoded = [
        decode_api_object(_adopted(one), one["kind"])
        for one in (*objects, tls_secret("ingress-nginx", "default", "ingress.local"))
    ]
    ingress = IngressSettings(certificate="ingress-nginx/default")
    settings = Settings(standalone=True, ingress=ingress)
    served = serve_translation(translate(Snapshot.of(decoded), settings))

    def ask(request: Request) -> Answer:
        if not any(one["kind"] == "Ingress" for one in objects):
            raise Unknown  # without any Ingress the product opens no port
        found = explain(served, _spec(request))
        answer = found.answers[0]
        if answer.asks and not 200 <= answer_auth(request.headers)[0] < 300:
            raise Unknown  # the explanation leaves open what the service answers
        if answer.kind != "backend":
            return Answer(answer.status, answer.location)
        part = next(one for one in found.backends if one.name == answer.backend)
        _, space, name, port = part.name.split("/")
        lines = (
            part.head[0].split(" ")[1],
            dict(line.split(": ", 1) for line in part.head[1:] if line),
        )
        target, headers = lines
        host = next(value for key, value in headers.items() if key.lower() == "host")
        return Answer(
            200, backend=Backend(space, name, int(port)), target=target, sent=(("host", host),)
        )

    return ask


def _adopted(item: dict[str, object]) -> dict[str, object]:
    changed = copy.deepcopy(item)
    if item["kind"] == "IngressClass" and changed["spec"] == {"controller": CONTROLLER}:
        changed["spec"] = {"controller": OURS}
    return changed


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
    )


def prepare(request: Request) -> Request:
    """Standard ports, no body, and a backend that answers 200."""
    headers = tuple(one for one in request.headers if one[0] != BACKEND_STATUS)
    port = 443 if request.scheme == "https" else 80
    return replace(request, headers=headers, port=port, body=0, chunked=False)


def is_plain(request: Request) -> bool:
    """No request that a proxy may refuse or normalise by a rule of its own: other bytes in the path, `//`, `/.`, header names."""
    path = request.target.partition("?")[0]
    return re.fullmatch(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?", path) is not None and all(
        "_" not in name for name, _ in request.headers
    )


def serve_plain(objects: Objects) -> Ask:
    """The same, for plain requests only."""
    ask = serve(objects)

    def ask_plain(request: Request) -> Answer:
        if not is_plain(request):
            raise Unknown
        return ask(request)

    return ask_plain


def reduced(expected: Answer) -> Answer:
    """What an explanation knows of an answer."""
    backend = expected.backend and replace(expected.backend, canary=False)
    return replace(
        expected, backend=backend, sent=tuple(one for one in expected.sent if one[0] == "host")
    )


HOW: dict[str, Any] = {
    "fields": FIELDS,
    "without": REFUSED,
    "prepare": prepare,
    "reduce": reduced,
}


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_difference_for_plain_requests(first: int) -> None:
    compared = compare(serve_plain, range(first, first + 10), 100, **HOW)
    assert compared > 300


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_no_difference(first: int) -> None:
    compared = compare(serve, range(first, first + 10), 100, **HOW)
    assert compared > 500


@pytest.mark.heavy
@pytest.mark.parametrize("first", range(2000, 2200, 20))
def test_no_difference_over_many_sets(first: int) -> None:
    compared = compare(serve, range(first, first + 20), 300, **HOW)
    assert compared > 3000
