"""Cases: own examples of each annotation and setting, named after the e2e suite of ingress-nginx.

A file has one or more documents: `objects` (besides `generate.standard_objects`; apiVersion is added by kind), `requests` with what
is expected, and `nginx` with the reason why real nginx is not asked. `expect`: `status`, and optionally `location`, `backend`
(namespace/Service:port, or false), `canary`, `target`, `host`, `sent` (request headers), `absent` (request headers), `response`,
`without` (response headers), `certificate`, `auth` (headers of the call, or false), `undecided` (a share decides).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ingress.message import Answer, Request
from ingress.standard_objects import standard_objects

FOLDER = Path(__file__).parent / "cases"
_VERSIONS = {
    "Ingress": "networking.k8s.io/v1",
    "IngressClass": "networking.k8s.io/v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "EndpointSlice": "discovery.k8s.io/v1",
}


@dataclass(frozen=True)
class Case:
    """Objects with requests in order, and what is expected of each."""

    name: str
    objects: list[dict[str, Any]]
    requests: list[tuple[Request, dict[str, Any]]]
    without_nginx: str  # why real nginx is not asked; "": it is


def read_cases() -> Iterator[Case]:
    """All cases."""
    for path in sorted(FOLDER.rglob("*.yaml")):
        name = str(path.relative_to(FOLDER).with_suffix(""))
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            own = [{"apiVersion": _VERSIONS[one["kind"]], **one} for one in document["objects"]]
            requests = [
                (_request(dict(one["request"])), one["expect"]) for one in document["requests"]
            ]
            yield Case(
                f"{name}-{number}", standard_objects() + own, requests, document.get("nginx", "")
            )


def _request(raw: dict[str, Any]) -> Request:
    headers = tuple((name, str(value)) for name, value in raw.pop("headers", {}).items())
    port = 8443 if raw.get("scheme") == "https" else 8080
    return Request(**{"port": port, **raw}, headers=headers)


def check(expected: dict[str, Any], answer: Answer) -> None:
    """Compare what the case names."""
    sent, response = dict(answer.sent), dict(answer.response)
    assert answer.status == expected["status"], answer
    assert answer.location == expected.get("location", ""), answer
    if "backend" in expected:
        backend = answer.backend
        found = backend and f"{backend.namespace}/{backend.service}:{backend.port}"
        assert found == (expected["backend"] or None), answer
    if "canary" in expected:
        assert answer.backend is not None
        assert answer.backend.canary == expected["canary"]
    assert answer.target == expected.get("target", answer.target), answer
    assert sent.get("host") == expected.get("host", sent.get("host")), answer
    assert {**sent, **expected.get("sent", {})} == sent, answer
    assert {**response, **expected.get("response", {})} == response, answer
    assert not set(expected.get("absent", ())) & set(sent), answer
    assert not set(expected.get("without", ())) & set(response), answer
    assert answer.certificate == expected.get("certificate", answer.certificate), answer
    if "auth" in expected:
        assert (answer.auth is not None) == bool(expected["auth"]), answer
        given = dict(answer.auth.headers) if answer.auth else {}
        assert {**given, **(expected["auth"] or {})} == given, answer
