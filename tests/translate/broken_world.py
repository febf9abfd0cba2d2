"""Worlds with one broken object, made by a seed: Gateways, ListenerSets and HTTPRoutes of two tenants that share ports and hostnames.

Out: a `World`: the objects, which of them is X, X as it is broken, and what is to be asked. Every sound rule redirects to a host of its
own, so that an answer names the rule. Ways to break X are those that leave its place to be told (docs/reference/closed.md has the others).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

API = "gateway.networking.k8s.io/v1"
Object = dict[str, Any]
Break = Callable[[Object, Random], None]

HOSTNAMES = ("", "*.test", "*.a.test", "a.test", "b.a.test", "c.test")
HOSTS = ("a.test", "b.a.test", "d.b.a.test", "c.test", "e.test", "other.example")
PATHS = ("/", "/a", "/a/b", "/a/b/c", "/ab", "/c")
TWICE = "another one has its name"
TENANTS = ("default", "other")


class World(NamedTuple):
    """`broken` stands for `sound[at]`; with `twin` it is the second of two objects of one name."""

    sound: list[Object]
    at: int
    broken: Object
    how: str
    twin: Object | None

    def whole(self) -> list[Object]:
        """The objects as they were meant: a twin under a name of its own."""
        other = [] if self.twin is None else [_named(self.twin, "twin")]
        return [*other, *self.sound]

    @property
    def broken_key(self) -> tuple[str, str]:
        """Namespace and name of X."""
        meta = self.sound[self.at]["metadata"]
        return meta["namespace"], meta["name"]

    def is_longer(self, said: str) -> bool:
        """Tell whether a rule, by the host that it redirects to, is for more than the beginning of all paths."""
        rules = [rule for one in self.hurt() for rule in one["spec"].get("rules") or ()]
        (found,) = [
            rule
            for rule in rules
            for one in rule.get("filters") or ()
            if one.get("requestRedirect", {}).get("hostname") == said
        ]
        return any(len(match["path"]["value"]) > 1 for match in found["matches"])

    def hurt(self) -> list[Object]:
        """The objects with X broken."""
        found = list(self.sound)
        found[self.at] = self.broken
        return found if self.twin is None else [self.twin, *found]


def make_world(seed: int) -> World:
    """Return the world of a seed."""
    random = Random(seed)
    gateways = [_gateway(random, f"g{at}") for at in range(random.randint(1, 3))]
    sets = [_set(random, f"s{at}", gateways) for at in range(random.randint(0, 3))]
    parents = gateways + sets
    routes = [_route(random, f"r{at}", parents) for at in range(random.randint(2, 6))]
    sound = gateways + sets + routes
    at = random.randrange(len(sound))
    broken = copy.deepcopy(sound[at])
    ways = {**ANY, **OF_KIND[broken["kind"]]}
    how = random.choice([*ways, TWICE])
    twin = None
    if how in ways:
        ways[how](broken, random)
    else:
        make = {
            "Gateway": lambda: _gateway(random, ""),
            "ListenerSet": lambda: _set(random, "", gateways),
            "HTTPRoute": lambda: _route(random, "", parents),
        }[broken["kind"]]
        twin = make()
        twin["metadata"] = {
            **twin["metadata"],
            "name": broken["metadata"]["name"],
            "namespace": broken["metadata"]["namespace"],
        }
    return World(sound, at, broken, how, twin)


# --- sound objects --------------------------------------------------------------------------------


def _object(random: Random, kind: str, name: str, spec: Object) -> Object:
    meta: Object = {"name": name, "namespace": random.choice(TENANTS)}
    if random.random() < 0.7:
        meta["creationTimestamp"] = f"2025-01-{random.randint(1, 28):02}T00:00:00Z"
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec}


def _named(one: Object, name: str) -> Object:
    return {**one, "metadata": {**one["metadata"], "name": name}}


def _listeners(random: Random) -> list[Object]:
    made, there = [], set()
    for at in range(random.randint(1, 4)):
        port, hostname = random.choice((80, 80, 443)), random.choice(HOSTNAMES)
        if (port, hostname) in there:
            continue
        there.add((port, hostname))
        one: Object = {
            "name": f"l{at}",
            "port": port,
            "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }
        if port == 443:
            reference = {"name": "ecdsa", "namespace": "default"}
            one |= {"protocol": "HTTPS", "tls": {"certificateRefs": [reference]}}
        if hostname:
            one["hostname"] = hostname
        made.append(one)
    return made


def _gateway(random: Random, name: str) -> Object:
    spec = {
        "gatewayClassName": "edge",
        "listeners": _listeners(random),
        "allowedListeners": {"namespaces": {"from": "All"}},
    }
    return _object(random, "Gateway", name, spec)


def _set(random: Random, name: str, gateways: list[Object]) -> Object:
    parent = random.choice(gateways)["metadata"]
    reference = {"name": parent["name"], "namespace": parent["namespace"]}
    spec = {"parentRef": reference, "listeners": _listeners(random)}
    return _object(random, "ListenerSet", name, spec)


def _route(random: Random, name: str, parents: list[Object]) -> Object:
    chosen = random.sample(parents, random.randint(1, min(2, len(parents))))
    spec: Object = {
        "parentRefs": [
            {
                "kind": one["kind"],
                "name": one["metadata"]["name"],
                "namespace": one["metadata"]["namespace"],
            }
            for one in chosen
        ]
    }
    hostnames = sorted({random.choice(HOSTNAMES) for _ in range(random.randint(0, 2))} - {""})
    if hostnames:
        spec["hostnames"] = hostnames
    spec["rules"] = [
        {
            "matches": [_match(random) for _ in range(random.randint(1, 2))],
            "filters": [
                {
                    "type": "RequestRedirect",
                    "requestRedirect": {"hostname": f"{name or 'twin'}.r{at}.example"},
                }
            ],
        }
        for at in range(random.randint(1, 2))
    ]
    return _object(random, "HTTPRoute", name, spec)


def _match(random: Random) -> Object:
    kind = random.choice(("PathPrefix", "PathPrefix", "Exact", "RegularExpression"))
    value = random.choice(PATHS)
    if kind == "RegularExpression":
        value += random.choice((".*", "[a-c/]*", "/?(b|c)"))
    made: Object = {"path": {"type": kind, "value": value}}
    if random.random() < 0.3:
        made["headers"] = [{"name": random.choice(("x-v", "x-w")), "value": "1"}]
    if random.random() < 0.2:
        made["method"] = random.choice(("GET", "POST"))
    return made


# --- ways to break one ----------------------------------------------------------------------------


def _pick(random: Random, one: Object, field: str) -> Object:
    found: Object = random.choice(one["spec"][field])
    return found


def _match_of(random: Random, one: Object) -> Object:
    found: Object = random.choice(_pick(random, one, "rules")["matches"])
    return found


def _strange_version(one: Object, random: Random) -> None:
    one["apiVersion"] = random.choice((f"{API}beta7", API.replace("v1", "v9")))


def _refuse_path(one: Object, random: Random) -> None:
    match = _match_of(random, one)
    value = match["path"]["value"]
    match["path"] = {"type": "RegularExpression", "value": f"{value}(?!x)"}


def _double_path(one: Object, random: Random) -> None:
    path = _match_of(random, one)["path"]
    path["value"] = f"{'(?!x)' if path['type'] == 'RegularExpression' else '/'}{path['value']}"


def _refuse_header(one: Object, random: Random) -> None:
    for header in (match := _match_of(random, one)).get("headers", ()):
        header |= {"type": "RegularExpression", "value": "(?=1)1"}
    if "headers" not in match:
        match["headers"] = 7


ANY: dict[str, Break] = {
    "a field that is not known": lambda one, _: one["spec"].update(strange=1),
    "another version": _strange_version,
    "no version": lambda one, _: one.pop("apiVersion"),
    "labels that are none": lambda one, _: one["metadata"].update(labels=[1]),
}
OF_LISTENERS: dict[str, Break] = {
    "routes in a list": lambda one, random: _pick(random, one, "listeners").update(
        allowedRoutes=[]
    ),
    "an option that is not known": lambda one, random: _pick(random, one, "listeners").update(
        tls={
            "certificateRefs": [{"name": "ecdsa", "namespace": "default"}],
            "options": {"gateway.edge.io/mtls": "yes"},
        }
    ),
    "no certificate": lambda one, random: _pick(random, one, "listeners").update(
        protocol="HTTPS", tls={"certificateRefs": [{"name": "no"}]}
    ),
    "a protocol for later": lambda one, random: _pick(random, one, "listeners").update(
        protocol="TLS", tls={"mode": "Passthrough"}
    ),
    "a protocol that is none": lambda one, random: _pick(random, one, "listeners").update(
        protocol="HTP"
    ),
    "kinds of routes for later": lambda one, random: _pick(random, one, "listeners").update(
        allowedRoutes={"kinds": [{"kind": "TCPRoute"}], "namespaces": {"from": "All"}}
    ),
    "two listeners of one name": lambda one, random: one["spec"]["listeners"].append(
        {**_pick(random, one, "listeners"), "hostname": "z.example"}
    ),
    "a listener twice": lambda one, random: one["spec"]["listeners"].append(
        {**_pick(random, one, "listeners"), "name": "again"}
    ),
}
OF_KIND: dict[str, dict[str, Break]] = {
    "Gateway": {
        **OF_LISTENERS,
        "settings that are missing": lambda one, _: one["spec"].update(
            infrastructure={
                "parametersRef": {"group": "gateway.edge.io", "kind": "EdgeProxy", "name": "no"}
            }
        ),
        "TLS that is none": lambda one, _: one["spec"].update(tls=[]),
        "a slip in who may attach": lambda one, _: one["spec"].update(
            allowedListners=one["spec"].pop("allowedListeners")
        ),
    },
    "ListenerSet": OF_LISTENERS,
    "HTTPRoute": {
        "an expression that is refused": _refuse_path,
        "a path that no request has": _double_path,
        "a header that is refused": _refuse_header,
        "a filter that is missing": lambda one, random: _pick(random, one, "rules").update(
            filters=[
                {
                    "type": "ExtensionRef",
                    "extensionRef": {
                        "group": "gateway.edge.io",
                        "kind": "RateLimitFilter",
                        "name": "no",
                    },
                }
            ]
        ),
        "a backend that is missing": lambda one, random: _pick(random, one, "rules").update(
            filters=[], backendRefs=[{"name": "no", "port": 80}]
        ),
        "a path in a list": lambda one, random: _match_of(random, one).update(path=["/a"]),
        "a type of path that is none": lambda one, random: _match_of(random, one)["path"].update(
            type="Glob"
        ),
        "matches that are none": lambda one, random: _pick(random, one, "rules").update(matches=7),
        "a slip in a field": lambda one, random: _pick(random, one, "rules").update(filter=[]),
    },
}


def write(objects: list[Object]) -> str:
    """Return the text of a file."""
    return "---\n".join(json.dumps(one) + "\n" for one in objects)
