"""Values are merged as helm merges them, and wrong ones are told with their place, all at once."""

from __future__ import annotations

from typing import Any

import pytest

from controller.manifests.defaults import default_values
from controller.manifests.load import load_install, merge
from controller.manifests.naming import Release
from controller.manifests.setting import SettingError, apply_setting

from .installs import LISTED, one, provider, refused, render

pytestmark = pytest.mark.pure


def test_maps_are_merged_and_all_else_is_replaced() -> None:
    below = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert merge(below, {"a": {"c": [3]}, "d": {"e": 1}}) == {
        "a": {"b": 1, "c": [3]},
        "d": {"e": 1},
    }
    assert merge(below, {"a": None}) == {"d": 1}
    assert merge(below, {"x": {"y": None}}) == {**below, "x": {}}
    assert below == {"a": {"b": 1, "c": [1, 2]}, "d": 1}


def test_later_files_win_and_settings_win_over_files() -> None:
    files = [
        ("a.yaml", b"deployment: {replicas: 2, priorityClassName: a}\n"),
        ("b.yaml", b"deployment: {replicas: 3}\n"),
    ]
    made, problems = load_install(Release(), files, ["deployment.replicas=4"])
    assert made is not None and not problems
    assert made.values.deployment.replicas == 4
    assert made.values.deployment.priority_class_name == "a"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a=1", {"a": 1}),
        ("a=x,b.c=true", {"a": "x", "b": {"c": True}}),
        ("a={x,y}", {"a": ["x", "y"]}),
        ("a={}", {"a": [""]}),
        ("a[1].b=c", {"a": [None, {"b": "c"}]}),
        (r"a\.b/c=d\,e", {"a.b/c": "d,e"}),
        ("a=", {"a": ""}),
        ("a=01", {"a": "01"}),
        ("a=-5", {"a": -5}),
        ("a=b=c", {"a": "b=c"}),
        ("x=null", {"y": 2}),
        ("x.z=1", {"x": {"z": 1}}),
    ],
)
def test_settings(text: str, wanted: dict[str, Any]) -> None:
    before = {"x": 1, "y": 2} if text.startswith("x") else {}
    after = apply_setting(before, text)
    assert after == ({**before, **wanted} if text == "x.z=1" else wanted)
    assert before in ({}, {"x": 1, "y": 2})


@pytest.mark.parametrize("text", ["a", "=1", "a..b=1", "a[x]=1", "a[99999999]=1", "a=1,b", "[0]=1"])
def test_settings_that_cannot_be_read(text: str) -> None:
    with pytest.raises(SettingError):
        apply_setting({}, text)


def test_all_mistakes_at_once_with_their_lines() -> None:
    text = b"""\
deployment:
  replica: 2
  replicas: null
config:
  edgeGateway:
    provider:
      orchestrator:
        watch: {type: Namespaces}
hpa: {enabled: 3}
"""
    made, problems = load_install(Release(), [("v.yaml", text)])
    assert made is None
    assert [(one.source.line if one.source else 0, one.path, one.reason) for one in problems] == [
        (8, "config.edgeGateway.provider.orchestrator.watch.namespaces", "Required"),
        (2, "deployment.replica", "NotSupported"),
        (9, "hpa.enabled", "Invalid"),
        (3, "deployment.replicas", "Required"),
    ]
    assert problems[1].hint == "did you mean replicas?"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}}, "together with"),
        ({"hpa": {"minReplicas": 6}}, "at most maxReplicas, 5"),
        ({"deployment": {"edgeGateway": {"image": {"repository": "A B"}}}}, "a repository such as"),
        ({"proxy": {"image": {"tag": "a:b"}}}, "a tag such as"),
        ({"deployment": {"replicas": -1}}, "expected 0 to 100"),
        (provider({"deploy": {"type": "Somewhere"}}), "GatewayNamespace"),
        ({"config": {"edgeGateway": {"kind": "Edge"}}}, "EdgeGateway"),
    ],
)
def test_what_is_refused(values: dict[str, Any], words: str) -> None:
    (said,) = refused(values)
    assert words in said and said.startswith("values.yaml:")


def test_both_names_of_the_provider_are_one_too_many() -> None:
    values = merge(provider(LISTED), provider(LISTED, name="kubernetes"))
    (said,) = refused(values)
    assert "the same settings" in said
    assert render(provider(LISTED, name="kubernetes"))


def test_files_that_are_no_values() -> None:
    for text, words in ((b"- a\n", "an object"), (b"a: [\n", ""), (b"{}\n---\n{}\n", "second")):
        made, problems = load_install(Release(), [("v.yaml", text)])
        assert made is None and words in problems[0].message
    made, _ = load_install(Release(), [("v.yaml", b"")])
    assert made is not None


def test_resources_are_merged_key_by_key() -> None:
    settings = ("deployment.edgeGateway.resources.limits.cpu=2",)
    (container,) = one(render(None, *settings), "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["resources"]["limits"] == {"cpu": 2, "memory": "1Gi"}
    assert default_values()["deployment"]["edgeGateway"]["resources"]["limits"] == {"memory": "1Gi"}


def test_texts_that_look_like_numbers() -> None:
    assert apply_setting({}, "a=2,b={1,true}", textual=True) == {"a": "2", "b": ["1", "true"]}
    made, _ = load_install(Release(), texts=["proxy.image.tag=2"])
    assert made is not None and made.values.proxy.image.tag == "2"
