"""A route of a file with a mistake: what it was to serve is closed, and no broader route takes its requests instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgefast.explain.explain import explain
from edgefast.explain.request_spec import RequestSpec
from edgefast.explain.served_fleet import Served
from edgefast.explain.source_location import Origin
from edgefast.providers.files import FileSource, Reading
from edgefast.translate import Settings, Translation, translate
from tests.support.documents import backend

pytestmark = pytest.mark.pure

WORLD = (
    """apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec: {controllerName: gateway.edge.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec: {gatewayClassName: edge, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: all}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front}
spec:
  parentRefs: [{name: edge}]
  hostnames: [shop.example]
  rules:
  - matches: [{path: {value: /}}, {path: {value: /other}}]
    backendRefs: [{name: web, port: 80}]
---
"""
    + backend(
        "web", port="name: http, port: 80", target="name: http, port: 3001", address="127.0.0.1"
    )
    + """---
apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {name: few}
spec: {type: Global, global: {rules: [{limit: {requests: 1, unit: Hour}}]}}
"""
)
#: Sorts behind the other routes, which win whatever is equal.
ROUTE = """apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: login}
spec:
  parentRefs: [{name: edge}]
  hostnames: [shop.example]
  rules:
  - matches:
    - path: {type: PathPrefix, value: /login}
    filters:
    - type: ExtensionRef
      extensionRef: {group: gateway.edge.io, kind: RateLimitFilter, name: few}
    backendRefs: [{name: web, port: 80}]
"""
PROXY = "{group: gateway.edge.io, kind: EdgeProxy, name: tuned"
PATH = "    - path: {type: PathPrefix, value: /login}\n"
#: What is written -> what is written instead: /login is answered 500, all else as before.
NARROW = [
    ("backendRefs:", "backendRef:"),
    ("port: 80", "port: eighty"),
    ("type: ExtensionRef", "type: ExtensionReff"),
    ("filters:", "filter:"),
    ("matches:", "match:"),
    ("path:", "pth:"),
    ("type: PathPrefix, ", "typ: PathPrefix, "),
    ("value: /login", "value: login"),
    ("hostnames: [shop.example]", "hostnames: shop.example"),
    ("[shop.example]", "[Shop.Example]"),
    ("shop.example", "https://shop.example:8443/"),
    ("hostnames:", "hostname:"),
    ("parentRefs: [{name: edge}]", "parentRefs: {name: edge}"),
    ("[{name: edge}]", "[{name: edge, sectionName: [http]}]"),
    ("parentRefs:", "parentRef:"),
    ("name: login", "name: [login]"),
    ("{name: login}", "{name: Log In, labels: [a]}"),
    ("kind: HTTPRoute\n", "kind: HTTProute\n"),
    ("gateway.networking.k8s.io/v1\n", "gateway.networking.k8s.io/v7\n"),
    ("apiVersion: gateway.networking.k8s.io/v1\n", ""),
    ("spec:\n", "spec:\n  parents: 1\n"),
]
#: -> every path of shop.example is answered 500, also what longer prefixes of others are for.
EVERY = [
    ("type: PathPrefix", "type: Prefix"),
    ("type: PathPrefix", "strange: 1, type: Pathprefix"),
    ("type: PathPrefix, value: /login", "type: Glob, value: '*/login'"),
    ("type: PathPrefix, value: /login", "type: RegularExpression, value: '(?!x)'}\n      method: [a]\n      headers: {"),
    ("path: {type: PathPrefix, value: /login}", "path: /login"),
    ("path: {type: PathPrefix, value: /login}", "path:\n      type: PathPrefix\n      value: /login"),
    ("path: {type: PathPrefix, value: /login}", "value: /login"),
    ("value: /login", "value: [/login]"),
    ("value: /login", f"value: /{'a' * 2000}"),
    (PATH, "    - /login\n"),
    ("  - matches:\n" + PATH, "  - matches: true\n"),
    ("value: /login}", "value: /login}\n      path: {value: /log}"),
    ("    backendRefs:", "    matches: [{path: {value: /log}}]\n    backendRefs:"),
    ("  rules:\n", "  rules: []\n  rules:\n"),
]  # fmt: skip
#: -> a place cannot be told: nothing is closed, and that is said.
LOST = [
    ("parentRefs: [{name: edge}]", "parentRefs: [{nom: 7}]"),
    ("  parentRefs: [{name: edge}]\n", "  ports: true\n"),
    ("hostnames: [shop.example]", "hostnames: [10.0.0.1]"),
    ("[shop.example]", "[[shop.example]]"),
    ("spec:", "spec: []\nspecs:"),
]


def _read(folder: Path, route: str) -> Reading:
    (folder / "world.yaml").write_text(WORLD)
    (folder / "route.yaml").write_text(route)
    return FileSource([folder]).read()


def _serve(reading: Reading) -> tuple[Translation, Callable[[str], tuple[int, str]]]:
    """Return the translation, and what the answer to a URL is: its status (0: that of a backend), and the rule's route."""
    served = translate(reading.snapshot, Settings(standalone=True))
    (fleet,) = served.ir.fleets
    table = Served(fleet, origin=Origin(served, reading.problems))

    def ask(url: str) -> tuple[int, str]:
        scheme, _, rest = url.rpartition("://")
        host, _, path = rest.partition("/")
        found = explain(
            table, RequestSpec(scheme=scheme or "http", host=host, port=80, target=f"/{path}")
        )
        assert found.rule is not None
        return found.answers[0].status or 0, found.rule.route

    return served, ask


def _replaced(change: tuple[str, str]) -> str:
    before, after = change
    assert before in ROUTE
    return ROUTE.replace(before, after, 1)


def test_a_sound_route_is_open(tmp_path: Path) -> None:
    reading = _read(tmp_path, ROUTE)
    assert reading.problems == ()
    _, ask = _serve(reading)
    assert ask("shop.example/login") == (0, "default/login")
    assert ask("shop.example/") == (0, "default/front")


@pytest.mark.parametrize("change", NARROW, ids=lambda one: one[1].strip())
def test_the_place_of_a_route_with_a_mistake_is_closed(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    reading = _read(tmp_path, _replaced(change))
    assert any(one.severity == "error" for one in reading.problems)
    served, ask = _serve(reading)
    assert ask("shop.example/login")[0] == ask("shop.example/login/deep")[0] == 500
    assert ask("shop.example/") == ask("shop.example/other") == (0, "default/front")
    assert ask("other.example/login") == (0, "default/all")
    (said,) = [one for one in served.problems if "get 500" in one.message]
    assert said.severity == "warning"
    assert said.message.endswith("requests to /login and paths below it of shop.example get 500")
    assert said.source is not None and said.source.file.endswith("route.yaml")
    (status,) = [
        one for key, one in served.statuses.http_routes.items() if key[1] not in ("all", "front")
    ]
    assert [one.status for one in status.parents[0].conditions if one.type == "Accepted"] == [
        "False"
    ]


@pytest.mark.parametrize("change", [*EVERY, *LOST], ids=lambda one: one[1].strip()[:40])
def test_a_match_that_cannot_be_read_closes_its_hostnames_and_a_place_is_reported(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    reading = _read(tmp_path, _replaced(change))
    assert any(one.severity == "error" for one in reading.problems)
    served, ask = _serve(reading)
    asked = {ask(f"shop.example{path}") for path in ("/login", "/", "/x", "/other")}
    assert asked == {(500, "default/login") if change in EVERY else (0, "default/front")}
    assert ask("other.example/login") == (0, "default/all")
    said = "any path" if change in EVERY else "go to other routes"
    assert any(said in one.message for one in served.problems)


def test_conditions_that_can_be_read_stay(tmp_path: Path) -> None:
    """An entry whose value cannot be read is asked for by its name; one without a name is left out."""
    said = (
        "    - path: {value: /login}\n      method: POST\n      queryParams: [{value: a}]\n"
        "      headers: [{name: x-canary, value: 1}, {name: x-sound, value: a}]\n"
    )
    reading = _read(tmp_path, ROUTE.replace(PATH, said))
    route = reading.snapshot.http_routes["default", "login"]
    (match,) = route.spec.rules[0].matches
    assert (match.path.value, match.method, match.query_params) == ("/login", "POST", ())
    assert [(one.name, one.type) for one in match.headers] == [
        ("x-canary", "RegularExpression"),
        ("x-sound", "Exact"),
    ]
    served, _ = _serve(reading)
    (told,) = [one.message for one in served.problems if "get 500" in one.message]
    assert "POST /login and paths below it with header x-canary, header x-sound" in told


def test_all_rules_of_the_route_are_closed(tmp_path: Path) -> None:
    more = "  - matches: [{path: {type: Exact, value: /admin}}]\n    backendRefs: [{name: web, port: 80}]\n"
    _, ask = _serve(_read(tmp_path, ROUTE.replace("type: ExtensionRef", "type: No") + more))
    assert ask("shop.example/admin")[0] == 500
    assert ask("shop.example/admin/x") == (0, "default/front")


def test_routes_whose_names_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    nameless = ROUTE.replace("name: login", "nom: login")
    other = nameless.replace("/login", "/pay")
    _, ask = _serve(_read(tmp_path, f"{nameless}---\n{other}"))
    assert ask("shop.example/login")[0] == ask("shop.example/pay")[0] == 500


def test_a_good_version_goes_on(tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text(WORLD)
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE.replace("/login", "/first"))
    source = FileSource([tmp_path])
    source.read()
    file.write_text(ROUTE.replace("type: PathPrefix", "type: Prefix"))
    _, ask = _serve(source.read())
    assert ask("shop.example/first") == (0, "default/login")
    assert ask("shop.example/login") == (0, "default/front")
    # Also when the edit gives the route another name at the same time.
    file.write_text(
        ROUTE.replace("type: PathPrefix", "type: Prefix").replace("name: login", "name: b")
    )
    _, ask = _serve(source.read())
    assert ask("shop.example/first") == (0, "default/login")
    assert ask("shop.example/login") == (0, "default/front")
    # A start knows no good version.
    _, ask = _serve(FileSource([tmp_path]).read())
    assert ask("shop.example/login")[0] == 500


def test_a_closed_place_is_opened_by_the_mend(tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text(WORLD)
    file = tmp_path / "route.yaml"
    file.write_text(ROUTE.replace("type: PathPrefix", "type: Prefix"))
    source = FileSource([tmp_path])
    first = source.read()
    assert (first.objects, first.usable) == (7, True)
    before, ask = _serve(first)
    assert ask("shop.example/login")[0] == 500
    file.write_text(ROUTE)
    second = source.read()
    after, ask = _serve(second)
    assert ask("shop.example/login") == (0, "default/login")
    assert translate(second.snapshot, Settings(standalone=True), before).ir == after.ir


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("requests: 1", "requests: one"),
        ("spec: {type: Global", "spc: {type: Global"),
        ("few", "[few]"),
    ],
)
def test_a_limit_with_a_mistake_closes_the_rules_that_have_it(
    tmp_path: Path, before: str, after: str
) -> None:
    (tmp_path / "route.yaml").write_text(ROUTE)
    (tmp_path / "world.yaml").write_text(WORLD.replace(before, after, 1))
    reading = FileSource([tmp_path]).read()
    assert any(one.severity == "error" for one in reading.problems)
    _, ask = _serve(reading)
    assert ask("shop.example/login") == (500, "default/login")
    assert ask("shop.example/") == (0, "default/front")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spec: {contr", f"spec: {{parametersRef: {PROXY}, namespace: default}}, contr"),
        ("Name: edge,", f"Name: edge, infrastructure: {{parametersRef: {PROXY}}}}},"),
    ],
    ids=["GatewayClass", "Gateway"],
)
def test_settings_with_a_mistake_close_what_refers_to_them(
    tmp_path: Path, before: str, after: str
) -> None:
    """At a first start: without them a Gateway would listen more openly than it is to."""
    settings = (
        "---\napiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {name: tuned}\n"
        "spec: {clientAddress: {trustedHop: 1}}\n"
    )
    (tmp_path / "world.yaml").write_text(WORLD.replace(before, after) + settings)
    served = translate(FileSource([tmp_path]).read().snapshot, Settings(standalone=True))
    hosts = [host for fleet in served.ir.fleets for host in fleet.virtual_hosts]
    assert not [one for host in hosts for one in host.rules if one.status == 0]
