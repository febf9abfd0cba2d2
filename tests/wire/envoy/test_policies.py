"""The same policies in Envoy give the same answers, but for differences.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from origin.answers import response
from origin.message import Message
from origin.recording import RecordingOrigin
from wire.envoy.asking import Answer, answer_as_told, ask
from wire.envoy.differences import DIFFERENCES
from wire.envoy.envoy_proxy import Envoy
from wire.envoy.more_cases import CASES, Case
from wire.harness import objects as make
from wire.harness.site import Site

Ports = dict[str, tuple[int, int]]


def judge(message: Message) -> bytes:
    """The authorisation service, by the header x-token."""
    said = (message.value(b"x-token") or b"").decode()
    if said in ("good", "quiet"):
        return response(b"", 200, [("x-user", "me"), ("x-other", "no")] if said == "good" else [])
    if said == "redirect":
        return response(b"", 302, [("location", "https://login.test/")])
    status = int(said) if said.isdigit() else 403
    if status == 204:
        return b"HTTP/1.1 204 No\r\n\r\n"
    return response(b"no entry", status, [("content-type", "text/plain"), ("x-why", "token")])


def _our_objects(case: Case) -> list[make.Object]:
    host = f"{case.name}.test"
    target = {"group": make.GROUP, "kind": "HTTPRoute", "name": case.name}
    made: list[make.Object] = list(case.objects)
    filters: list[make.Object] = []
    backends: tuple[str, ...] = ("backend",)
    if case.route_filter:
        reference = {"group": make.EDGE, "kind": "HTTPRouteFilter", "name": case.name}
        filters = [{"type": "ExtensionRef", "extensionRef": reference}]
        made.append(_own("HTTPRouteFilter", case.name, case.route_filter))
        backends = () if "directResponse" in case.route_filter else backends
    for kind, spec in (("SecurityPolicy", case.security), ("BackendTrafficPolicy", case.traffic)):
        if spec:
            made.append(_own(kind, case.name, {"targetRefs": [target], **spec}))
    rule = make.rule(*backends, **({"filters": filters} if filters else {}))
    return [*made, make.route(case.name, [rule], [host])]


def _own(kind: str, name: str, spec: make.Object) -> make.Object:
    return {
        "apiVersion": f"{make.EDGE}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def ports() -> Iterator[Ports]:
    """Of each case: ours, Envoy's."""
    with RecordingOrigin(answer_as_told) as backend, RecordingOrigin(judge) as auth:
        objects = [one for case in CASES for one in _our_objects(case)]
        objects += make.service("backend", [("127.0.0.1", backend.port)])
        objects += make.service("auth", [("127.0.0.1", auth.port)])
        theirs = [(case.name, list(case.filters), case.route) for case in CASES]
        clusters = {"backend": backend.port, "auth": auth.port}
        with Site(objects) as site, Envoy(theirs, clusters) as envoy:
            yield {case.name: (site.port, envoy.ports[case.name]) for case in CASES}


def _show(one: Answer) -> dict[str, Any]:
    return {
        "status": one.status,
        "headers": dict(one.headers),
        "body": one.body[:40],
        "asked": one.asked,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answers_are_the_same(case: Case, ports: Ports) -> None:
    """A difference that is gone has to leave the table, too."""
    ours, theirs = ports[case.name]
    host = f"{case.name}.test"
    expected = DIFFERENCES.get(case.name, {})
    names = [str(one) for one in case.asks]
    unknown = expected.keys() - set(names)
    assert not unknown, "no such question"
    wrong = []
    for one in case.asks:
        mine, other = ask(ours, host, one), ask(theirs, host, one)
        found = _difference(mine, other)
        if found != (expected[str(one)].what if str(one) in expected else ""):
            wrong.append((str(one), found, _show(mine), _show(other)))
    assert not wrong, "\n".join(map(str, wrong))


def _difference(mine: Answer, other: Answer) -> str:
    """In short: what ours is, and what Envoy's; "": they are the same."""
    if mine.status != other.status:
        return f"{mine.status} {other.status}"
    parts = []
    for name in sorted({name for name, _ in (*mine.headers, *other.headers)}):
        one, two = (
            [value for key, value in answer.headers if key == name] for answer in (mine, other)
        )
        if one != two:
            parts.append(f"{name}: {', '.join(one) or '-'} | {', '.join(two) or '-'}")
    if mine.body != other.body and not any(one.startswith("content-encoding") for one in parts):
        parts.append(f"body: {mine.body[:30] or '-'} | {other.body[:30] or '-'}")
    if mine.asked != other.asked:
        one, two = (sorted(set(a.asked) - set(b.asked)) for a, b in ((mine, other), (other, mine)))
        parts.append(f"asked: {', '.join(one) or '-'} | {', '.join(two) or '-'}")
    return "; ".join(parts)


def test_every_difference_has_its_case() -> None:
    assert DIFFERENCES.keys() <= {case.name for case in CASES}
    assert all(one.why for table in DIFFERENCES.values() for one in table.values())


def test_questions_are_told_apart() -> None:
    for case in CASES:
        names = [str(one) for one in case.asks]
        assert len(names) == len(set(names)), case.name
