"""What policies do not say, or have: a target or part of it that is not there is never told as closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgefast.providers.files import FileSource
from edgefast.translate import Settings, translate
from tests.translate.policy.site import DENY, closed_routes, raw, site, target

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (target("gw", "Gateway", sectionName="htpt"), '"htpt" (Gateway default/gw has http); requests pass without it'),
        (target("r0", sectionName="first"), '"first" (HTTPRoute default/r0 has no named rule); requests pass without it'),
        (target("none"), "HTTPRoute default/none not found"),
    ],
)  # fmt: skip
def test_of_a_policy_with_a_mistake_it_is_told_what_is_not_closed(
    named: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Nothing is answered for a part that is not there; of a version that only follows a good one neither."""
    file = tmp_path / "all.yaml"
    file.write_text(site(raw(targetRefs=[named, target("r1")], authorization=5)))
    made = translate(FileSource([file]).read().snapshot, Settings())
    assert closed_routes(made) == {"default/r1"}
    (lack,) = [one for one in made.problems if one.reason == "TargetNotFound"]
    assert said in lack.message and lack.severity == "error" and lack.source is not None
    (shut,) = [one for one in made.problems if "requests get 500 for" in one.message]
    assert "default/r1" in shut.message
    file.write_text(site(raw(targetRefs=[target("r0")], authorization=DENY)))
    source = FileSource([file])
    source.read()
    file.write_text(site(raw(targetRefs=[named, target("r0")], authorization=5)))
    behind = translate(source.read().snapshot, Settings())
    assert [one for one in behind.problems if said in one.message]
    assert not [one for one in behind.problems if "requests get 500 for" in one.message]


def test_a_part_of_what_has_no_parts_is_the_whole(tmp_path: Path) -> None:
    """An XBackendTrafficPolicy is for all of a Service; the field that says less is the mistake."""
    named = {"group": "", "kind": "Service", "name": "web", "sectionName": "foo"}
    experimental = {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha1",
        "kind": "XBackendTrafficPolicy",
    }
    file = tmp_path / "all.yaml"
    file.write_text(site(raw(targetRefs=[named]) | experimental))
    made = translate(FileSource([file]).read().snapshot, Settings())
    units = [one.name for one in made.ir.fleets[0].policies if one.status == 500]
    assert units == ["xtraffic/default/p#closed"]
    rules = [rule for host in made.ir.fleets[0].virtual_hosts for rule in host.rules]
    assert rules and all(rule.units() == tuple(units) for rule in rules)
    (told,) = [one for one in made.problems if one.object and one.object.name == "p"]
    assert "requests get 500 for Service default/web" in told.message and "foo" not in told.message


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("SecurityPolicy", {"jwt": None}, True),
        ("SecurityPolicy", {"authorization": None, "extAuth": None}, True),
        ("BackendTrafficPolicy", {"timeout": None}, True),
        ("XBackendTrafficPolicy", {"retryConstraint": None}, True),
        ("SecurityPolicy", {"authorization": None, "mergeType": "Replace"}, False),
        ("SecurityPolicy", {"jwt": None, "authorization": DENY}, False),
        ("XBackendTrafficPolicy", {"retryConstraint": {}}, False),
    ],
)
def test_a_policy_that_says_nothing_is_told_of(
    kind: str, spec: dict[str, Any], told: bool, tmp_path: Path
) -> None:
    aim, policy = target("r0"), raw() | {"kind": kind}
    if kind.startswith("X"):
        aim = {"group": "", "kind": "Service", "name": "web"}
        policy["apiVersion"] = "gateway.networking.x-k8s.io/v1alpha1"
    file = tmp_path / "all.yaml"
    file.write_text(site(policy | {"spec": {"targetRefs": [aim], **spec}}))
    made = translate(FileSource([file]).read().snapshot, Settings())
    said = [one.severity for one in made.problems if "has no settings" in one.message]
    assert said == (["warning"] if told else [])
