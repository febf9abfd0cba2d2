"""What a person reads: names, files, comments and the report of a conversion."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.convert.conversion import Line
from edgefast.convert.convert import convert_ingresses
from edgefast.convert.render import render_objects
from edgefast.translate.settings import IngressSettings, Settings
from ingress.cases import read_cases
from ingress.generate import Generator
from tests.convert.documents import SERVICE, ingress
from tests.convert.round_trip import GATEWAY, Sides, convert_objects

pytestmark = pytest.mark.pure

CASES = Path(__file__).parent / "cases"
_NGINX = IngressSettings(classes=("nginx",))
#: Settings of ingress-nginx that allow snippets.
SNIPPETS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": "ingress-nginx", "name": "ingress-nginx-controller"},
    "data": {"allow-snippet-annotations": "true", "annotations-risk-level": "Critical"},
}


def _convert(*objects: dict[str, Any]) -> Sides:
    return convert_objects([*SERVICE, *objects], ingress=IngressSettings())


def _names(sides: Sides, kind: str) -> list[str]:
    found = [one for one in yaml.safe_load_all(sides.text) if one["kind"] == kind]
    return [f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in found]


def _line(sides: Sides, setting: str) -> Line:
    (found,) = [one for one in sides.conversion.report if one.setting == setting]
    return found


@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*.in.yaml")), ids=lambda path: path.name.removesuffix(".in.yaml")
)
def test_case(path: Path, request: pytest.FixtureRequest) -> None:
    decoded = decode_documents(path.read_bytes(), path.name)
    assert not decoded.problems
    found = convert_ingresses(Snapshot.of(decoded.objects), Settings(ingress=_NGINX), GATEWAY)
    rows = [
        f"# {one.object} {one.setting}: {one.result}{f': {one.how}' if one.how else ''}\n"
        for one in found.report
    ]
    text = "".join(rows) + "---\n" + render_objects(found.objects)
    golden = path.with_name(path.name.replace(".in.yaml", ".out.yaml"))
    if request.config.getoption("--update-goldens"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_a_route_has_the_name_of_its_ingress() -> None:
    sides = _convert(
        ingress("/", {}, name="web", tls="exact"),
        ingress("/", {}, name="web-redirect", host="b.test"),
    )
    assert _names(sides, "HTTPRoute") == [
        "shop/web-redirect",
        "shop/web-redirect-a.test",
        "shop/web",
    ]


def test_no_name_of_an_existing_object_is_used() -> None:
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"namespace": "shop", "name": "one"},
        "spec": {},
    }
    assert _names(_convert(ingress("/", {}), route), "HTTPRoute") == ["shop/one-2"]


def test_hosts_with_the_same_rules_are_one_route() -> None:
    one = ingress("/", {})
    other = {**one["spec"]["rules"][0], "host": "b.test"}
    one["spec"]["rules"].append(other)
    (route,) = [one for one in yaml.safe_load_all(_convert(one).text) if one["kind"] == "HTTPRoute"]
    assert route["spec"]["hostnames"] == ["a.test", "b.test"]


def test_names_are_valid_in_kubernetes() -> None:
    """Names without upper-case letters, references that exist: nothing of the made objects is left."""
    for seed in range(40):
        text = convert_objects(Generator(seed).objects()).text
        assert ".Ingress" not in text
        for one in yaml.safe_load_all(text):
            name = one["metadata"]["name"]
            assert name == name.lower() and len(name) <= 253


def test_every_gateway_has_at_most_64_listeners() -> None:
    many = []
    for number in range(130):
        host = f"h{number}.test"
        many.append(ingress("/", {}, name=f"i{number}", host=host, tls=f"secret-{number}"))
    sides = _convert(*many)
    gateways = [one for one in yaml.safe_load_all(sides.text) if one["kind"] == "Gateway"]
    assert [len(one["spec"]["listeners"]) for one in gateways] == [64, 64, 3]
    assert [one["metadata"]["name"] for one in gateways] == ["ingress", "ingress-2", "ingress-3"]
    assert "mergeGateways: true" in sides.text


def test_a_certificate_of_another_namespace_has_a_grant() -> None:
    sides = _convert(ingress("/", {}, tls="exact"))
    (grant,) = [one for one in yaml.safe_load_all(sides.text) if one["kind"] == "ReferenceGrant"]
    assert grant["metadata"] == {"namespace": "shop", "name": "gateway-edge-gateway-system-secret"}
    assert grant["spec"]["to"] == [{"group": "", "kind": "Secret", "name": "exact"}]


def test_a_secret_that_is_not_in_the_input_has_a_listener() -> None:
    sides = _convert(ingress("/", {}, tls="later"))
    assert "https.a.test" in sides.text
    line = _line(sides, "spec.tls[0].secretName")
    assert (line.result, line.how) == (
        "same",
        "Secret shop/later is not in the input; the listener needs it",
    )


def test_passwords_are_a_secret_of_their_own() -> None:
    auth = {"auth-type": "basic", "auth-secret": "users"}
    sides = _convert(ingress("/", auth))
    (secret,) = [one for one in yaml.safe_load_all(sides.text) if one["kind"] == "Secret"]
    assert secret["metadata"]["name"] == "users-htpasswd"
    assert base64.b64decode(secret["data"][".htpasswd"]).startswith(b"user:{SHA}")


def test_a_canary_without_known_endpoints_is_converted() -> None:
    """Files have no EndpointSlices; a canary whose Service has none now is left out and reported."""
    canary = {"canary": "true", "canary-weight": "20"}
    objects = [one for one in SERVICE if one["kind"] != "EndpointSlice"]
    pair = (ingress("/", {}), ingress("/", canary, name="next", service="empty"))
    sides = convert_objects([*objects, *pair], ingress=IngressSettings())
    assert "weight: 20" in sides.text
    assert "canary: Ingress shop/next canary-weight" in sides.text
    sides = _convert(*pair)
    assert "weight" not in sides.text
    assert _line(sides, "canary").result == "differs"


@pytest.mark.parametrize(
    ("annotations", "setting", "result"),
    [
        ({"rewrite-target": "/"}, "rewrite-target", "same"),
        ({"proxy-buffering": "off"}, "proxy-buffering", "same"),
        ({"canary-weight": "1"}, "canary", "same"),
        ({"auth-type": "kerberos"}, "auth-type", "refused"),
        ({"auth-type": "kerberos", "affinity": "cookie"}, "affinity", "refused"),
        ({"ssl-redirect": "maybe"}, "ssl-redirect", "same"),
        ({"rewrite-targt": "/"}, "rewrite-targt", "same"),
        ({"affinity": "cookie"}, "affinity", "differs"),
        ({"limit-rps": "1"}, "limit-rps", "same"),
        ({"limit-rps": "many"}, "limit-rps", "refused"),
        ({"limit-rps": "1", "limit-whitelist": "here"}, "limit-whitelist", "refused"),
        ({"whitelist-source-range": "here"}, "whitelist-source-range", "refused"),
        ({"limit-rate": "1"}, "limit-rate", "same"),
        ({"limit-rate": "x"}, "limit-rate", "same"),
        ({"app-root": "/$x"}, "app-root", "refused"),
        ({"custom-http-errors": "404"}, "custom-http-errors", "same"),
        ({"proxy-connect-timeout": "9"}, "proxy-connect-timeout", "same"),
        ({"proxy-cookie-path": "/ /a/"}, "proxy-cookie-path", "same"),
        ({"upstream-hash-by": "$server_name"}, "upstream-hash-by", "refused"),
        ({"load-balance": "ewma"}, "load-balance", "differs"),
        ({"auth-url": "http://auth.test"}, "auth-url", "same"),
        ({"backend-protocol": "HTTPS"}, "backend-protocol", "same"),
        ({"proxy-ssl-secret": "default/gone"}, "proxy-ssl-secret", "refused"),
        ({"auth-url": "http://$host/auth"}, "auth-url", "refused"),
    ],
)
def test_the_report_has_the_result_of_each_annotation(
    annotations: dict[str, str], setting: str, result: str
) -> None:
    assert _line(_convert(ingress("/", annotations)), setting).result == result


@pytest.mark.parametrize("name", ["whitelist-source-range", "limit-whitelist"])
def test_the_report_has_no_annotation_that_the_ingress_lacks(name: str) -> None:
    sides = _convert(ingress("/", {"limit-rps": "1", name: "10.0.0.0/8,here"}))
    settings = {one.setting for one in sides.conversion.report if one.result == "refused"}
    assert settings & {name, "allowlist-source-range", "limit-allowlist"} == {name}


def test_the_report_has_a_line_for_each_annotation() -> None:
    for case in read_cases():
        report = convert_objects(case.objects).conversion.report
        lines = {(one.object, one.setting) for one in report}
        for one in case.objects:
            meta = one["metadata"]
            if one["kind"] != "Ingress" or one["spec"].get("ingressClassName") != "nginx":
                continue
            for name in meta.get("annotations", ()):
                short = name.removeprefix("nginx.ingress.kubernetes.io/")
                if short != name:
                    assert (f"Ingress {meta['namespace']}/{meta['name']}", short) in lines, (
                        case.name
                    )


def test_comments_name_error_pages_and_snippets() -> None:
    pages = {"custom-http-errors": "404", "default-backend": "two"}
    text = _convert(ingress("/", pages)).text
    assert "# Ingress shop/one: custom-http-errors, default-backend" in text
    listed = {"configuration-snippet": "allow 10.0.0.0/8;\ndeny all;"}
    text = _convert(ingress("/", listed), SNIPPETS).text
    assert "# Ingress shop/one: configuration-snippet\n" in text


def test_comments_of_answers_of_a_snippet() -> None:
    lines = ("if ($http_x = a) { return 404; }", "if ($http_x = b) { return 503; }", "return 204;")
    annotations = {"configuration-snippet": "\n".join(lines), "enable-cors": "true"}
    text = _convert(ingress("/", annotations), SNIPPETS).text
    assert text.count("# annotation configuration-snippet\n") == 3
    assert text.count("# configuration-snippet: Ingress shop/one\n") == 2
    assert "not served" not in text
    assert "default backend" not in text
    both = "# enable-cors: answer to a preflight request, configuration-snippet: Ingress shop/one\n"
    assert both in text


def test_comments_of_other_answers_beside_a_snippet() -> None:
    annotations = {"configuration-snippet": "more_set_headers 'x: y';", "enable-cors": "true"}
    text = _convert(ingress("/", annotations), SNIPPETS).text
    assert "# enable-cors: answer to a preflight request: Ingress shop/one\n" in text


def test_comments_of_a_snippet_that_closes_its_locations() -> None:
    text = _convert(ingress("/", {"configuration-snippet": "access_by_lua_file x;"}), SNIPPETS).text
    assert "# not served: annotation configuration-snippet\n" in text
    assert "# not served: Ingress shop/one\n" in text


def test_the_report_never_shows_a_value() -> None:
    sides = _convert(ingress("/", {"configuration-snippet": "return 418 secret-text;"}))
    assert "secret-text" not in sides.text
    assert all("secret-text" not in f"{one.how}{one.fix}" for one in sides.conversion.report)


def test_other_classes_are_reported() -> None:
    other = ingress("/", {})
    other["spec"]["ingressClassName"] = "other"
    sides = _convert(ingress("/", {}, name="ours"), other)
    line = next(one for one in sides.conversion.report if one.object == "Ingress shop/one")
    assert 'class "other"' in line.how
    assert _names(sides, "HTTPRoute") == ["shop/ours"]
