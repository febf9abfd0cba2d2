"""`edgefast check`: exit statuses, one line per problem, formats, standard input, several files and folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cli.calling import call
from tests.support.documents import backend

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples/quickstart.yaml"
BAD = QUICKSTART.read_text().replace("type: PathPrefix", "type: PathPrefx")
LINE = 1 + next(number for number, line in enumerate(BAD.splitlines()) if "PathPrefx" in line)
PROBLEM = (
    "HTTPRoute default/quickstart spec.rules[0].matches[0].path.type: "
    'NotSupported "PathPrefx" (supported: Exact, PathPrefix, RegularExpression), did you mean PathPrefix?'
)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A file with one mistake."""
    path = tmp_path / "bad.yaml"
    path.write_text(BAD)
    return path


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name
)
def test_examples_have_no_problems(path: Path) -> None:
    if path.name == "tls.yaml":
        return  # its certificates are made when it is tried: tests/examples runs it
    outcome = call("check", "-f", str(path))
    assert (outcome.status, outcome.out) == (0, ""), outcome
    assert outcome.err.startswith("no problems (")


def test_a_problem_is_one_line_with_its_place(bad: Path) -> None:
    outcome = call("check", "-f", str(bad))
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == f"{bad}:{LINE} {PROBLEM}"


def test_standard_input() -> None:
    outcome = call("check", "-f", "-", stdin=BAD)
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == f"<stdin>:{LINE} {PROBLEM}"


def test_json_and_yaml_say_the_same(bad: Path) -> None:
    as_json = call("check", "-f", str(bad), "-o", "json")
    as_yaml = call("check", "-f", str(bad), "-o", "yaml")
    assert as_json.status == as_yaml.status == 1
    told = json.loads(as_json.out)
    assert told == yaml.safe_load(as_yaml.out)
    assert told[0]["object"] == {"kind": "HTTPRoute", "namespace": "default", "name": "quickstart"}
    assert (told[0]["line"], told[0]["reason"], told[0]["severity"]) == (
        LINE,
        "NotSupported",
        "error",
    )
    assert told[0]["text"] == PROBLEM


def test_no_problem_is_an_empty_list() -> None:
    assert json.loads(call("check", "-f", str(QUICKSTART), "-o", "json").out) == []


def test_all_problems_of_all_files_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BAD)
    (tmp_path / "b.json").write_text('{"apiVersion": "v1", "kind": "Service"}')
    (tmp_path / "ignored.txt").write_text("{")
    outcome = call("check", "-f", str(tmp_path))
    assert outcome.status == 1
    assert PROBLEM in outcome.out
    assert any(line.startswith(f"{tmp_path}/b.json:1 ") for line in outcome.out.splitlines())


def test_two_objects_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "again.yaml").write_text(QUICKSTART.read_text())
    outcome = call("check", "-f", str(QUICKSTART), "-f", str(tmp_path))
    assert outcome.status == 1
    assert "Duplicate" in outcome.out


def test_what_translation_finds_is_a_problem_too(tmp_path: Path) -> None:
    path = tmp_path / "dangling.yaml"
    path.write_text(
        QUICKSTART.read_text().replace("{name: api, port: 80}", "{name: apo, port: 80}")
    )
    outcome = call("check", "-f", str(path))
    assert outcome.status == 1
    (line,) = [line for line in outcome.out.splitlines() if "BackendNotFound" in line]
    assert "HTTPRoute default/quickstart spec.rules[0].backendRefs[0]" in line
    assert line.endswith("Service default/apo not found, did you mean api?")


@pytest.fixture
def shop(tmp_path: Path) -> Callable[[str], Path]:
    """Writes shop.yaml: the objects of a sound shop, and what the test has of its own."""

    def write(own: str) -> Path:
        path = tmp_path / "shop.yaml"
        path.write_text(own + "\n---\n" + SHOP)
        return path

    return write


ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: shop}]
  rules:
  - backendRefs: [{name: web, port: 80}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier: {set: [{name: a, value: b}]}
    - type: ExtensionRef
      extensionRef:
        group: gateway.edge.io
        kind: RateLimitFilter
        name: limits"""
SHOP = """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shop}
spec: {gatewayClassName: edge, listeners: [{name: http, protocol: HTTP, port: 8080}]}
---
""" + backend(
    "web", port="name: http, port: 80", target="name: http, port: 3001", address="127.0.0.1"
)


def test_the_line_of_the_reference_docs(shop: Callable[[str], Path]) -> None:
    path = shop(ROUTE.replace("RateLimitFilter", "RateLimitFiler"))
    outcome = call("check", "-f", str(path))
    assert (outcome.status, outcome.out.splitlines()) == (
        1,
        [
            f"{path}:14 HTTPRoute default/web spec.rules[0].filters[1].extensionRef.kind: "
            'NotSupported "RateLimitFiler" (supported: RateLimitFilter, HTTPRouteFilter), did you mean '
            "RateLimitFilter?"
        ],
    )


def test_a_group_of_others_is_one_line(shop: Callable[[str], Path]) -> None:
    outcome = call("check", "-f", str(shop(ROUTE.replace("group: gateway.edge.io", "group: a.io"))))
    (line,) = outcome.out.splitlines()
    assert line.endswith('extensionRef.group: NotSupported "a.io" (supported: gateway.edge.io)')


def test_a_missing_filter_is_one_line(shop: Callable[[str], Path]) -> None:
    (line,) = call("check", "-f", str(shop(ROUTE))).out.splitlines()
    assert "shop.yaml:15 HTTPRoute default/web spec.rules[0].filters[1].extensionRef.name:" in line
    assert "NotFound RateLimitFilter default/limits not found" in line


def lines_of(path: Path) -> list[str]:
    """The problems of a file, without its name."""
    return [line.partition(":")[2] for line in call("check", "-f", str(path)).out.splitlines()]


PLAIN = ROUTE.partition("    filters:")[0]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("port: 8080}", "port: many}", "Gateway default/shop spec.listeners[0].port"),
        ("port: 80}", "port: many}", "Service default/web spec.ports[0].port"),
        ("controllerName", "controllrName", "GatewayClass edge spec"),
    ],
)
def test_one_mistake_has_no_echo(
    shop: Callable[[str], Path], old: str, new: str, place: str
) -> None:
    path = shop(PLAIN)
    path.write_text(SHOP.replace(old, new) + "\n---\n" + PLAIN)
    lines = lines_of(path)
    assert lines
    assert all(place in line for line in lines), lines


@pytest.mark.parametrize("settings", ["{http: {bodySize: lots}}", "{htp: {}}"])
def test_a_refused_edge_proxy_has_no_echo(shop: Callable[[str], Path], settings: str) -> None:
    path = shop(
        "apiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {name: p}\n"
        f"spec: {settings}\n---\n{PLAIN}"
    )
    refers = "parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: p, namespace: default}"
    path.write_text(path.read_text().replace("controllerName:", f"{refers}, controllerName:"))
    (line,) = lines_of(path)
    assert "EdgeProxy default/p spec" in line


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", namespace: default}", "}", "GatewayClass edge spec.parametersRef.namespace: Required"),
        ("controllerName", "controllrName", "GatewayClass edge spec.control"),
    ],
)
def test_what_a_broken_class_refers_to_is_not_called_unused(
    shop: Callable[[str], Path], old: str, new: str, said: str
) -> None:
    proxy = "apiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {name: p}\nspec: {}"
    path = shop(f"{proxy}\n---\n{PLAIN}")
    refers = "parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: p, namespace: default}"
    text = path.read_text().replace("controllerName:", f"{refers}, controllerName:")
    path.write_text(text.replace(old, new))
    lines = lines_of(path)
    assert lines
    assert all(said in line for line in lines), lines


def test_parameters_need_a_namespace(shop: Callable[[str], Path]) -> None:
    path = shop(PLAIN)
    refers = "parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: p}"
    path.write_text(path.read_text().replace("controllerName:", f"{refers}, controllerName:"))
    (line,) = lines_of(path)
    assert line.endswith(
        "GatewayClass edge spec.parametersRef.namespace: Required the namespace of the EdgeProxy"
    )


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("{name: web, port: 80}", "{name: wab, port: 80}", "Service default/wab not found"),
        ("{name: shop}", "{name: shopp}", "Gateway default/shopp not found"),
    ],
)
def test_a_name_that_is_near(shop: Callable[[str], Path], old: str, new: str, hint: str) -> None:
    (line,) = lines_of(shop(PLAIN.replace(old, new)))
    assert line.endswith(f"{hint}, did you mean {'web' if 'wab' in new else 'shop'}?")


def test_a_name_that_is_far_is_no_hint(shop: Callable[[str], Path]) -> None:
    (line,) = lines_of(shop(PLAIN.replace("{name: web, port: 80}", "{name: x, port: 80}")))
    assert line.endswith("Service default/x not found")


def test_all_mistakes_of_an_object_at_once(shop: Callable[[str], Path]) -> None:
    """What only translation refuses in a sound route is told beside what decoding refuses."""
    matches = """  - matches:
    - path: {type: RegularExpression, value: "(/a"}
      headers:
      - {name: x-a, value: b}
      - {name: X-A, value: c}
      - {name: x-b, type: RegularExpression, value: "*"}
      queryParams: [{name: q, type: RegularExpression, value: "["}]
    timeouts: {request: soon}
    filters:
    - {type: RequestMirror, requestMirror: {backendRef: {name: gone, port: 80}}}
    backendRefs"""
    text = PLAIN.replace("  - backendRefs", matches).replace("{name: web, port", "{name: wab, port")
    lines = lines_of(shop(text))
    at = "HTTPRoute default/web spec.rules[0]."
    assert [line.partition(at)[2].partition(" ")[0] for line in lines] == [
        "matches[0].path.value:",
        "matches[0].headers[1].name:",
        "matches[0].headers[2].value:",
        "matches[0].queryParams[0].value:",
        "timeouts.request:",
        "timeouts.request:",
        "filters[0].requestMirror.backendRef.name:",
        "backendRefs[0].name:",
    ]
    assert lines[-1].endswith("Service default/wab not found, did you mean web?")
    assert "requests to any path with header x-a, header x-b, query" in lines[5]
    assert lines[1].endswith("is a duplicate and ignored (warning)")


def test_a_bad_expression_alone_costs_its_rule_only(shop: Callable[[str], Path]) -> None:
    matches = "  - matches: [{path: {type: RegularExpression, value: (/a}}]\n    backendRefs"
    path = shop(PLAIN.replace("  - backendRefs", matches))
    (line,) = lines_of(path)
    assert "spec.rules[0].matches[0].path.value: UnsupportedValue" in line
    assert "(5 objects in 1 file)" in call("check", "-f", str(path)).err


def test_hidden_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SHOP)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "b.yaml").write_text("not an object")
    (tmp_path / ".c.yaml").write_text("not an object")
    outcome = call("check", "-f", str(tmp_path))
    assert (outcome.status, outcome.out) == (0, "")
    assert "in 1 file)" in outcome.err


def test_wrong_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("apiVersion: config.gateway.edge.io/v1alpha1\nkind: EdgeGateway\ngatway: {}\n")
    outcome = call("check", "-f", str(QUICKSTART), "--config", str(path))
    assert outcome.status == 1
    assert f"{path}:3 " in outcome.out


def test_an_empty_folder_is_a_problem(tmp_path: Path) -> None:
    outcome = call("check", "-f", str(tmp_path))
    assert outcome.status == 1
    assert "no file ends in" in outcome.out


@pytest.mark.parametrize(
    "arguments",
    [(), ("-f", "/no/such/file"), ("-f", str(QUICKSTART), "-o", "xml"), ("--nonsense",)],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    outcome = call("check", *arguments)
    assert outcome.status == 2
    assert outcome.out == ""
    assert "Usage:" in outcome.err


def test_names_from_files_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "escape.yaml"
    path.write_text('apiVersion: v1\nkind: "Serv\\e[31mice"\nmetadata: {name: a}\n')
    assert "\x1b" not in call("check", "-f", str(path)).out


@pytest.mark.parametrize(
    ("text", "said"), [("\tx: 1\n", "YAML: a tab indents the line"), ("a: [1", "YAML: ")]
)
def test_a_file_that_cannot_be_read_is_all_that_is_told(
    tmp_path: Path, text: str, said: str
) -> None:
    """What seems to be missing may be in it."""
    file = tmp_path / "a.yaml"
    file.write_text(text)
    outcome = call("check", "-f", str(file))
    (line,) = outcome.out.splitlines()
    assert said in line and outcome.status == 1
    file.write_text("# nothing\n")
    assert "Required a Gateway" in call("check", "-f", str(file)).out


def test_ingresses_of_other_classes_need_no_gateway(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, namespace: b}\n"
        "spec: {ingressClassName: nginx, defaultBackend: {service: {name: a, port: {number: 80}}}}\n"
    )
    outcome = call("check", "-f", str(file))
    assert (outcome.status, "--ingress-class nginx" in outcome.out) == (1, True)
    assert "Gateway" not in outcome.out


def test_the_group_that_has_no_name() -> None:
    text = "apiVersion: core/v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n"
    assert "(supported: v1), did you mean v1?" in call("check", "-f", "-", stdin=text).out
