"""The decoder as a whole: places, identity, limits, hostile text, API objects, configuration."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefast.api.core.secret import Secret
from edgefast.api.decode.decode import (
    DecodeCache,
    DecodeError,
    decode_api_object,
    decode_config,
    decode_documents,
)
from edgefast.api.gateway.httproute import HTTPRoute
from edgefast.api.limits import MAX_FILE_BYTES, MAX_PROBLEMS
from edgefast.diagnostics.problem import Source
from tests.support.manifest import manifest

pytestmark = pytest.mark.pure

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n"


def _namespaces(*names: str) -> str:
    return "---\n".join(NAMESPACE.format(name) for name in names)


def _texts(data: str | bytes, file: str = "a.yaml") -> list[str]:
    raw = data.encode() if isinstance(data, str) else data
    return [one.line() for one in decode_documents(raw, file).problems]


def test_places_of_fields() -> None:
    text = "# head\n" + _namespaces("one") + "---\n# note\n\n" + NAMESPACE.format("two")
    one, two = decode_documents(text.encode(), "a.yaml").objects
    assert one.source == Source("a.yaml", 2)
    assert one.source_at("metadata.name") == Source("a.yaml", 5)
    assert two.source == Source("a.yaml", 9)
    assert two.source_at("metadata.name") == Source("a.yaml", 12)
    assert two.source_at("metadata.labels[x]") == Source("a.yaml", 11)


def test_places_agree_between_yaml_and_json() -> None:
    route = manifest(
        "HTTPRoute web",
        {"hostnames": ["a.example.com", "b.example.com"], "rules": [{"name": "r"}]},
        labels={"a.b/c": "{x}:[\\"},
    )
    text = json.dumps(route, indent=2).encode()
    (as_json,) = decode_documents(text, "a.json").objects
    (as_yaml,) = decode_documents(b"---\n" + text, "a.yaml").objects
    assert as_json.obj == as_yaml.obj
    for path in ("", "metadata.labels[a.b/c]", "spec.hostnames[1]", "spec.rules[0].name", "no"):
        assert as_json.source_at(path).line + 1 == as_yaml.source_at(path).line
    assert as_json.source_at("spec.hostnames[1]").line == 13


def test_crlf_and_byte_order_mark() -> None:
    text = b"\xef\xbb\xbf" + _namespaces("one", "Two").replace("\n", "\r\n").encode()
    decoded = decode_documents(text, "a.yaml")
    assert [one.obj.metadata.name for one in decoded.objects] == ["one"]
    assert [one.source for one in decoded.problems] == [Source("a.yaml", 9)]


def test_line_breaks_that_editors_do_not_count() -> None:
    for odd in ("\u2028", "\u2029", "\x85", "\r"):
        text = NAMESPACE.format(f'"a{odd}b"') + "---\na: [b\n"
        assert [one.source for one in decode_documents(text.encode(), "a").problems] == [
            Source("a", 4),
            Source("a", 6),
        ]
        text = NAMESPACE.format(f"a # {odd}# note") + "labels: {a: b}\nx: *none\n"
        (problem,) = decode_documents(text.encode(), "a").problems
        assert problem.source == Source("a", 6)


def test_json_by_content_and_by_name() -> None:
    raw = b'{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}}'
    assert len(decode_documents(raw, "-").objects) == 1
    flow = b"{apiVersion: v1, kind: Namespace, metadata: {name: one}}\n---\n" + b"{kind: x}"
    assert len(decode_documents(flow, "-").objects) == 1
    assert _texts(flow, "a.json") == ["a.json:1 Invalid JSON: object keys must be strings"]


def test_default_namespace_and_scope() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: }\n"
    (one,) = decode_documents(text.encode(), "a.yaml").objects
    assert one.obj.metadata.namespace == "default"
    assert str(one.ref) == "ConfigMap default/a"
    (scoped,) = decode_documents(NAMESPACE.format("x").encode(), "a.yaml").objects
    assert scoped.obj.metadata.namespace == ""
    assert str(scoped.ref) == "Namespace x"


def test_cache_keeps_identity_and_moves_lines() -> None:
    cache = DecodeCache()
    before = decode_documents(_namespaces("one", "two", "Bad").encode(), "a.yaml", cache)
    text = "---\n" + _namespaces("new", "two", "Bad")
    after = decode_documents(text.encode(), "a.yaml", cache)
    assert after.objects[1].obj is before.objects[1].obj
    assert after.objects[1].source == Source("a.yaml", 7)
    assert before.problems[0].source == Source("a.yaml", 14)
    assert after.problems[0].source == Source("a.yaml", 15)
    gone = decode_documents(b"", "a.yaml", cache)
    assert gone.objects == ()
    again = decode_documents(text.encode(), "a.yaml", cache)
    assert again.objects[1].obj is not after.objects[1].obj


def test_file_too_large() -> None:
    data = b"#" * (MAX_FILE_BYTES + 1)
    assert _texts(data) == [f"a.yaml:1 TooLong {len(data)} bytes (at most {MAX_FILE_BYTES})"]


def test_too_many_problems() -> None:
    decoded = decode_documents(_namespaces(*["Bad"] * (MAX_PROBLEMS + 5)).encode(), "a.yaml")
    assert len(decoded.problems) == MAX_PROBLEMS + 1
    assert decoded.problems[-1].reason == "TooMany"


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "- " * 100_000 + "a", "{a: " * 100_000, "[{a: " * 50_000],
    ids=["flow list", "block list", "flow map", "both"],
)
def test_deep_yaml(text: str) -> None:
    broken, *rest = _texts(text + "\n---\n" + NAMESPACE.format("Beside"))
    assert "nested deeper than 64 levels" in broken
    assert len(rest) == (0 if text.startswith("{") else 1)


def test_deep_json() -> None:
    for text in ('{"a":' * 100_000, '{"a":' * 900 + "1" + "}" * 900, "[" * 100_000):
        lines = _texts(text, "a.json")
        assert lines
        assert all(one.startswith("a.json:1 ") for one in lines)


def test_deep_json_with_repeated_key() -> None:
    deep = '{"a":' * 400 + "1" + "}" * 400
    text = f'{{"kind": "A", "kind": "A", "x": {deep}}}'
    assert "nested deeper than" in _texts(text, "a.json")[0]


def test_billion_laughs() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (only,) = _texts("\n".join(lines))
    assert "aliases expand to more than 200000 values" in only


def test_alias_inside_of_itself() -> None:
    assert _texts("a: &a [*a]") == ["a.yaml:1 Invalid YAML: the anchor &a is not defined"]


def test_merge_keys() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        "data:\n  <<: [{x: '1', y: '1'}, {x: '2', z: '2'}]\n  y: '3'\n"
    )
    (one,) = decode_documents(text.encode(), "a.yaml").objects
    assert getattr(one.obj, "data", None) == {"x": "1", "y": "3", "z": "2"}
    assert "<< needs a mapping" in _texts("<<: text")[0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfea\x00", "a.yaml:1 Invalid the text is not UTF-8"),
        (b"a: b\n\xc3(", "a.yaml:2 Invalid the text is not UTF-8"),
        (b"a: b\nc: \x01", "a.yaml:2 Invalid YAML: control characters are not allowed"),
        (b"{a: b}: c", "a.yaml:1 Invalid YAML: a key must be text"),
        (b"a: [b\n", "a.yaml:1 Invalid YAML: did not find expected ',' or ']'"),
        (b"a: 'b", "a.yaml:1 Invalid YAML: found unexpected end of stream"),
    ],
)
def test_broken_text(data: bytes, said: str) -> None:
    assert _texts(data) == [said]


def test_nothing_at_all() -> None:
    for data in (b"", b"\n", b"---\n---\n", b"# note\n", b"---", b"%YAML 1.1\n---\n"):
        decoded = decode_documents(data, "a.yaml")
        assert decoded.objects == ()
        assert decoded.problems == ()


def test_names_cannot_steer_a_terminal() -> None:
    text = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: "a\\e[2J\\nb", "x\\ny": 1}\n'
    for line in _texts(text):
        assert line.isprintable()
        assert r"Namespace a\x1b[2J\nb" in line


def test_huge_words_are_cut() -> None:
    long = "x" * 100_000
    text = f'apiVersion: v1\nkind: Namespace\nmetadata: {{name: "{long}", ? {long}y : 1}}\n'
    lines = _texts(text)
    assert len(lines) == 2
    assert all(len(line) < 1000 for line in lines)


def test_secrets_stay_secret() -> None:
    text = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/tls\n"
        "data: {tls.crt: hunter2!, tls.key: [hunter2]}\nstringData: {b: 2222}\nimmutable: hunter2\n"
    )
    lines = _texts(text)
    assert len(lines) == 4
    assert not any("hunter2" in line or "2222" in line for line in lines)
    text = (
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
            "data: {a: |\n    aHVu\n    dGVyMg==\n  }\nstringData: {b: text}\n"
        )
        .replace("{a: |", "\n  a: |")
        .replace("\n  }", "")
    )
    (one,) = decode_documents(text.encode(), "a.yaml").objects
    assert isinstance(one.obj, Secret)
    assert one.obj.value("a") == b"hunter2"
    assert one.obj.value("b") == b"text"
    assert one.obj.value("c") is None
    assert "hunter2" not in repr(one.obj)


def test_many_routes_decode_alike_from_yaml_and_json() -> None:
    routes = [
        manifest(
            f"HTTPRoute r{n}",
            {
                "hostnames": [f"h{n}.example.com"],
                "rules": [{"backendRefs": [{"name": "web", "port": 80, "weight": n}]}],
            },
            api=f"gateway.networking.k8s.io/{'v1' if n % 2 else 'v1beta1'}",
        )
        for n in range(50)
    ]
    from_yaml = decode_documents(yaml.safe_dump_all(routes).encode(), "a.yaml")
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": routes}).encode()
    from_json = decode_documents(listed, "a.json")
    assert not from_yaml.problems
    assert not from_json.problems
    assert [one.obj for one in from_yaml.objects] == [one.obj for one in from_json.objects]
    assert len(from_json.objects) == 50


# --- objects of an API server


def test_api_object_passes_over_unknown_fields() -> None:
    raw = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "a", "namespace": "b", "managedFields": [{}], "resourceVersion": "7"},
        "spec": {
            "rules": [
                {
                    "fromTheFuture": {},
                    "matches": [{"path": {"type": "Glob", "value": "a*"}}],
                    "filters": [{"type": "Tomorrow", "tomorrow": {}}],
                }
            ]
        },
        "status": {"parents": []},
    }
    for form in (raw, json.dumps(raw).encode()):
        route = decode_api_object(form, "HTTPRoute")
        assert isinstance(route, HTTPRoute)
        assert route.metadata.resource_version == "7"
        assert route.spec.rules[0].matches[0].path.value == "a*"
        assert route.spec.rules[0].filters[0].type == "Tomorrow"


def test_api_object_nulls() -> None:
    raw = b'{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":null,"ports":null}'
    assert getattr(decode_api_object(raw, "EndpointSlice"), "endpoints", None) == ()


def test_api_object_that_cannot_be_built() -> None:
    with pytest.raises(DecodeError, match=r"HTTPRoute: spec.rules Invalid"):
        decode_api_object({"metadata": {"name": "a"}, "spec": {"rules": 1}}, "HTTPRoute")
    with pytest.raises(KeyError):
        decode_api_object({}, "Pod")


# --- configuration


def test_config_names_of_the_provider() -> None:
    head = "apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\n"
    for name in ("kubernetes", "orchestrator"):
        text = f"{head}provider: {{{name}: {{deploy: {{type: GatewayNamespace}}}}}}\n"
        config, problems = decode_config(text.encode(), "c.yaml")
        assert problems == ()
        assert config is not None
        assert config.provider.cluster.deploy.type == "GatewayNamespace"
    config, problems = decode_config(head.encode(), "c.yaml")
    assert config is not None
    assert config.provider.cluster.watch is None


def test_config_missing_or_broken() -> None:
    for text, said in (
        ("", "c.yaml:1 EdgeGateway: Required no configuration in the file"),
        ("a: [", "c.yaml:1 Invalid YAML: did not find expected node content"),
        ("- a", "c.yaml:1 EdgeGateway: Invalid a list (expected an object)"),
        (
            "kind: EdgeGateway\nkind: EdgeGateway",
            "c.yaml:2 EdgeGateway kind: Duplicate the field is given twice",
        ),
    ):
        config, problems = decode_config(text.encode(), "c.yaml")
        assert config is None
        assert [one.line() for one in problems] == [said]


# --- any text at all

_PIECES = st.sampled_from(
    [
        "---\n",
        "...\n",
        "- ",
        "? ",
        ": ",
        "a: ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "&a ",
        "*a ",
        "<<: ",
        "!!str ",
    ]
    + ["!x ", "'", '"', "|\n ", ">\n ", "#", "\n", "  ", "%YAML 1.1\n", "\t", "\x00", "\u2028", "é"]
    + [
        "apiVersion: v1\n",
        "kind: Namespace\n",
        "metadata: {name: a}\n",
        "items: [{}]\n",
        "kind: AList\n",
    ]
    + [
        '"a":',
        "null",
        "1e9",
        "\\u003a",
        "\ud83d\ude00",
        ".nan",
        "0x",
        "\ufeff",
        "\r\n",
        "\r",
        "\x85",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_PIECES, max_size=30), st.sampled_from(["a.yaml", "a.json", "-"]))
def test_no_text_makes_it_raise(pieces: list[str], file: str) -> None:
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    decoded = decode_documents(data, file)
    last = data.count(b"\n") + 1
    for problem in decoded.problems:
        assert problem.source is not None
        assert 1 <= problem.source.line <= last
        assert problem.line().isprintable()
    for one in decoded.objects:
        assert 1 <= one.source_at("metadata.name").line <= last
    config, problems = decode_config(data, file)
    assert (config is None) == bool(problems)


@pytest.mark.parametrize("before", ["---\n", "--- ", "---\n\n  "])
def test_json_between_documents_of_yaml_is_json(before: str) -> None:
    text = (
        '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "p", '
        '"annotations": {"owner": "\\ud83d\\ude00"}}}\n'
    )
    found = decode_documents(f"{before}{text}---\nkind: []\n".encode(), "a.yaml")
    assert [one.obj.metadata.name for one in found.objects] == ["p"]
    assert found.objects[0].source.line == before.count("\n") + 1
    # Text that only begins as JSON is YAML.
    flow = f"{before}{{apiVersion: v1, kind: Namespace, metadata: {{name: a}}}}".encode()
    only = decode_documents(flow, "a.yaml")
    assert [one.obj.metadata.name for one in only.objects] == ["a"] and not only.problems
