"""Balancing: upstream-hash-by and load-balance -> loadBalancer of a BackendTrafficPolicy.

In: the annotations of an Ingress, the load-balance of the ConfigMap. Out: the load balancer, None for that of edgefast, and a
note for what is not served. upstream-hash-by comes first, as in ingress-nginx. Text between its variables changes no choice of an endpoint.
Source: ingress-nginx balancer.lua, balancer/chash.lua, upstreamhashby/main.go; nginx ngx_http_core_module (variables).
Must never: hash less than the variables that are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from edgefast.api.edge.load_balancer import MAX_PARTS, ConsistentHash, HashPart, LoadBalancer
from edgefast.translate.ingress.annotation_reader import AnnotationReader
from edgefast.translate.ingress.configmap import Note
from edgefast.translate.ingress.values import one_of, pattern

__all__ = ["read_balancer", "translate_balancing"]

#: Values of load-balance.
_ALGORITHMS = (
    "round_robin", "chash", "chashsubset", "sticky_balanced", "sticky_persistent", "ewma",
)  # fmt: skip
_HASH_KEY = pattern(r"^[A-Za-z0-9\-_${}]*$", spaces=True)
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_PARTS: Mapping[str, Literal["SourceIP", "Host", "RequestURI", "Path", "Query"]] = {
    "binary_remote_addr": "SourceIP",
    "remote_addr": "SourceIP",
    "host": "Host",
    "request_uri": "RequestURI",
    "uri": "Path",
    "document_uri": "Path",
    "args": "Query",
    "query_string": "Query",
}
_NAMED: tuple[tuple[str, Literal["Header", "Cookie", "QueryParam"]], ...] = (
    ("http_", "Header"),
    ("cookie_", "Cookie"),
    ("arg_", "QueryParam"),
)


def read_balancer(reader: AnnotationReader) -> LoadBalancer | None:
    """Return the load balancer of an Ingress, None for that of edgefast."""
    values = reader.values
    algorithm = reader.read(
        reader.settings.load_balance, values.text, "load-balance", one_of(*_ALGORITHMS)
    )
    key = reader.require("upstream-hash-by", _HASH_KEY).replace(" ", "")
    if key and reader.read(False, values.flag, "upstream-hash-by-subset"):
        reader.warn("upstream-hash-by-subset", "not served: a key finds one endpoint")
    made, notes = translate_balancing(algorithm.strip(), key)
    for note in notes if key or values.has("load-balance") else ():
        reader.add(note)
    return made


def translate_balancing(algorithm: str, key: str) -> tuple[LoadBalancer | None, tuple[Note, ...]]:
    """Return the load balancer of load-balance and upstream-hash-by, "" without each."""
    if key:
        return _translate_key(key)
    if algorithm == "round_robin":
        return LoadBalancer(type="RoundRobin"), ()
    if algorithm == "":
        return None, ()
    how = "edgefast selects the less busy one of two endpoints"
    if algorithm == "ewma":
        message = f"{how}, and does not measure response times"
    else:
        message = f"{algorithm[:32]} has no effect: {how}"
    return None, (Note(name="load-balance", message=message),)


def _translate_key(key: str) -> tuple[LoadBalancer | None, tuple[Note, ...]]:
    parts: dict[HashPart, None] = {}
    wrong = ""
    for one in _VARIABLE.finditer(key):
        name = one[1] or one[2]
        part = _part_of(name)
        if part is None:
            wrong = wrong or f"variable ${name[:64]} of nginx"
        else:
            parts[part] = None
    if "$" in _VARIABLE.sub("", key):
        wrong = wrong or "a $ without the name of a variable"
    if len(parts) > MAX_PARTS:
        wrong = wrong or f"{len(parts)} variables (at most {MAX_PARTS})"
    if not parts:
        wrong = wrong or "no variable, so that one endpoint would get all requests"
    if wrong:
        message = f"not served: {wrong}; edgefast selects the less busy one of two endpoints"
        return None, (Note(name="upstream-hash-by", message=message, error=True),)
    hashed = ConsistentHash(type="Parts", parts=tuple(parts))
    return LoadBalancer(type="ConsistentHash", consistent_hash=hashed), ()


def _part_of(variable: str) -> HashPart | None:
    if variable in _PARTS:
        return HashPart(type=_PARTS[variable])
    for prefix, kind in _NAMED:
        name = variable.removeprefix(prefix)
        if name and name != variable:
            return HashPart(type=kind, name=name.replace("_", "-") if kind == "Header" else name)
    return None
