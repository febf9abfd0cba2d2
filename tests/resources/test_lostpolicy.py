"""Text that is no document: a policy that was to be in it closes its namespace, and JSON between documents of YAML is JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import call
from edgefast.resources.decode.decode import decode_documents
from resources.test_meantpolicy import GROUP, OURS, WEB

pytestmark = pytest.mark.pure

POLICY = f"""apiVersion: {OURS}
kind: SecurityPolicy
metadata: {{name: p, namespace: shop}}
spec: {{{{targetRefs: [{{group: {GROUP}, kind: HTTPRoute, name: web}}]}}
"""
JSON = (
    f'{{"apiVersion": "{OURS}", "kind": "SecurityPolicy", "metadata": {{"name": "p", "annotations": '
    '{"owner": "\\ud83d\\ude00"}}, "spec": {"targetRefs": '
    f'[{{"group": "{GROUP}", "kind": "HTTPRoute", "name": "web"}}], "authorization": {{}}}}}}\n'
)


def lost(text: str, file: str = "a.yaml") -> list[tuple[str, str, str, int]]:
    found = decode_documents(text.encode(), file)
    assert any(one.severity == "error" and one.object is None for one in found.problems)
    return [
        (one.ref.kind, one.ref.namespace, one.ref.name, one.source.line if one.source else 0)
        for one in found.policies
        if one.lost
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (POLICY, [("SecurityPolicy", "shop", "p", 2)]),
        (f"---\n\n{POLICY}", [("SecurityPolicy", "shop", "p", 4)]),
        (POLICY.replace(", namespace: shop", ""), [("SecurityPolicy", "default", "p", 2)]),
        (POLICY.replace("name: p, ", ""), [("SecurityPolicy", "shop", "?", 2)]),
        (POLICY.replace("SecurityPolicy", "securitypolicies"), [("SecurityPolicy", "shop", "p", 2)]),
        (POLICY.replace("SecurityPolicy", '"BackendTrafficPolicy"'), [("BackendTrafficPolicy", "shop", "p", 2)]),
        (POLICY.replace(f"apiVersion: {OURS}\n", ""), [("SecurityPolicy", "shop", "p", 1)]),
        ("kind: SecurityPolicy\n\tmetadata: {name: p}\n", [("SecurityPolicy", "default", "p", 1)]),
        # Whose metadata are in whose namespace cannot be told.
        (POLICY.replace("spec:", "other:") + POLICY.replace("shop", "far"), [("SecurityPolicy", "far", "?", 2), ("SecurityPolicy", "shop", "?", 2)]),
        # What is none of ours closes nothing.
        (POLICY.replace(OURS, "gateway.envoyproxy.io/v1alpha1"), []),
        (POLICY.replace("SecurityPolicy", "HTTPRoute"), []),
        (f"# kind: SecurityPolicy\n{POLICY.replace('SecurityPolicy', 'Service')}", []),
        ("{" * 50, []),
    ],
)  # fmt: skip
def test_a_policy_in_text_that_is_no_document_may_be_for_anything(
    text: str, found: list[tuple[str, str, str, int]]
) -> None:
    assert lost(text) == found


def test_one_in_json_that_is_cut_off_is_found_as_well() -> None:
    assert lost(JSON[:-3], "a.json") == [("SecurityPolicy", "default", "p", 1)]
    whole = f'{{"apiVersion": "v1", "kind": "List", "items": [{JSON}, {JSON}'
    assert lost(whole) == [("SecurityPolicy", "default", "?", 1)]


@pytest.mark.parametrize("before", ["---\n", "--- ", "---\n\n  "])
def test_json_between_documents_of_yaml_is_json(before: str) -> None:
    found = decode_documents(f"{before}{JSON}---\nkind: []\n".encode(), "a.yaml")
    assert [one.obj.metadata.name for one in found.objects] == ["p"]
    assert found.objects[0].source.line == before.count("\n") + 1
    # What only begins as JSON is YAML, as before.
    flow = decode_documents(f"{before}{{apiVersion: v1, kind: Namespace, metadata: {{name: a}}}}".encode(), "a.yaml")  # fmt: skip
    assert [one.obj.metadata.name for one in flow.objects] == ["a"] and not flow.problems


def test_the_namespace_of_such_a_policy_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    for policy, status in ((POLICY.replace("shop", "default"), "500"), (POLICY, "503")):
        file.write_text(WEB + policy)
        assert call("check", "-f", str(file)).status == 1
        said = call("explain", "-f", str(file), "GET", "http://other.example/").out
        assert status in said and ("policy_invalid" in said) is (status == "500"), said
