"""Cluster: the endpoints behind a reference, and TLS towards them.

In: a `ClusterRef` with its Service, EndpointSlices and policy, or its Backend or XBackend. Out: ir.Cluster. A cluster uses ready endpoints;
it uses serving but terminating ones only while no other is left. The name of the Service's port selects the port, so headless and manual
slices work alike.
Source: Kubernetes EndpointSlice v1 (conditions), Gateway API HTTPRoute (Services).
Must never: read a Service's selector or its cluster IP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from edgefast import ir
from edgefast.api.core.endpointslice import EndpointSlice
from edgefast.api.core.service import ServicePort
from edgefast.api.kinds import ref_of
from edgefast.collections.sorted_map import SortedMap
from edgefast.diagnostics.problem import Problem
from edgefast.netaddr import read_address
from edgefast.translate.backend.backend import find_port, transport_of
from edgefast.translate.backend.backend_cluster import translate_backend
from edgefast.translate.backend.reserved import HINT, allowed_of, check_endpoint_address
from edgefast.translate.backend.xbackend_cluster import translate_xbackend
from edgefast.translate.backend.zones import is_hinted, zone_of, zone_preference
from edgefast.translate.deps.cluster_ref import ClusterRef, ClusterState
from edgefast.translate.deps.dependency_facts import CLUSTER_OF, Fact, Reader, World
from edgefast.translate.deps.policy_summary import policy_for
from edgefast.translate.deps.readers import Readers, find_readers, follow
from edgefast.translate.report.report import Report
from edgefast.translate.settings import Settings
from edgefast.translate.tls.keyring import Certified, Keyring


class ClusterOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One cluster."""

    cluster: ir.Cluster
    broken: str = ""  # why requests must fail
    mismatch: str = ""  # why none of the endpoints that there are, or may be, is used
    session: ir.SessionPersistence | None = None  # what an XBackend says of its clients
    selects: str = ""  # labels of the Pods that it asks for
    reads: tuple[Fact, ...] = ()  # but for those that its name says
    secrets: tuple[ir.Secret, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def state(self) -> ClusterState:
        """What routes may know of it."""
        there = bool(self.cluster.endpoints or self.cluster.fallback)
        return ClusterState(self.cluster.name, there, self.broken, self.mismatch, self.session)


class Clusters:
    """All clusters asked for, made when first asked for or taken over from the previous translation."""

    def __init__(
        self,
        world: World,
        keyring: Keyring,
        previous: SortedMap[ClusterRef, ClusterOutcome],
        uses: SortedMap[ClusterRef, int],
        noted: frozenset[ClusterRef],
        readers: Readers[ClusterRef],
        changed: set[Fact],
    ) -> None:
        """`uses`: how many routes looked at each of the previous ones; `noted`: those with problems."""
        self._world = world
        self._keyring = keyring
        self._previous = previous
        self._stale = find_readers(readers, changed) | _find_named(previous, changed)
        self._readers = readers.edit()
        self._outcomes = previous.edit()
        self._uses = uses.edit()
        self._noted = noted
        self.touched: set[ClusterRef] = set()  # made anew
        self._dropped: set[ClusterRef] = set()
        self.made = 0

    @property
    def outcomes(self) -> SortedMap[ClusterRef, ClusterOutcome]:
        """All clusters as they are now."""
        return self._outcomes.done()

    @property
    def uses(self) -> SortedMap[ClusterRef, int]:
        """How many routes look at each."""
        return self._uses.done()

    @property
    def readers(self) -> Readers[ClusterRef]:
        """Which of them read each fact."""
        return self._readers.done()

    def refresh(self) -> set[Fact]:
        """Make anew what changed; return the facts of clusters whose state differs now."""
        return {
            ref for ref in tuple(self._stale) if self.get(ref).state != self._previous[ref].state
        }

    def get(self, ref: ClusterRef) -> ClusterOutcome:
        """Return a cluster; one that is equal to its predecessor keeps its identity."""
        found = self._outcomes.get(ref)
        if found is not None and ref not in self._stale:
            return found
        old = self._previous.get(ref) if found is None else found
        if old is not None and ref not in self._stale:
            self._outcomes[ref] = old
            return old
        self.made += 1
        new = translate_cluster(ref, Reader(self._world), self._keyring)
        if old is not None and old.cluster == new.cluster:
            new = msgspec.structs.replace(new, cluster=old.cluster)
        self._outcomes[ref] = new
        follow(self._readers, ref, found.reads if found else (), new.reads)
        self._stale.discard(ref)
        self.touched.add(ref)
        return new

    def count(self, changes: Iterable[tuple[Iterable[ClusterRef], Iterable[ClusterRef]]]) -> None:
        """Take the clusters that routes looked at before and look at now; forget those of no route."""
        uses = self._uses
        idle = set(self.touched)  # and of those the ones that no route looks at
        for before, after in changes:
            for ref in after:
                uses[ref] = uses.get(ref, 0) + 1
                self.get(ref)  # nobody looks at what a mirror sends to
            for ref in before:
                uses[ref] -= 1
                if not uses[ref]:
                    del uses[ref]
                    idle.add(ref)
        for ref in idle:
            if ref not in uses:
                self._drop(ref)
        if len(self._outcomes) != len(uses):  # others asked for some after the last count
            for ref in [ref for ref in self.outcomes if ref not in uses]:
                self._drop(ref)

    def _drop(self, ref: ClusterRef) -> None:
        """Forget a cluster; whoever asks for it after all gets it made anew, not as it was before."""
        dropped = self._outcomes.pop(ref, None)
        if dropped is not None:
            follow(self._readers, ref, dropped.reads)
            self._stale.add(ref)
            self._dropped.add(ref)

    @property
    def noted(self) -> frozenset[ClusterRef]:
        """Those of which there is something to tell."""
        looked = self.touched | self._dropped
        if not looked:
            return self._noted
        outcomes = self._outcomes
        reported = (
            ref for ref in looked if (one := outcomes.get(ref)) is not None and one.problems
        )
        return (self._noted - looked).union(reported)

    def problems(self) -> Iterator[Problem]:
        """Give the problems of all clusters, by cluster."""
        for ref in sorted(self.noted):
            yield from self._outcomes[ref].problems

    def state(self, ref: ClusterRef) -> ClusterState:
        """Return what routes may know of a cluster."""
        return self.get(ref).state


def _find_named(
    clusters: SortedMap[ClusterRef, ClusterOutcome], changed: Iterable[Fact]
) -> set[ClusterRef]:
    """Return the clusters that are of one of these facts by their names."""
    found: set[ClusterRef] = set()
    for fact in changed:
        kind = CLUSTER_OF.get(fact[0])
        if kind is None:
            continue
        begin = (kind, *fact[1:])
        for ref in clusters.starting_at(begin):
            if ref[:3] != begin:
                break
            found.add(ref)
    return found


def _note(ref: ClusterRef, reader: Reader) -> tuple[Fact, ...]:
    named = ref[:3]
    kinds = CLUSTER_OF
    message = (one for one in reader.reads if (kinds.get(one[0]), *one[1:]) != named)
    return tuple(sorted(message))


def translate_cluster(ref: ClusterRef, reader: Reader, keyring: Keyring) -> ClusterOutcome:
    """Translate the cluster of a reference that was resolved; one that is gone is empty."""
    return _MAKERS[ref.kind](ref, reader, keyring)


def _translate_service(ref: ClusterRef, reader: Reader, keyring: Keyring) -> ClusterOutcome:
    service = reader.service(ref.namespace, ref.name)
    transport = transport_of(ref.protocol)
    port = find_port(service, ref.port, transport) if service else None
    ready: dict[ir.Endpoint, None] = {}
    leaving: dict[ir.Endpoint, None] = {}
    problems: list[Problem] = []
    tls: ir.UpstreamTls | None = None
    secrets: tuple[ir.Secret, ...] = ()
    mismatch = ""
    requested: ir.ZoneAware | None = None
    if port is not None:
        slices = reader.slices(ref.namespace, ref.name)
        hinted = service is not None and is_hinted(service, slices)
        requested = zone_preference(service, hinted=hinted) if service is not None else None
        for one in slices:
            problems += _collect(
                one, port.name, transport, ready, leaving, settings=reader.settings, hinted=hinted
            )
        if not ready and not leaving:
            mismatch = _compare_names(port, slices)
        policy = policy_for(reader.policies(ref.namespace, ref.name), port.name)
        own_tls = ref.protocol not in ("raw", "udp")
        if policy is not None and policy.tls is not None and own_tls:
            tls, secrets = _show_certificate(
                policy.tls, policy.secrets, ref.certificate, reader, keyring
            )
    return ClusterOutcome(
        cluster=ir.Cluster(
            name=ref.id,
            endpoints=_sorted(ready),
            fallback=_sorted(leaving),
            tls=tls,
            protocol=_protocol_of(ref, tls, port),
            zones=requested,
        ),
        mismatch=mismatch,
        reads=_note(ref, reader),
        secrets=secrets,
        problems=tuple(problems),
    )


def _translate_backend(ref: ClusterRef, reader: Reader, keyring: Keyring) -> ClusterOutcome:
    made = translate_backend(ref, reader, keyring)
    tls, secrets = made.tls, made.secrets
    if tls is not None:
        tls, secrets = _show_certificate(tls, secrets, ref.certificate, reader, keyring)
    return ClusterOutcome(
        cluster=ir.Cluster(
            name=ref.id,
            endpoints=made.endpoints,
            tls=tls,
            protocol=_protocol_of(ref, tls, None),
            allowed=allowed_of(made.endpoints, reader.settings),
        ),
        broken=made.broken,
        reads=_note(ref, reader),
        secrets=secrets,
        problems=made.problems,
    )


def _translate_xbackend(ref: ClusterRef, reader: Reader, keyring: Keyring) -> ClusterOutcome:
    made = translate_xbackend(ref, reader, keyring)
    return ClusterOutcome(
        cluster=ir.Cluster(
            name=ref.id,
            endpoints=made.endpoints,
            fallback=made.fallback,
            tls=made.tls,
            protocol=made.protocol,
            allowed=allowed_of(made.endpoints, reader.settings),
        ),
        broken=made.broken,
        mismatch=made.unread,
        session=made.session,
        selects=made.selects,
        reads=_note(ref, reader),
        secrets=made.secrets,
        problems=made.problems,
    )


_MAKERS: dict[str, Callable[[ClusterRef, Reader, Keyring], ClusterOutcome]] = {
    "service": _translate_service,
    "backend": _translate_backend,
    "xbackend": _translate_xbackend,
}


def _protocol_of(
    ref: ClusterRef, tls: ir.UpstreamTls | None, port: ServicePort | None
) -> ir.UpstreamProtocol:
    """Say what is spoken: WebSockets alone have HTTP/1.1 to themselves."""
    if ref.protocol == "h2":
        return "h2"
    requested = (port.app_protocol or "").lower() if port is not None else ""
    return "alpn" if tls is not None and requested != "kubernetes.io/wss" else "http1"


def _collect(
    one: EndpointSlice,
    port: str,
    transport: str,
    ready: dict[ir.Endpoint, None],
    leaving: dict[ir.Endpoint, None],
    *,
    settings: Settings,
    hinted: bool,
) -> tuple[Problem, ...]:
    """Add a slice's endpoints on the port of that name; report addresses that are none."""
    report = Report(ref_of(one))
    if one.address_type == "FQDN":
        message = "FQDN slices are not used"
        report.lose("addressType", "NotSupported", message, "use a Backend with fqdn")
        return report.problems
    numbers = [
        wanted.port
        for wanted in one.ports
        if wanted.name == port and wanted.protocol == transport and wanted.port is not None
    ]
    for at, endpoint in enumerate(one.endpoints if numbers else ()):
        conditions = endpoint.conditions
        usable = conditions.ready is True or (
            conditions.ready is None and conditions.terminating is not True
        )
        serving = usable if conditions.serving is None else conditions.serving
        if not usable and not (serving and conditions.terminating):
            continue
        written = endpoint.addresses[0] if endpoint.addresses else ""
        address = _canonical(written, one.address_type)
        if not address:
            message = f'"{written}" is not an {one.address_type} address'
            report.refuse(f"endpoints[{at}].addresses[0]", "Invalid", message)
            continue
        if wrong := check_endpoint_address(address, settings):
            report.refuse(f"endpoints[{at}].addresses[0]", "Forbidden", wrong, HINT)
            continue
        zone = zone_of(endpoint, hinted=hinted)
        for number in numbers:
            found = ir.Endpoint(address=address, port=number, zone=zone)
            (ready if usable else leaving)[found] = None
    return report.problems


def _compare_names(port: ServicePort, slices: Iterable[EndpointSlice]) -> str:
    """Say how the names of ports differ when that is why there are no endpoints, else ""."""
    for one in slices:
        names = [other.name for other in one.ports]
        if not one.endpoints or not names or port.name in names:
            continue
        own = f'is named "{port.name}"' if port.name else "has no name"
        theirs = ", ".join(f'"{name}"' for name in names if name)
        named = f"{one.metadata.namespace}/{one.metadata.name}"
        has = f"a port named {theirs}" if theirs else "a port without a name"
        return f"port {port.port} {own}, EndpointSlice {named} has {has}; names must be equal"
    return ""


def _canonical(address: str, kind: str) -> str:
    """Return an address in its shortest text, "" when it is none of that kind."""
    parsed = read_address(address)
    return "" if parsed is None or (":" in address) != (kind == "IPv6") else str(parsed)


def _sorted(endpoints: Mapping[ir.Endpoint, None]) -> tuple[ir.Endpoint, ...]:
    return tuple(sorted(endpoints, key=lambda one: (one.address, one.port, one.zone)))


def _show_certificate(
    tls: ir.UpstreamTls,
    secrets: tuple[ir.Secret, ...],
    certificate: str,
    reader: Reader,
    keyring: Keyring,
) -> tuple[ir.UpstreamTls, tuple[ir.Secret, ...]]:
    """Add the Gateway's client certificate, which gateway.py found valid and permitted."""
    if not certificate or tls.certificate:  # that of the BackendTLSPolicy has priority
        return tls, secrets
    namespace, name = certificate.split("/")
    reader.secret(namespace, name)
    found = keyring.certificate(namespace, name)
    if not isinstance(found, Certified):
        return tls, secrets
    tls = msgspec.structs.replace(tls, certificate=found.secret.name)
    return tls, (*secrets, found.secret)
