"""References: the resources that a resource of the table names, and the resources that form one unit.

In: a resource's key and bytes.
Out: the keys that the resource requires; no keys for bytes that cannot be read, which the worker
has already refused. A virtual host and its fragments are one unit: workers apply or refuse them
together, because an engine never mixes two versions of a host.
Must never: raise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from edgefast import ir
from edgefast.table import BlobError, decode_blob
from edgefast.table.shards import Key

__all__ = ["members_of", "named_by", "unit_of"]

_CLUSTER: msgspec.msgpack.Decoder[ir.Cluster] = msgspec.msgpack.Decoder(ir.Cluster)
_STREAM: msgspec.msgpack.Decoder[ir.StreamRoute] = msgspec.msgpack.Decoder(ir.StreamRoute)
_POLICY: msgspec.msgpack.Decoder[ir.PolicyUnit] = msgspec.msgpack.Decoder(ir.PolicyUnit)
_LISTENER: msgspec.msgpack.Decoder[ir.Listener] = msgspec.msgpack.Decoder(ir.Listener)


def unit_of(key: Key) -> Key:
    """Return the key that stands for all that is taken or refused together with `key`."""
    type_, name = key
    return ("virtual_host", name.rpartition("#")[0]) if type_ == "fragment" else key


def members_of(units: Collection[Key], tables: Iterable[Iterable[Key]]) -> Mapping[Key, set[Key]]:
    """Return the keys of each unit that there are in `tables`, and the unit's own."""
    found = {unit: {unit} for unit in units}
    if any(type_ == "virtual_host" for type_, _ in units):
        for table in tables:
            for key in table:
                if key[0] == "fragment" and (unit := unit_of(key)) in found:
                    found[unit].add(key)
    return found


def named_by(key: Key, data: bytes) -> frozenset[Key]:
    """Return the clusters, policies and secrets that a resource names."""
    try:
        match key[0]:
            case "listener":
                listener = _LISTENER.decode(data)
                filters = {("policy", one) for one in listener.filters}
                return _secrets(_names_of_listener(listener)) | filters
            case "cluster":
                tls = _CLUSTER.decode(data).tls
                return _secrets((tls.ca, tls.certificate)) if tls is not None else frozenset()
            case "stream_route":
                route = _STREAM.decode(data)
                clusters = {("cluster", one.cluster) for one in route.backends if one.cluster}
                return frozenset(
                    clusters | {("policy", one) for one in (*route.policies, *route.traffic)}
                )
            case "policy":
                return frozenset(_named_by_policy(_POLICY.decode(data)))
            case "virtual_host" | "fragment":
                rules = decode_blob(data).rules
                return frozenset(one for rule in rules for one in _named_by_rule(rule))
    except (msgspec.MsgspecError, BlobError, UnicodeDecodeError):
        pass
    return frozenset()


def _names_of_listener(listener: ir.Listener) -> Iterable[str]:
    tls = listener.tls
    if tls is None:
        return ()
    return (*tls.certificates, tls.client_rule.ca if tls.client_rule else tls.client_ca)


def _secrets(names: Iterable[str]) -> frozenset[Key]:
    return frozenset(("secret", name) for name in names if name)


def _named_by_rule(rule: ir.Rule) -> Iterator[Key]:
    yield from (("cluster", one) for one in _clusters(rule))
    yield from (("policy", one) for one in rule.units())
    yield from _services(rule.ext_auth)


def _named_by_policy(unit: ir.PolicyUnit) -> Iterator[Key]:
    yield from _services(unit.ext_auth)
    for override in (unit.traffic.override or ()) if unit.traffic is not None else ():
        if override.service is not None:
            yield "cluster", override.service.cluster
    for one in unit.jwt.providers if unit.jwt is not None else ():
        if one.remote is not None and one.remote.cluster:
            yield "cluster", one.remote.cluster
    if unit.oidc is not None and unit.oidc.remote.cluster:
        yield "cluster", unit.oidc.remote.cluster


def _services(auth: ir.ExtAuth | None) -> Iterator[Key]:
    """Yield the clusters that an authorisation service is asked at."""
    yield from (("cluster", one.cluster) for one in (auth.backends if auth is not None else ()))


def _clusters(rule: ir.Rule) -> Iterator[str]:
    """Yield the clusters of a rule: of its backends, and of mirrors of it and of them."""
    yield from (mirror.cluster for mirror in rule.mirrors)
    for backend in rule.backends:
        if backend.cluster:
            yield backend.cluster
        yield from (mirror.cluster for mirror in backend.mirrors)
