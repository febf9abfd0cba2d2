"""Compare a server of Ingresses with the naive evaluator, and print the first difference, minimised.

In: `serve`, a function of objects that returns a function of requests; a range of seeds. Out: the number of requests that were
compared, or a `Difference` with the smallest objects and request that still show it. The server may know less than an `Answer`
has: `fields` lists what is compared, and `serve` may raise `Unknown` for a request that it cannot judge.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import yaml

from ingress.generate import Generator
from ingress.message import Answer, Request
from ingress.naive import Evaluator
from ingress.naive.canary import UndecidedShare
from ingress.nginx_servers import without_duplicates

Objects = list[dict[str, Any]]
Ask = Callable[[Request], Answer]
Serve = Callable[[Objects], Ask]
Evaluate = Callable[[Objects], Evaluator]

#: All that real nginx tells.
FIELDS = ("status", "location", "backend", "target", "sent", "response", "certificate", "auth")


class Unknown(Exception):
    """The server cannot judge this request."""


@dataclass(frozen=True)
class Difference:
    """What differs, and where."""

    objects: tuple[dict[str, Any], ...]
    request: Request
    expected: Answer
    got: Answer
    fields: tuple[str, ...]

    def __str__(self) -> str:
        shown = [one for one in self.objects if one["kind"] in ("Ingress", "ConfigMap")]
        lines = [yaml.safe_dump_all(shown, sort_keys=False, default_flow_style=None, width=110)]
        lines.append(f"{self.request}")
        for name in self.fields:
            lines.append(f"{name} expected: {getattr(self.expected, name)!r}")
            lines.append(f"{name} got:      {getattr(self.got, name)!r}")
        lines.append(f"decided by: {self.expected.step}")
        return "\n".join(lines)


def compare(
    serve: Serve,
    seeds: Iterable[int],
    requests: int,
    *,
    size: int = 12,
    without: Mapping[str, str] = MappingProxyType({}),
    evaluate: Evaluate = Evaluator,
    fields: tuple[str, ...] = FIELDS,
    prepare: Callable[[Request], Request] = lambda request: request,
    reduce: Callable[[Answer], Answer] = lambda answer: answer,
) -> int:
    """Compare over seeds; the number of requests. Raises AssertionError with the first difference.

    `without` leaves out annotations and settings that the server does not serve, by the expression of their values. `evaluate` gives the evaluator of a set. `prepare` changes requests, `reduce` expected answers, for a server that does not take or tell all of them.
    """
    compared = 0
    for seed in seeds:
        generator = Generator(seed, size, without)
        objects = without_duplicates(without_circular_canaries(generator.objects()))
        asked = [prepare(one) for one in generator.requests(requests)]
        found = find_difference(serve, objects, asked, fields, reduce, evaluate)
        if isinstance(found, Difference):
            raise AssertionError(f"seed {seed}:\n{minimise(serve, found, reduce, evaluate)}")
        compared += found
    return compared


def without_circular_canaries(objects: Objects) -> Objects:
    """Leave out canaries whose Service is the default backend of another Ingress.

    ingress-nginx removes the upstream of such a canary, and the other Ingress answers 503. edgefast and the evaluator serve it.
    """
    ingresses = [one for one in objects if one["kind"] == "Ingress"]
    primary = {_default_service(one) for one in ingresses if not _is_canary(one)} - {None}
    return [
        one
        for one in objects
        if not (one["kind"] == "Ingress" and _is_canary(one) and _default_service(one) in primary)
    ]


def _is_canary(ingress: dict[str, Any]) -> bool:
    annotations = ingress["metadata"].get("annotations") or {}
    return annotations.get("nginx.ingress.kubernetes.io/canary") == "true"


def _default_service(ingress: dict[str, Any]) -> tuple[str, str] | None:
    backend = ingress["spec"].get("defaultBackend")
    return (ingress["metadata"]["namespace"], backend["service"]["name"]) if backend else None


def find_difference(
    serve: Serve,
    objects: Objects,
    requests: Iterable[Request],
    fields: tuple[str, ...],
    reduce: Callable[[Answer], Answer],
    evaluate: Evaluate = Evaluator,
) -> Difference | int:
    """The first difference, or the number of requests that were compared."""
    evaluator, ask = evaluate(objects), serve(objects)
    compared = 0
    for request in requests:
        try:
            expected, got = reduce(evaluator.answer(request)), ask(request)
        except (Unknown, UndecidedShare):
            continue
        compared += 1
        other = tuple(name for name in fields if getattr(expected, name) != getattr(got, name))
        if other:
            return Difference(tuple(objects), request, expected, got, other)
    return compared


def minimise(
    serve: Serve,
    found: Difference,
    reduce: Callable[[Answer], Answer],
    evaluate: Evaluate = Evaluator,
) -> Difference:
    """Leave out Ingresses, annotations, rules, paths and headers as long as the same fields differ."""
    fields, smaller = found.fields, True
    while smaller:
        smaller = False
        for objects, request in _smaller(found):
            try:
                other = find_difference(serve, objects, [request], fields, reduce, evaluate)
            except Exception:  # an object that became senseless is no smaller difference
                continue
            if isinstance(other, Difference) and other.fields == fields:
                found, smaller = other, True
                break
    return found


def _smaller(found: Difference) -> Iterator[tuple[Objects, Request]]:
    objects = list(found.objects)
    for number, one in enumerate(objects):
        if one["kind"] in ("Ingress", "ConfigMap"):
            yield objects[:number] + objects[number + 1 :], found.request
    for number, one in enumerate(objects):
        if one["kind"] == "Ingress":
            for changed in _smaller_ingress(one):
                yield [*objects[:number], changed, *objects[number + 1 :]], found.request
    headers = found.request.headers
    for number in range(len(headers)):
        fewer = headers[:number] + headers[number + 1 :]
        yield objects, replace(found.request, headers=fewer)
    if found.request.body:
        yield objects, replace(found.request, body=0, chunked=False, method="GET")


def _smaller_ingress(ingress: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ingress["metadata"].get("annotations") or {}:
        changed = copy.deepcopy(ingress)
        del changed["metadata"]["annotations"][name]
        yield changed
    for field in ("tls", "defaultBackend"):
        if field in ingress["spec"]:
            changed = copy.deepcopy(ingress)
            del changed["spec"][field]
            yield changed
    for number, rule in enumerate(ingress["spec"].get("rules") or []):
        changed = copy.deepcopy(ingress)
        del changed["spec"]["rules"][number]
        if changed["spec"]["rules"]:
            yield changed
        for position in range(len((rule.get("http") or {}).get("paths") or [])):
            changed = copy.deepcopy(ingress)
            del changed["spec"]["rules"][number]["http"]["paths"][position]
            if changed["spec"]["rules"][number]["http"]["paths"]:
                yield changed
