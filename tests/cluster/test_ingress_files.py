"""Ingresses of other projects, file by file: served whole, or with the reasons that ingress_files.txt lists.

In: the manifests of `cluster.tools.ingress_files`, with the Services and Secrets that they refer to. The list has one line for each
file and one for each problem of an Ingress: an "error" is not served or answers 503, a "warning" has another effect or none. Each path
of an Ingress without an error gets the answer that the evaluator of ingress-nginx expects: status, Location, Service, path and Host.
Must never: contain text of those files.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.tools.ingress_files import ingress_files
from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.explain import serve_translation
from edgefast.translate import Settings, translate
from edgefast.translate.settings import IngressSettings
from ingress.comparison import wrong_kind
from ingress.differ import Ask
from ingress.message import Request
from ingress.naive.canary import UndecidedShare
from ingress.naive.objects import CLASS_ANNOTATION, CONTROLLER, PREFIX
from ingress.standard_objects import tls_secret
from ingress.test_served import ask_table, evaluate, reduced
from wire.harness.certificates import Authority

LIST = Path(__file__).with_name("ingress_files.txt")
_HEAD = "# Made by `pytest -m cluster tests/cluster/test_ingress_files.py --update-goldens`; do not edit.\n"
_SLICE = "kubernetes.io/service-name"
_HASH = "{SHA}" + base64.b64encode(hashlib.sha1(b"password").digest()).decode()
#: Redirects with these statuses have a Location (docs/guides/ingress.md).
_WITH_LOCATION = (300, 304, 305, 306)
_AUTHORITY = Authority().pem.decode()

#: What a reader of a manifest replaces, such as __INGRESS_HOST__.
_PLACEHOLDER = re.compile(r"__([A-Z_]+)__|<(your domain)>")

Document = dict[str, Any]


class Surroundings:
    """Makes the class, Services, endpoints and Secrets that Ingresses refer to and their file lacks."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = list(documents)
        self._ingresses = [one for one in self._documents if one["kind"] == "Ingress"]
        self._here = {(one["kind"], *_name(one)) for one in self._documents}

    def make(self) -> list[Document]:
        """Return what is missing."""
        made = [*self._classes(), *self._services(), *self._secrets()]
        return [one for one in made if (one["kind"], *_name(one)) not in self._here]

    def _classes(self) -> Iterator[Document]:
        for name in sorted({_class_of(one) for one in self._ingresses}):
            spec = {"controller": CONTROLLER}
            yield _object("networking.k8s.io/v1", "IngressClass", "", name, spec=spec)

    def _services(self) -> Iterator[Document]:
        ports: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for one in self._ingresses:
            for service in _services_of(one):
                wanted = ports.setdefault((_name(one)[0], service["name"]), [])
                wanted += [one for one in _ports(service, len(wanted)) if one not in wanted]
        for one in self._documents:
            if one["kind"] == "Service":
                ports[_name(one)] = [{"name": "", **port} for port in one["spec"].get("ports", ())]
        sliced = {
            (_name(one)[0], (one["metadata"].get("labels") or {}).get(_SLICE))
            for one in self._documents
            if one["kind"] == "EndpointSlice"
        }
        for (space, name), found in ports.items():
            yield _object("v1", "Service", space, name, spec={"ports": found})
            if (space, name) not in sliced:
                yield _endpoints(space, name, found)

    def _secrets(self) -> Iterator[Document]:
        names: dict[tuple[str, str], set[str]] = {}
        for one in self._ingresses:
            for entry in one["spec"].get("tls") or ():
                if name := entry.get("secretName"):
                    hosts = entry.get("hosts") or _hosts(one)
                    names.setdefault((_name(one)[0], name), set()).update(hosts)
        for key, hosts in names.items():
            yield tls_secret(*key, *sorted(hosts))
        for one in self._ingresses:
            space = _name(one)[0]
            annotations = _annotations(one)
            is_map = annotations.get(PREFIX + "auth-secret-type") == "auth-map"
            users = {"user": _HASH} if is_map else {"auth": f"user:{_HASH}\n"}
            for key, data in (
                ("auth-secret", users),
                ("auth-tls-secret", {"ca.crt": _AUTHORITY}),
                ("proxy-ssl-secret", {"ca.crt": _AUTHORITY}),
            ):
                own, _, name = annotations.get(PREFIX + key, "").rpartition("/")
                if name:
                    yield _object("v1", "Secret", own or space, name, stringData=data)


def _name(one: Document) -> tuple[str, str]:
    return str(one["metadata"].get("namespace") or "default"), str(one["metadata"].get("name", ""))


def _annotations(one: Document) -> dict[str, str]:
    return one["metadata"].get("annotations") or {}


def _class_of(ingress: Document) -> str:
    return str(
        ingress["spec"].get("ingressClassName")
        or _annotations(ingress).get(CLASS_ANNOTATION)
        or "nginx"
    )


def _paths(ingress: Document) -> Iterator[tuple[str, Document]]:
    for rule in ingress["spec"].get("rules") or ():
        for path in (rule.get("http") or {}).get("paths") or ():
            yield rule.get("host", ""), path


def _hosts(ingress: Document) -> list[str]:
    return sorted({host for host, _ in _paths(ingress) if host}) or ["other.example"]


def _services_of(ingress: Document) -> Iterator[Document]:
    spec = ingress["spec"]
    backends = [spec["defaultBackend"]] if "defaultBackend" in spec else []
    backends += [path["backend"] for _, path in _paths(ingress)]
    yield from (one["service"] for one in backends if "service" in one)
    if name := _annotations(ingress).get(PREFIX + "default-backend"):
        yield {"name": name}


def _ports(service: Document, number: int) -> Iterator[dict[str, Any]]:
    port = service.get("port") or {"number": 80}
    if "number" in port:
        yield {"name": f"p{port['number']}", "port": port["number"]}
    else:
        yield {"name": port["name"], "port": 20000 + number}


def _endpoints(space: str, name: str, ports: list[dict[str, Any]]) -> Document:
    return _object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        space,
        f"{name}-1",
        labels={_SLICE: name},
        addressType="IPv4",
        ports=[{"name": one["name"], "port": 8080} for one in ports],
        endpoints=[{"addresses": ["192.0.2.1"]}],
    )


def _object(
    version: str,
    kind: str,
    space: str,
    name: str,
    labels: dict[str, str] | None = None,
    **content: Any,
) -> Document:
    metadata = {"name": name, "labels": labels or {}, **({"namespace": space} if space else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


def _fill(found: re.Match[str]) -> str:
    """Return a host name, or another name, for a placeholder."""
    return f"{(found[1] or found[2]).lower().replace('_', '-').replace(' ', '-')}.test"


def _judge(name: str, text: str) -> list[str]:
    """Return the lines of one file: problems of its Ingresses, and paths with another answer than ingress-nginx gives."""
    text = _PLACEHOLDER.sub(_fill, text)
    documents = [one for one in yaml.safe_load_all(text) if one and "kind" in one]
    made = Surroundings(documents).make()
    whole = [text, *(yaml.safe_dump(one) for one in made)]
    decoded = decode_documents("\n---\n".join(whole).encode(), name)
    closed = [one.closed for one in decoded.refused if one.closed is not None]
    ingress = IngressSettings(controllers=(CONTROLLER,))
    translation = translate(Snapshot.of([*decoded.objects, *closed]), Settings(ingress=ingress))
    problems = [
        one
        for one in (*decoded.problems, *translation.problems)
        if one.object is not None and one.object.kind == "Ingress"
    ]
    wrong = {one.object.name for one in problems if one.object and one.severity == "error"}
    fine = [one for one in documents if one["kind"] == "Ingress" and _name(one)[1] not in wrong]
    objects = [*documents, *made]
    ask = ask_table(serve_translation(translation), objects)
    warned = {one.object.name for one in problems if one.object} - wrong
    wrong_answers = _wrong_answers(fine, objects, ask, warned)
    return sorted({_line(one) for one in problems}) + list(wrong_answers)


def _line(one: Problem) -> str:
    assert one.object is not None
    return f"{one.severity} {one.object.name} {one.path}: {one.reason}"


def _wrong_answers(
    ingresses: list[Document], objects: list[Document], ask: Ask, warned: set[str]
) -> Iterator[str]:
    """Give the paths whose answer is not the one of the evaluator; a warning may be about headers."""
    evaluator = evaluate(objects)
    for one in ingresses:
        for host, path in _paths(one):
            request = Request(
                host=host.replace("*", "one") or "other.example", target=_target(path)
            )
            try:
                expected = reduced(evaluator.answer(request))
            except UndecidedShare:
                continue
            if expected.status in _WITH_LOCATION:
                expected = replace(expected, location=ask(request).location)
            kind = wrong_kind(expected, ask, request)
            if kind and not (kind == "headers" and _name(one)[1] in warned):
                yield f"wrong {kind} {_name(one)[1]}"


def _target(path: Document) -> str:
    """Return a path that a plain path or a simple expression matches."""
    plain = re.sub(r"[.][*+]", "x", path.get("path") or "/")
    return re.sub(r"[^A-Za-z0-9/_-]", "", plain) or "/"


def _render(found: dict[str, list[str]]) -> str:
    lines = [_HEAD]
    for name, problems in found.items():
        lines.append(f"{name}{'' if problems else ': served'}\n")
        lines += [f"  {one}\n" for one in problems]
    return "".join(lines)


def test_each_file_is_served_or_has_its_reasons(pytestconfig: pytest.Config) -> None:
    files = ingress_files()
    assert len(files) > 150
    assert sum(PREFIX in text for text in files.values()) > 120
    found = {name: _judge(name, text) for name, text in files.items()}
    if pytestconfig.getoption("--update-goldens"):
        LIST.write_text(_render(found))
    assert _render(found).splitlines() == LIST.read_text().splitlines()
    assert not [line for lines in found.values() for line in lines if line.startswith("wrong")]
