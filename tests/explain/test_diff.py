"""`edgefast diff`: golden texts of small changes to shop.yaml, exit statuses, and random tables against random requests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from cli.calling import call
from edgefast import ir
from edgefast.explain import RequestSpec, Served
from edgefast.explain.compare import classify, compare_requests
from edgefast.explain.fleet_pair import Pair
from edgefast.explain.outcome import find_outcome
from tests.explain.random_tables import Tables

pytestmark = pytest.mark.pure

CASES = Path(__file__).parent / "cases"
SHOP = (CASES / "shop.yaml").read_text()

FIRST_SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web,"
RIVAL = """apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: rival, namespace: default}
spec:
  gatewayClassName: edge
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
"""

#: name: what is replaced by what, exit status
CHANGES: dict[str, tuple[list[tuple[str, str]], int]] = {
    "nothing": ([("\n---\n", "\n---\n# a comment\n")], 0),
    "order-of-objects": ([], 0),
    "path": ([("value: /limited", "value: /limitd")], 3),
    "backend": ([("- {name: api, port: 80, weight: 9}", "- {name: web, port: 80, weight: 9}")], 1),
    "backend-gone": ([("backendRefs: [{name: api, port: 80}]", "backendRefs: [{name: apo, port: 80}]")], 3),
    "filter": ([("value: shop}", "value: shoop}"), ("request: 5s", "request: 6s")], 1),
    "repaired": ([("backendRefs: [{name: gone, port: 80}]", "backendRefs: [{name: web, port: 80}]")], 1),
    "hostname": ([("[www.example.com, www.shop", "[ww.example.com, www.shop")], 3),
    "limit": ([("requests: 10", "requests: 20")], 1),
    "closed": ([("requests: 10", "requests: 0")], 3),
    "endpoints": ([("{addresses: [10.0.0.2]}", "{addresses: [10.0.0.9]}")], 1),
    "no-endpoints": ([("endpoints: [{addresses: [10.0.0.3]}]", "endpoints: []")], 3),
    "listener": ([("port: 8080, hostname", "port: 8081, hostname")], 3),
    "listener-conflict": ([(FIRST_SERVICE, RIVAL + FIRST_SERVICE)], 1),
    "overlap": ([('hostnames: ["*.example.com"]', 'hostnames: ["*.example.com", www.example.com]')], 1),
    "regex": ([('"/v[0-9]+/.*"', '"/(?i:v)[0-9]+/.*"')], 1),
    "shadowed": ([("value: /old}", "value: /old}, method: GET"), ("value: /empty", "value: /api")], 1),
    "parent": ([("name: edge, sectionName: http", "name: edge, sectionName: htp")], 3),
    "redirect": ([("status", "status"), ("scheme: https, path", "scheme: https, statusCode: 301, path")], 1),
    "mistake": ([("type: RegularExpression, value: \"/v", "type: RegularExpresion, value: \"/v")], 3),
}  # fmt: skip


def change(name: str) -> str:
    text = SHOP
    if name == "order-of-objects":
        return "\n---\n".join(reversed(text.split("\n---\n")))
    for old, new in CHANGES[name][0]:
        assert old in text or old == new, old
        text = text.replace(old, new, 1)
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text(SHOP)
    return tmp_path


@pytest.mark.parametrize("name", CHANGES)
def test_text(name: str, folder: Path, request: pytest.FixtureRequest) -> None:
    (folder / "new.yaml").write_text(change(name))
    outcome = call("diff", "old.yaml", "new.yaml")
    text = f"{outcome.out}{outcome.err}exit status {outcome.status}\n"
    golden = CASES / "diff" / f"{name}.txt"
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()
    assert outcome.status == CHANGES[name][1]


def test_every_golden_is_a_change() -> None:
    assert {path.stem for path in (CASES / "diff").iterdir()} == CHANGES.keys()


def test_json(folder: Path) -> None:
    (folder / "new.yaml").write_text(change("path"))
    told = orjson.loads(call("diff", "old.yaml", "new.yaml", "-o", "json").out)
    assert told["breaks"] is True
    assert told["examples"] > 10
    first = told["changes"][0]
    assert first["kind"] == "lost"
    assert first["breaks"] is True
    assert first["example"] == {"method": "GET", "url": "http://www.example.com/limited"}
    assert first["before"] == {
        "rule": "default/web rule limited",
        "answer": "service/default/web/80",
        "source": "old.yaml:46",
    }
    assert first["after"]["answer"] == "404"


def test_examples_can_be_explained(folder: Path) -> None:
    """What diff says of an example is what explain says."""
    for name in ("path", "backend-gone", "hostname", "no-endpoints", "redirect"):
        (folder / "new.yaml").write_text(change(name))
        told = orjson.loads(call("diff", "old.yaml", "new.yaml", "-o", "json").out)
        for one in told["changes"]:
            for side, file in (("before", "old.yaml"), ("after", "new.yaml")):
                if side not in one:
                    continue
                example = one["example"]
                words = [
                    w for header in example.get("headers", ()) for w in ("-H", ": ".join(header))
                ]
                said = orjson.loads(
                    call(
                        "explain",
                        "-f",
                        file,
                        "-o",
                        "json",
                        example["method"],
                        example["url"],
                        *words,
                    ).out
                )
                rule = said.get("rule")
                named = f"{rule['route']} rule {rule.get('name') or rule['index']}" if rule else ""
                assert named == one[side].get("rule", ""), (name, one, said)


def test_folders_and_cluster(folder: Path) -> None:
    for name, text in (("a", SHOP), ("b", change("backend-gone"))):
        (folder / name).mkdir()
        (folder / name / "shop.yaml").write_text(text)
    assert call("diff", "a", "a").status == 0
    assert call("diff", "a", "b").status == 3
    outcome = call("diff", "--cluster", "a", "b")
    assert outcome.status == 3
    assert "default/web rule 1" in outcome.out


@pytest.mark.parametrize("arguments", [(), ("old.yaml",), ("old.yaml", "none.yaml")])
def test_wrong_usage(arguments: tuple[str, ...], folder: Path) -> None:
    assert call("diff", *arguments).status == 2


# --- random tables ------------------------------------------------------------------------------------------------


def mutate(fleet: ir.Fleet, choose: random.Random) -> ir.Fleet:
    """Change one thing: leave a match or a host out, change a match's method or a rule's backends."""
    hosts = list(fleet.virtual_hosts)
    if not hosts:
        return fleet
    at = choose.randrange(len(hosts))
    host = hosts[at]
    kind = choose.choice(["entry", "method", "rule", "host"])
    if kind == "host":
        del hosts[at]
    elif kind == "rule":
        rules = list(host.rules)
        number = choose.randrange(len(rules))
        rules[number] = ir.Rule(route=rules[number].route, index=number, status=500)
        hosts[at] = msgspec.structs.replace(host, rules=tuple(rules))
    else:
        entries = list(host.entries)
        number = choose.randrange(len(entries))
        entry = entries.pop(number)
        if kind == "method" and not entry.match.method:
            # Stays in its place: what it names is less than it was, so the order remains one of precedence.
            match = msgspec.structs.replace(entry.match, method="DELETE")
            entries.insert(number, ir.Entry(match=match, rule=entry.rule))
        hosts[at] = msgspec.structs.replace(host, entries=tuple(entries))
    return msgspec.structs.replace(fleet, virtual_hosts=tuple(hosts))


@pytest.mark.parametrize("start", range(0, 100, 20))
def test_what_random_requests_see_is_told(start: int) -> None:
    """If any of many random requests is answered otherwise, there is a change; and if there is one, its example is."""
    seen = 0
    for seed in range(start, start + 20):
        tables = Tables(seed, 1)
        old = tables.fleet()
        new = mutate(old, random.Random(seed))
        pair = Pair(Served(old), Served(new))
        told = list(compare_requests(pair))
        differs = [
            ask
            for ask in tables.asks(100)
            if classify(*(find_outcome(side, ask) for side in pair.sides())) is not None
        ]
        # What only an expression takes may be told as unknown.
        plain = [ask for ask in differs if not any(_is_regex(side, ask) for side in pair.sides())]
        assert not plain or any(one.kind != "unknown" for one in told), (seed, plain[0])
        assert not differs or told, (seed, differs[0])
        seen += len(differs)
    assert seen > 0


def _is_regex(side: Served, ask: RequestSpec) -> bool:
    match = find_outcome(side, ask).match
    return match is not None and match.kind == "regex"


@pytest.mark.parametrize(
    ("changed", "ending"),
    [
        ({"path_parameters": "reject"}, ";any"),
        ({"path_parameters": "strip"}, ";any"),
        ({"escaped_slashes": "Reject"}, "%2Fany"),
        ({"raw_characters": "Reject"}, "|any?{any}"),
        ({"http10": True}, ""),
    ],
)
def test_settings_of_a_port_are_asked_about(changed: dict[str, Any], ending: str) -> None:
    def serve(**http: Any) -> Served:
        listener = ir.Listener(
            name="l", port=80, bind_port=80, protocol="HTTP", http=ir.HttpSettings(**http)
        )
        rules = tuple(
            ir.Rule(route=f"ns/{one}", index=0, backends=(ir.BackendRef(cluster="c"),))
            for one in "ab"
        )
        entries = (
            ir.Entry(match=ir.Match(kind="prefix", path="/admin"), rule=0),
            ir.Entry(match=ir.Match(kind="prefix", path=""), rule=1),
        )
        host = ir.VirtualHost(listener="l", hostname="*", rules=rules, entries=entries)
        cluster = ir.Cluster(name="c", endpoints=(ir.Endpoint(address="192.0.2.1", port=80),))
        return Served(
            ir.Fleet(name="f", listeners=(listener,), virtual_hosts=(host,), clusters=(cluster,))
        )

    assert list(compare_requests(Pair(serve(), serve()))) == []
    found = list(compare_requests(Pair(serve(), serve(**changed))))
    examples = [one.example for one in found if one.example is not None]
    assert any(ending in one.url and one.http10 is ("http10" in changed) for one in examples), found
