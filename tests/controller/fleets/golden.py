"""One golden case of rendering: Gateway API objects in, the manifests of all their fleets out, as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from controller.fleets.placement import Manifest, Placement
from controller.fleets.render import render_fleet
from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.translate import Settings, Translation, translate

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.in.yaml"))
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first document of an input."""

    about: str
    settings: dict[str, Any] = {}
    place: dict[str, Any] = {}


def read_case(path: Path) -> tuple[Translation, Placement]:
    """Translate the objects of a case; it has no problems but those it lists."""
    head, _, body = path.read_text().partition("\n---\n")
    case = msgspec.convert(yaml.safe_load(head)["case"], Case)
    settings = msgspec.convert({"standalone": False, **case.settings}, Settings)
    mode = {"gateway_namespace_mode": settings.gateway_namespace_mode}
    given = {"image": "edgefast/proxy:1", "ca": CA, "namespace": settings.namespace}
    place = msgspec.convert({**given, **mode, **case.place}, Placement)
    decoded = decode_documents(body.encode(), path.name)
    assert not decoded.problems, [problem.line() for problem in decoded.problems]
    return translate(Snapshot.of(decoded.objects), settings), place


def render_case(path: Path) -> str:
    """Write all manifests, and the problems that were told."""
    translation, place = read_case(path)
    manifests = [one for infra in translation.infra for one in render_fleet(infra, place)]
    text = "---\n".join(_dump(one) for one in manifests)
    problems = [f"# {one.severity}: {one.text()}" for one in translation.problems]
    return "\n".join([*problems, text])


def manifests_of(path: Path) -> dict[str, Manifest]:
    """Return the manifests of a case with one fleet, by kind."""
    translation, place = read_case(path)
    (infra,) = translation.infra
    return {one["kind"]: one for one in render_fleet(infra, place)}


def _dump(manifest: Manifest) -> str:
    text: str = yaml.dump(
        manifest, Dumper=_Plain, sort_keys=False, width=120, default_flow_style=False
    )
    return text


class _Plain(yaml.SafeDumper):
    """Writes what occurs twice twice: a manifest has no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
