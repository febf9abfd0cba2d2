"""HTTPRouteFilters: a match that they make several of is one to people, and cookies are never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.kube.reflector import Item
from controller.kube.store import Source, Store
from edgefast.api.kinds import Object
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.diagnostics.redact import is_credential
from edgefast.providers.files import FileSource
from edgefast.translate import Settings, Translation, translate
from tests.support.manifest import manifest

from . import world
from .test_incremental import PLAIN

pytestmark = pytest.mark.pure

_TESTERS = {"group": "gateway.edge.io", "kind": "HTTPRouteFilter", "name": "testers"}
_COOKIES = [{"type": "ExtensionRef", "extensionRef": _TESTERS}]


def _serve(*objects: Object) -> Translation:
    base = [world.gateway_class(), world.gateway(), world.service("web")]
    return translate(Snapshot.of([*base, *objects]), PLAIN)


def _route(*rules: dict[str, Any]) -> Object:
    """A route whose rules are of path /."""
    return world.make(
        "HTTPRoute default/r",
        {
            "parentRefs": [{"name": "gw"}],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}], **one} for one in rules],
        },
    )


def _shadowed(served: Translation) -> list[str]:
    return [one.path for one in served.problems if one.reason == "Shadowed"]


def test_one_way_of_a_match_that_is_lost_is_not_the_match() -> None:
    """The rule before it takes those with cookie a; those with cookie b still come."""
    first = {"filters": [{"type": "ExtensionRef", "extensionRef": {**_TESTERS, "name": "first"}}]}
    second = {"filters": _COOKIES}
    served = _serve(
        _route(first, second, {}),
        world.cookies("first", {"a": "1"}),
        world.cookies("testers", {"a": "1"}, {"b": "2"}),
    )
    assert _shadowed(served) == []
    served = _serve(
        _route(first, second, {}),
        world.cookies("first", {"a": "1"}),
        world.cookies("testers", {"a": "1"}, {"a": "1", "b": "2"}),
    )
    assert _shadowed(served) == []  # with two cookies it comes before


def test_a_match_of_which_every_way_is_lost_is_told_once() -> None:
    first = {"filters": [{"type": "ExtensionRef", "extensionRef": {**_TESTERS, "name": "first"}}]}
    served = _serve(
        _route(first, {"filters": _COOKIES}, {}),
        world.cookies("first", {"a": "1"}, {"b": "2"}),
        world.cookies("testers", {"a": "1"}, {"b": "2"}),
    )
    assert _shadowed(served) == ["spec.rules[1]"]


def test_a_rule_whose_filter_is_gone_stands_before_its_equals() -> None:
    served = _serve(_route({}, {"filters": _COOKIES}))
    (fleet,) = served.ir.fleets
    (host,) = fleet.virtual_hosts
    assert [one.rule for one in host.entries] == [1, 0]
    assert host.rules[1].status == 500


def test_values_of_cookies_are_credentials() -> None:
    assert is_credential("cookie:anything")


_BROKEN = {
    "HTTPRouteFilter": {"directResponse": {"statusCode": "no"}},
    "RateLimitFilter": {"type": "Global", "global": {"rules": 5}},
}
_SAYS = {
    "HTTPRouteFilter": "spec.directResponse.statusCode",
    "RateLimitFilter": "spec.global.rules",
}


@pytest.mark.parametrize("kind", _BROKEN)
@pytest.mark.parametrize("cluster", [False, True])
def test_a_filter_with_a_mistake_is_told_as_one(kind: str, cluster: bool, tmp_path: Path) -> None:
    """The rule that names it says what is wrong, and not that it was not found; `check` says it once."""
    reference = {"group": "gateway.edge.io", "kind": kind, "name": "f"}
    route = _route({"filters": [{"type": "ExtensionRef", "extensionRef": reference}]})
    raw: dict[str, Any] = manifest(
        f"{kind} default/f", _BROKEN[kind], api="gateway.edge.io/v1alpha1"
    )
    told: list[Problem] = []
    if cluster:
        store = Store(lambda: None, lambda ref: None)
        text = msgspec.Raw(msgspec.json.encode(raw))
        store.put(Source(released=True), kind, Item("default", "f", "1", text))
        snapshot = store.snapshot()
    else:
        (tmp_path / "f.json").write_bytes(msgspec.json.encode(raw))
        reading = FileSource([tmp_path]).read()
        snapshot, told = reading.snapshot, list(reading.problems)
    base = [world.gateway_class(), world.gateway(), world.service("web"), route]
    served = translate(snapshot.replace(base), Settings(standalone=not cluster))
    (rule,) = served.ir.fleets[0].virtual_hosts[0].rules
    assert rule.status == 500 and f"{kind} default/f {_SAYS[kind]}: Invalid" in rule.reason
    assert "not found" not in rule.reason
    (parent,) = served.statuses.http_routes["default", "r"].parents
    resolved = next(one for one in parent.conditions if one.type == "ResolvedRefs")
    assert resolved.status == "False" and _SAYS[kind] in resolved.message
    every = [str(one) for one in (*told, *served.problems)]
    assert len([one for one in every if _SAYS[kind] in one]) == 1, every
    # With a sound version the rule is served.
    sound = (
        world.route_filter("f", "c") if kind == "HTTPRouteFilter" else world.rate_limit_filter("f")
    )
    after = translate(snapshot.replace([*base, sound]), Settings(standalone=not cluster), served)
    assert "has a mistake" not in str(after.problems) and _SAYS[kind] not in str(after.problems)
