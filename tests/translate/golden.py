"""One golden case: what goes in, and its outcome as text to compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from edgefast.api.core.selected_pod import SelectedPod, SelectedPods
from edgefast.api.decode.decode import decode_api_object, decode_documents
from edgefast.api.kinds import Object
from edgefast.api.loaded import Loaded
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, Translation

HERE = Path(__file__).parent
BASES = HERE / "bases"


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first document of an input."""

    about: str
    base: tuple[str, ...] = ("gateway", "web")
    settings: Settings = Settings()
    show: tuple[str, ...] = ()  # "infra", or kinds of base objects whose status matters
    pods: dict[str, tuple[SelectedPod, ...]] = {}  # by "namespace labels"
    unread: dict[str, str] = {}  # why, of Pods that cannot be read, by the same
    unsound: bool = False  # objects go in that the strict decoder refuses, as an API server might


class Input(msgspec.Struct, frozen=True):
    """A case with its objects."""

    case: Case
    snapshot: Snapshot
    base: frozenset[tuple[str, str, str]]


def read_input(path: Path) -> Input:
    """Read a case; objects of the case replace base objects of the same name."""
    head, _, body = path.read_text().partition("\n---\n")
    case = msgspec.convert(yaml.safe_load(head)["case"], Case)
    base: dict[tuple[str, str, str], Loaded] = {}
    for name in case.base:
        decoded = decode_documents((BASES / f"{name}.yaml").read_bytes(), f"{name}.yaml")
        assert not decoded.problems, [problem.line() for problem in decoded.problems]
        base.update((_key(one), one) for one in decoded.objects)
    if case.unsound:
        objects: list[Loaded | Object] = [_convert(one) for one in yaml.safe_load_all(body)]
    else:
        decoded = decode_documents(body.encode(), path.name)
        assert not decoded.problems, [problem.line() for problem in decoded.problems]
        objects = list(decoded.objects)
    own = {_key(one): one for one in objects}
    snapshot = Snapshot.of([*own.values(), *base.values()])
    pods = snapshot.pods.edit()
    for name in case.pods | case.unread:
        namespace, _, labels = name.partition(" ")
        some, why = case.pods.get(name, ()), case.unread.get(name, "")
        pods[namespace, labels] = SelectedPods(pods=some, unread=why)
    return Input(
        case=case,
        snapshot=msgspec.structs.replace(snapshot, pods=pods.done()),
        base=frozenset(base.keys() - own.keys()),
    )


def _convert(raw: dict[str, Any]) -> Object:
    return decode_api_object(raw, raw["kind"])


def _key(one: Loaded | Object) -> tuple[str, str, str]:
    found = one.obj if isinstance(one, Loaded) else one
    return (type(found).__name__, found.metadata.namespace, found.metadata.name)


def render(found: Input, translation: Translation) -> str:
    """Write the outcome as YAML."""
    shown: dict[str, Any] = {"ir": _render_ir(translation)}
    if "infra" in found.case.show:
        shown["infra"] = [msgspec.to_builtins(one) for one in translation.infra]
    shown["statuses"] = _render_statuses(found, translation)
    shown["problems"] = [f"{one.severity}: {one.line()}" for one in translation.problems]
    problems = shown.pop("problems")
    return _dump(shown, None) + _dump({"problems": problems}, False)


def _dump(value: Any, flow: bool | None) -> str:
    text: str = yaml.safe_dump(
        value, sort_keys=False, default_flow_style=flow, width=4096, allow_unicode=True
    )
    return text


def _render_ir(translation: Translation) -> Any:
    made = msgspec.to_builtins(translation.ir, builtin_types=(bytes,), enc_hook=tuple)
    for fleet in made["fleets"]:
        for secret in fleet.get("secrets", ()):
            for field in ("certificate", "private_key", "ca"):
                if field in secret:
                    secret[field] = "<redacted>"
        store = fleet.get("limit_store", {})
        for field in ("user", "password", "ca", "certificate", "private_key"):
            if field in store:
                store[field] = "<redacted>"
    return made["fleets"]


def _render_statuses(found: Input, translation: Translation) -> dict[str, Any]:
    statuses = {}
    for ref, status in translation.statuses.items():
        if (ref.kind, ref.namespace, ref.name) in found.base and ref.kind not in found.case.show:
            continue
        made = msgspec.to_builtins(status)
        made.pop("supportedFeatures", None)
        statuses[str(ref)] = made
    return statuses
