"""What is told of policies beside their statuses: rules that nobody can pass, units that answer 500, where a mistake stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.api.decode.decode import decode_api_object
from edgefast.diagnostics.problem import Problem
from edgefast.explain import read_request_spec, serve_translation
from edgefast.explain.explain import explain
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, translate
from tests.translate import world
from tests.translate.policy.site import DENY, raw, site, target
from tests.translate.policy.test_layer4 import policy
from tests.translate.test_incremental import _same

pytestmark = pytest.mark.pure

KEYS = {"localJWKS": {"inline": '{"keys": []}'}}


def tokens(provider: str, action: str = "Allow") -> dict[str, Any]:
    principal = {"jwt": {"provider": provider, "scopes": ["read"]}}
    return {"rules": [{"action": action, "principal": principal}]}


def told(*policies: dict[str, Any], standalone: bool = True) -> list[Problem]:
    objects = [decode_api_object(one, "SecurityPolicy") for one in policies]
    made = translate(world.many(2).replace(objects), Settings(standalone=standalone))
    return [one for one in made.problems if "has a provider" in one.message]


def named(name: str, **spec: Any) -> dict[str, Any]:
    one = raw(**spec)
    return one | {"metadata": one["metadata"] | {"name": name}}


@pytest.mark.parametrize(
    ("action", "fate"), [("Allow", "never matches"), ("Deny", "matches without a valid token")]
)
def test_a_provider_that_nobody_has(action: str, fate: str) -> None:
    asking = named("p", targetRefs=[target("r0")], authorization=tokens("login", action))
    (one,) = told(asking)
    assert one.path == "spec.authorization.rules[0].principal.jwt.provider"
    assert one.severity == "warning" and fate in one.message and not one.hint
    other = named("q", targetRefs=[target("r1")], jwt={"providers": [{"name": "logins", **KEYS}]})
    (one,) = told(asking, other)
    assert one.hint == "did you mean logins?"
    good = named("q", targetRefs=[target("r1")], jwt={"providers": [{"name": "login", **KEYS}]})
    assert told(asking, good) == []


def test_in_a_cluster_of_policies_that_are_for_something_alone() -> None:
    asking = named("p", targetRefs=[target("r0")], authorization=tokens("login"))
    elsewhere = named("q", targetRefs=[target("r0")], authorization=tokens("login"))
    elsewhere["metadata"]["namespace"] = "other"
    objects = [decode_api_object(one, "SecurityPolicy") for one in (asking, elsewhere)]
    snapshot = world.many(2).replace(objects)
    made = translate(snapshot, Settings(standalone=False, watch_namespaces=("default",)))
    found = [one.object for one in made.problems if "has a provider" in one.message]
    assert [one.name for one in found if one is not None] == ["p"]


def test_a_unit_that_answers_500_says_so() -> None:
    broken = named("p", targetRefs=[target("r0")], basicAuth={"users": {"name": "nobody"}})
    snapshot = world.many(1).replace([decode_api_object(broken, "SecurityPolicy")])
    problems = [one for one in translate(snapshot, Settings()).problems if one.object]
    (error,) = (one for one in problems if one.severity == "error")
    assert error.path == "spec.basicAuth.users"
    (fate,) = (one for one in problems if "get 500" in one.message)
    assert (fate.path, fate.severity) == ("spec.basicAuth", "warning")


def test_explain_names_the_field_and_the_line_of_what_closes(tmp_path: Path) -> None:
    wrong = policy(
        {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r0"},
        authorization={"defaultAction": "Perhaps"},
    )
    (tmp_path / "site.json").write_text(site())
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(wrong))
    loaded = FileSource([tmp_path]).read()
    translation = translate(loaded.snapshot, Settings(standalone=True))
    served = serve_translation(translation, problems=loaded.problems)
    found = explain(served, read_request_spec("GET", "http://r0.example/"))
    (part,) = found.policies
    assert part.place.path == "spec.authorization.defaultAction"
    assert part.place.source.endswith("policy.yaml:8")
    assert "spec.authorization.defaultAction: NotSupported" in found.answers[0].why


@pytest.mark.parametrize(
    "send", [{"type": "Text", "text": 12345678}, {"type": "Words", "text": "12345678"}]
)
def test_what_a_check_says_is_in_no_message(tmp_path: Path, send: dict[str, Any]) -> None:
    check = {"active": {"type": "TCP", "tcp": {"send": send, "receive": {"type": 12345678}}}}
    wrong = policy(target("r0"), kind="BackendTrafficPolicy", healthCheck=check)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(wrong))
    problems = FileSource([tmp_path]).read().problems
    assert len(problems) >= 2
    assert "12345678" not in repr(problems)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("SecurityPolicy", {"basicAuth": {"users": "alice:s3cr3t"}}),
        ("SecurityPolicy", {"basicAuth": "alice:s3cr3t"}),
        ("SecurityPolicy", {"apiKeyAuth": {"credentialRefs": "s3cr3t"}}),
        ("SecurityPolicy", {"apiKeyAuth": {"credentialRefs": ["s3cr3t"]}}),
        (
            "BackendTrafficPolicy",
            {"healthCheck": {"active": {"type": "TCP", "tcp": {"send": "s3cr3t"}}}},
        ),
    ],
)
def test_a_secret_in_the_place_of_its_reference_is_in_no_message(
    tmp_path: Path, kind: str, spec: dict[str, Any]
) -> None:
    (tmp_path / "site.json").write_text(site())
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy(target("r0"), kind=kind, **spec)))
    loaded = FileSource([tmp_path]).read()
    translation = translate(loaded.snapshot, Settings(standalone=True))
    served = serve_translation(translation, problems=loaded.problems)
    found = explain(served, read_request_spec("GET", "http://r0.example/"))
    assert found.answers[0].status == 500
    assert loaded.problems
    assert "s3cr3t" not in repr((loaded.problems, translation.problems, translation.ir, found))


def test_a_default_that_every_route_replaces_is_not_programmed() -> None:
    above = raw(targetRefs=[target("gw", "Gateway")], authorization=DENY)
    below = raw(targetRefs=[target("r0")], mergeType="Replace")
    below["metadata"]["name"] = "q"
    snapshot = world.many(1).replace(
        [decode_api_object(one, "SecurityPolicy") for one in (above, below)]
    )
    made = translate(snapshot, Settings())
    (entry,) = made.statuses.security_policies["default", "p"].ancestors
    last = entry.conditions[-1]
    assert (last.status, last.reason) == ("False", "Overridden")
    assert "SecurityPolicy default/q" in last.message
    # One more route, and it holds there.
    more = translate(snapshot.replace([world.route(1)]), Settings(), made)
    _same(more, translate(snapshot.replace([world.route(1)]), Settings()))
    (entry,) = more.statuses.security_policies["default", "p"].ancestors
    assert entry.conditions[-1].reason == "Programmed"


def test_a_broken_unit_keeps_where_its_credentials_are() -> None:
    """No log shows them while it answers 500."""
    keys = {"credentialRefs": [{"name": "gone"}], "extractFrom": [{"params": ["key"]}]}
    for more in ({}, {"targetRefs": [target("r0", sectionName="x", kind="Service", group="")]}):
        spec = raw(**{"targetRefs": [target("r0")], "apiKeyAuth": keys, **more})
        made = translate(
            world.many(1).replace([decode_api_object(spec, "SecurityPolicy")]), Settings()
        )
        for unit in made.ir.fleets[0].policies:
            assert unit.status == 500 and [one.params for one in unit.places] == [("key",)]
    assert (
        translate(
            world.many(1).replace(
                [
                    decode_api_object(
                        raw(targetRefs=[target("r0")], apiKeyAuth=keys, mergeType="x"),
                        "SecurityPolicy",
                    )
                ]
            ),
            Settings(),
        )
        .ir.fleets[0]
        .policies[0]
        .places
    )
