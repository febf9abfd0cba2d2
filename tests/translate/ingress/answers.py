"""Answers: what requests to Ingresses get, as text to compare.

In: `cases/<case>.in.yaml`: a first document `case:` with requests and settings, then objects. Requests are "GET URL",
with headers after " | ". Out: YAML with one line for each request, and the problems. Every Service of a case gets an endpoint,
unless its label `endpoints` is "none".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.explain import serve_translation
from edgefast.explain.explain import explain
from edgefast.explain.explanation import Answer, Explanation
from edgefast.explain.render import render_explanation
from edgefast.explain.request_spec import read_request_spec
from edgefast.providers.added_backends import make_slice
from edgefast.translate import Settings, translate
from edgefast.translate.settings import IngressSettings
from edgefast.translate.translation import Translation

HERE = Path(__file__).parent
NGINX = IngressSettings(classes=("nginx",))
BASES = HERE.parent / "bases"


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first document of an input."""

    about: str
    requests: tuple[str, ...]
    base: tuple[str, ...] = ()
    ingress: IngressSettings = NGINX
    #: Paths of forwarded requests and headers to backends are shown, too.
    heads: bool = False
    #: Limits that a request counts in are shown, too.
    limits: bool = False


def render(path: Path) -> str:
    """Return the answers of a case as YAML."""
    head, _, body = path.read_text().partition("\n---\n")
    case = msgspec.convert(yaml.safe_load(head)["case"], Case)
    translation, refused = translate_documents(body, case.ingress, case.base, path.name)
    answers = {
        one: answer(translation, one, heads=case.heads, limits=case.limits) for one in case.requests
    }
    problems = [f"{one.severity}: {one.line()}" for one in (*refused, *translation.problems)]
    return _dump({"answers": answers}) + _dump({"problems": problems})


def translate_documents(
    text: str,
    ingress: IngressSettings = NGINX,
    base: tuple[str, ...] = (),
    name: str = "case.yaml",
) -> tuple[Translation, tuple[Any, ...]]:
    """Return the translation of documents, and the problems of their decoding."""
    objects = []
    for one in base:
        objects += decode_documents((BASES / f"{one}.yaml").read_bytes(), f"{one}.yaml").objects
    decoded = decode_documents(text.encode(), name)
    closed = [one.closed for one in decoded.refused if one.closed is not None]
    snapshot = Snapshot.of([*objects, *decoded.objects, *closed])
    slices = [
        make_slice(one, "127.0.0.1", 8080)
        for one in snapshot.services.values()
        if one.metadata.labels.get("endpoints") != "none" and one.spec.type != "ExternalName"
    ]
    settings = Settings(ingress=ingress)
    return translate(snapshot.replace(changed=slices), settings), decoded.problems


def answer(
    translation: Translation, request: str, *, heads: bool = False, limits: bool = False
) -> Any:
    """Return the answers to one request; a part "client ADDRESS" is the client's address."""
    line, *headers = request.split(" | ")
    method, _, url = line.partition(" ")
    sources = [one.partition(" ")[2] for one in headers if one.startswith("client ")]
    headers = [one for one in headers if not one.startswith("client ")]
    spec = read_request_spec(method, url, headers, *sources)
    found = explain(serve_translation(translation), spec)
    texts = [_write(one, found) for one in found.answers]
    where = found.rule.place if found.rule is not None else None
    shown: dict[str, Any] = {"by": f"{where.object} {where.path}".strip()} if where else {}
    shown["gets"] = texts[0] if len(texts) == 1 else texts
    locations = [one for one in found.filters if "response header location" in one]
    if locations:
        shown["filters"] = locations
    if found.policies:
        shown["policies"] = [f"{one.name} {one.verdict}" for one in found.policies]
    if limits and found.limits:
        shown["limits"] = [
            line.strip() for line in render_explanation(found) if "Ingress-limits#" in line
        ]
    rates = [one for one in found.notes if "each response has" in one]
    if rates:
        shown["notes"] = rates
    if heads:
        shown["heads"] = [list(one.head) for one in found.backends if one.head]
        shown["filters"] = list(found.filters)
        shown["traffic"] = [f"{one.name} {one.value}" for one in found.traffic]
    return shown


def _write(one: Answer, found: Explanation) -> str:
    share = "" if one.share == 100.0 else f"{one.share:g}% "
    if one.kind == "backend":
        head = next((part.head for part in found.backends if part.name == one.backend), ())
        target = head[0].split(" ")[1] if head else ""
        return f"{share}{one.backend} {target}".strip()
    text = f"{share}{one.status or one.kind}"
    return f"{text} {one.location}" if one.location else f"{text} ({one.check})"


def _dump(value: Any) -> str:
    text: str = yaml.safe_dump(
        value, sort_keys=False, default_flow_style=False, width=4096, allow_unicode=True
    )
    return text
