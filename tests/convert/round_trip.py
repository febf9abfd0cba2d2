"""Round trip: what requests get from Ingresses, and from the objects that they are converted to.

In: objects as YAML gives them. Out: `Sides`: the translation of each side, with the converted objects read again from their text.
`facts` are what requests and backends notice: status, Location, backend, share, the whole request head, filters, verdicts of
policies, timeouts, retries. Names and places in files are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from edgefast.api.decode.decode import decode_api_object, decode_documents
from edgefast.api.kinds import Object, ref_of
from edgefast.api.snapshot import Snapshot
from edgefast.convert.conversion import Conversion
from edgefast.convert.convert import convert_ingresses
from edgefast.convert.render import render_objects
from edgefast.diagnostics.problem import Problem
from edgefast.explain import RequestSpec, serve_translation
from edgefast.explain.explain import explain
from edgefast.explain.explanation import Explanation, LimitPart
from edgefast.explain.served_fleet import Served
from edgefast.translate import Settings, translate
from edgefast.translate.settings import IngressSettings
from edgefast.translate.translation import Translation
from ingress.message import Request
from ingress.naive.objects import CONTROLLER
from ingress.standard_objects import tls_secret

OURS = "gateway.edge.io/ingress-controller"
GATEWAY = ("edge-gateway-system", "ingress")
DEFAULT_CERTIFICATE = "ingress-nginx/default"


@dataclass(frozen=True)
class Sides:
    """Both sides of a conversion."""

    conversion: Conversion
    text: str
    before: Translation
    after: Translation
    unread: tuple[Problem, ...]  # problems of reading the text again

    def serve(self) -> tuple[Served, Served]:
        """Return the compiled tables."""
        return serve_translation(self.before), serve_translation(self.after)


def adopt(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the class of ingress-nginx as one of edgefast."""
    changed = copy.deepcopy(item)
    if item["kind"] == "IngressClass" and changed["spec"] == {"controller": CONTROLLER}:
        changed["spec"] = {"controller": OURS}
    return changed


def convert_objects(
    objects: Iterable[dict[str, Any]],
    *,
    standard: bool = False,
    ingress: IngressSettings | None = None,
) -> Sides:
    """Convert objects as an API server has them."""
    default = tls_secret("ingress-nginx", "default", "ingress.local")
    decoded = [decode_api_object(adopt(one), one["kind"]) for one in (*objects, default)]
    settings = Settings(ingress=ingress or IngressSettings(certificate=DEFAULT_CERTIFICATE))
    return convert_snapshot(decoded, settings, standard=standard)


def convert_snapshot(
    decoded: Sequence[Object], settings: Settings, *, standard: bool = False
) -> Sides:
    """Convert decoded objects; the side after the conversion has no Ingress."""
    snapshot = Snapshot.of(decoded)
    conversion = convert_ingresses(snapshot, settings, GATEWAY, standard=standard)
    text = render_objects(conversion.objects)
    again = decode_documents(text.encode(), "converted.yaml")
    others = [one for one in decoded if type(one).__name__ not in ("Ingress", "IngressClass")]
    closed = [one.closed for one in again.refused if one.closed is not None]
    after = Snapshot.of([*others, *again.objects, *closed])
    return Sides(
        conversion=conversion,
        text=text,
        before=translate(snapshot, settings),
        after=translate(after, settings),
        unread=again.problems,
    )


def without(sides: Sides, mark: str) -> Sides:
    """Return the sides with the converted objects changed: without objects of a kind, or without a field or annotation."""
    documents = [one for one in yaml.safe_load_all(sides.text) if one["kind"] != mark]
    text = yaml.safe_dump_all(_strip(one, mark) for one in documents)
    read = decode_documents(text.encode(), "changed.yaml")
    world = sides.after.memo.world
    removed = [ref_of(one.obj) for one in sides.after.memo.world.snapshot.loaded.values()]
    snapshot = world.snapshot.replace(removed=removed).replace(changed=list(read.objects))
    return replace(sides, after=translate(snapshot, world.settings))


def _strip(value: Any, mark: str) -> Any:
    if isinstance(value, dict):
        return {key: _strip(inner, mark) for key, inner in value.items() if key != mark}
    return [_strip(one, mark) for one in value] if isinstance(value, list) else value


def spec_of(request: Request) -> RequestSpec:
    """Return a request as explain takes it."""
    return RequestSpec(
        method=request.method,
        scheme=request.scheme,
        port=443 if request.scheme == "https" else 80,
        host=request.host,
        target=request.target,
        headers=request.headers,
        source=request.peer,
        sni=request.sni,
    )


def facts(served: Served, translation: Translation, request: RequestSpec) -> dict[str, Any]:
    """Return what one request gets."""
    found = explain(served, request)
    name = _Backends(translation)
    return {
        "answers": [
            (one.kind, one.status, one.share, one.location, name(one.backend), one.grpc_status)
            for one in found.answers
        ],
        "backends": [
            (name(one.name), one.share, one.status, one.tls, one.head) for one in found.backends
        ],
        "mirrors": [name(one.split(" ")[0]) for one in found.mirrors],
        "filters": found.filters,
        "policies": [(one.verdict, one.about) for one in found.policies if one.verdict != "lost"],
        "traffic": [(one.name, one.value) for one in found.traffic],
        "timeouts": found.timeouts,
        "retry": found.retry,
        "limits": [replace_limit(one) for one in found.limits],
        "listener": _listener(found),
    }


def replace_limit(one: LimitPart) -> LimitPart:
    """Return a limit without the name of its filter."""
    return msgspec.structs.replace(one, name=one.name.partition("#")[2])


def _listener(found: Explanation) -> tuple[int, str, str] | None:
    part = found.listener
    return (part.port, part.protocol, part.hostname) if part is not None else None


class _Backends:
    """Names clusters by what they are: a Backend's name is another one after the conversion."""

    def __init__(self, translation: Translation) -> None:
        self._backends = translation.memo.world.snapshot.backends

    def __call__(self, cluster: str) -> str:
        kind, _, rest = cluster.partition("/")
        if kind != "backend":
            return cluster
        namespace, name, *more = rest.split("/")
        return f"{namespace} {self._backends[namespace, name].spec} {more}"
