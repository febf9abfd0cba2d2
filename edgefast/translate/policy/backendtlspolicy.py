"""BackendTLSPolicy: TLS towards Services, conflicts of policies, and the status at each Gateway.

In: the policies, Services and CA objects. Out: the effective `TlsPolicyView`s of each Service, and
a `PolicyOutcome` per policy. The outcome becomes a status once it is known which Gateways use the
policy. Of policies for one Service and port name the oldest wins, then namespace/name.
Source: Gateway API BackendTLSPolicy (GEP-713 conflicts). A winner that is broken makes requests
fail.
Must never: fall back to plain HTTP, or to a policy that lost.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping

import msgspec

from edgefast import ir
from edgefast.api.gateway.backendtlspolicy import BackendTLSPolicy
from edgefast.api.kinds import EDGE_GROUP, ref_of
from edgefast.api.model.reference import GATEWAY_GROUP
from edgefast.api.snapshot import Key, Snapshot
from edgefast.api.validation.hostname import check_own_hostname
from edgefast.diagnostics.problem import Problem
from edgefast.translate.backend.peer import UNVERIFIED, UNVERIFIED_HINT, read_names
from edgefast.translate.deps.authority import (
    CLUSTER_KIND,
    authority_of,
    read_authority,
    wrong_authority,
)
from edgefast.translate.deps.dependency_facts import Fact, Reader, World
from edgefast.translate.deps.policy_summary import TlsPolicyView
from edgefast.translate.deps.referencegrant import wrong_kind_text
from edgefast.translate.match.precedence import age_order
from edgefast.translate.report.report import Report
from edgefast.translate.report.unsupported_fields import is_foreign_option, refuse_unserved
from edgefast.translate.report.violation import refuse_violations
from edgefast.translate.tls.keyring import Keyring, join_bundles

#: The option that switches verification off, with the value "true".
INSECURE = f"{EDGE_GROUP}/insecure-skip-verify"

#: The option that names a Secret with the certificate for backends, in the namespace of the policy.
CLIENT_CERTIFICATE = f"{EDGE_GROUP}/client-certificate"
#: The option with the most certificates between that of the backend and an authority.
DEPTH = f"{EDGE_GROUP}/verify-depth"
MAX_DEPTH = 16
_OPTIONS = (INSECURE, CLIENT_CERTIFICATE, DEPTH)

Target = tuple[str, str, str]  # namespace, Service, port name or ""


class PolicyOutcome(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One policy on its own, before conflicts."""

    policy: BackendTLSPolicy
    reads: frozenset[Fact]
    targets: tuple[tuple[Target, str], ...]  # that exist, with the field path of each
    lost: tuple[
        tuple[Key, str], ...
    ]  # Services without the port that is named, and why nothing is sent to others
    refused: tuple[Problem, ...]
    broken: str  # why connections must fail; a target that is missing breaks no other
    unresolved: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    tls: ir.UpstreamTls
    secrets: tuple[ir.Secret, ...]

    def view(self, section: str) -> TlsPolicyView:
        """Return the policy as routes and clusters see it."""
        meta = self.policy.metadata
        return TlsPolicyView(
            policy=f"{meta.namespace}/{meta.name}",
            section=section,
            broken=self.broken,
            tls=None if self.broken else self.tls,
            secrets=self.secrets,
        )


class Policies(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """All policies after conflicts."""

    objects: Mapping[Key, BackendTLSPolicy] = {}  # the snapshot's table that they are of
    reads: frozenset[Fact] = frozenset()  # of all of them
    outcomes: Mapping[Key, PolicyOutcome] = {}
    in_force: Mapping[Key, tuple[TlsPolicyView, ...]] = {}  # by (namespace, Service)
    conflicts: Mapping[Key, tuple[Problem, ...]] = {}  # of policies that lost

    def problems(self, keys: Container[Key] | None) -> Iterator[Problem]:
        """Give the problems of all policies, or of those among `keys`."""
        for key, outcome in self.outcomes.items():
            if keys is None or key in keys:
                yield from self.conflicts.get(key, ())
                yield from outcome.problems


def translate_policies(
    world: World, keyring: Keyring, previous: Policies, changed: set[Fact]
) -> Policies:
    """Translate every policy anew whose object or facts changed, then settle conflicts."""
    objects = world.snapshot.backend_tls_policies
    if objects is previous.objects and changed.isdisjoint(previous.reads):
        return previous
    outcomes = {}
    for key, policy in sorted(objects.items()):
        old = previous.outcomes.get(key)
        if old is not None and old.policy is policy and changed.isdisjoint(old.reads):
            outcomes[key] = old
        else:
            outcomes[key] = _translate(policy, Reader(world), keyring)
    by_age = sorted(outcomes.values(), key=lambda one: age_order(one.policy.metadata))
    winners: dict[Target, PolicyOutcome] = {}
    in_force: dict[Key, tuple[TlsPolicyView, ...]] = {}
    in_doubt: dict[Key, TlsPolicyView] = {}  # for ports that no policy names
    conflicts: dict[Key, tuple[Problem, ...]] = {}
    for outcome in by_age:
        for service, why in outcome.lost:
            in_doubt.setdefault(
                service, TlsPolicyView(policy=_name_of(outcome), section="", broken=why)
            )
        meta = outcome.policy.metadata
        key = (meta.namespace, meta.name)
        for target, path in outcome.targets:
            winner = winners.setdefault(target, outcome)
            service = target[:2]
            if winner is outcome:
                in_force[service] = (*in_force.get(service, ()), outcome.view(target[2]))
                continue
            first = winner.policy.metadata
            message = f"BackendTLSPolicy {first.namespace}/{first.name} has this target already"
            problem = Problem(ref_of(outcome.policy), path, "Conflicted", message)
            conflicts[key] = (*conflicts.get(key, ()), problem)
    for service, view in in_doubt.items():
        views = in_force.get(service, ())
        if all(one.section for one in views):
            in_force[service] = (*views, view)
    return Policies(
        objects=objects,
        reads=frozenset().union(*(one.reads for one in outcomes.values())),
        outcomes=outcomes,
        in_force=in_force,
        conflicts=conflicts,
    )


def close_refused(
    in_force: Mapping[Key, tuple[TlsPolicyView, ...]], snapshot: Snapshot
) -> Mapping[Key, tuple[TlsPolicyView, ...]]:
    """Add what a policy of a file with a mistake comes to: its Services are not spoken to in plain text meanwhile.

    One whose last good version is kept, or whose target another policy has, changes nothing.
    """
    closed: dict[Key, tuple[TlsPolicyView, ...]] = {}
    for policy in snapshot.foreign_policies:
        key = (policy.ref.namespace, policy.ref.name)
        ours = policy.ref.group == GATEWAY_GROUP and policy.ref.kind == "BackendTLSPolicy"
        if not ours or key in snapshot.backend_tls_policies:
            continue
        for target, _ in policy.targets:
            service = (target.namespace, target.name)
            views = closed.get(service, in_force.get(service, ()))
            if target.kind == "Service" and target.section not in {one.section for one in views}:
                message = f"{policy.ref} has an error; requests to the Service are refused"
                view = TlsPolicyView(policy="/".join(key), section=target.section, broken=message)
                closed[service] = (*views, view)
    return {**in_force, **closed} if closed else in_force


def _translate(policy: BackendTLSPolicy, reader: Reader, keyring: Keyring) -> PolicyOutcome:
    report = Report(ref_of(policy))
    targets, lost = _resolve_targets(policy, reader, report)
    missing = len(report.refused)
    authority = _resolve_authorities(policy, reader, keyring, report)
    named = check_own_hostname(policy.spec.validation)
    refuse_violations(named, report, "spec.validation", "Invalid")
    where = "spec.validation.subjectAltNames"
    names = tuple(read_names(policy.spec.validation.subject_alt_names, where, report))
    fate = "requests to its targets get 500"
    refuse_unserved(policy, report, fate, reason="Invalid", condition="Invalid")
    for key in sorted(policy.spec.options):
        message = f'"{key}" (supported: {", ".join(_OPTIONS)})'
        if key == INSECURE:
            _check_insecure(policy, report)
        elif key in _OPTIONS:
            continue
        elif is_foreign_option(key):
            report.warn(f"spec.options[{key}]", "NotSupported", message)
        else:
            report.refuse(f"spec.options[{key}]", "Invalid", message)
    shown = _find_client_certificate(policy, reader, keyring, report)
    depth = _read_depth(policy, report)
    broken = report.refused[missing:]
    validation = policy.spec.validation
    return PolicyOutcome(
        policy=policy,
        reads=frozenset(reader.reads),
        targets=targets,
        lost=lost,
        refused=tuple(report.refused),
        broken=broken[0].text() if broken else "",
        unresolved=tuple(report.unresolved),
        problems=report.problems,
        tls=ir.UpstreamTls(
            sni=validation.hostname,
            ca=authority.name if authority else "",
            sans=names,
            certificate=shown.name if shown else "",
            insecure=policy.spec.options.get(INSECURE) == "true",
            depth=depth,
        ),
        secrets=tuple(one for one in (authority, shown) if one is not None),
    )


def _check_insecure(policy: BackendTLSPolicy, report: Report) -> None:
    path, value = f"spec.options[{INSECURE}]", policy.spec.options[INSECURE]
    if value == "true":
        report.warn(path, "Invalid", UNVERIFIED, f"remove the option, and {UNVERIFIED_HINT}")
    elif value != "false":
        report.refuse(path, "Invalid", f'"{value[:32]}" (expected true or false)')


def _find_client_certificate(
    policy: BackendTLSPolicy, reader: Reader, keyring: Keyring, report: Report
) -> ir.Secret | None:
    name = policy.spec.options.get(CLIENT_CERTIFICATE)
    if name is None:
        return None
    namespace = policy.metadata.namespace
    reader.secret(namespace, name)
    found = keyring.certificate(namespace, name, any_type=True)
    if isinstance(found, str):
        report.refuse(f"spec.options[{CLIENT_CERTIFICATE}]", "InvalidClientCertificateRef", found)
        return None
    return found.secret


def _read_depth(policy: BackendTLSPolicy, report: Report) -> int:
    """Return the depth, plus one; 0 without the option."""
    text = policy.spec.options.get(DEPTH)
    if text is None:
        return 0
    if not re.fullmatch("[0-9]{1,2}", text) or int(text) > MAX_DEPTH:
        message = f'"{text[:32]}" (allowed: 0 to {MAX_DEPTH})'
        report.refuse(f"spec.options[{DEPTH}]", "Invalid", message)
        return 1
    return int(text) + 1


def _name_of(outcome: PolicyOutcome) -> str:
    meta = outcome.policy.metadata
    return f"{meta.namespace}/{meta.name}"


def _resolve_targets(
    policy: BackendTLSPolicy, reader: Reader, report: Report
) -> tuple[tuple[tuple[Target, str], ...], tuple[tuple[Key, str], ...]]:
    """Return the targets, and the Services of which a port is meant that they do not have, with what is said to their users."""
    targets: list[tuple[Target, str]] = []
    lost: list[tuple[Key, str]] = []
    for at, ref in enumerate(policy.spec.target_refs):
        path, namespace = f"spec.targetRefs[{at}]", policy.metadata.namespace
        if (ref.group, ref.kind) != ("", "Service"):
            message = wrong_kind_text(ref.group, ref.kind, "Service")
            hint = "an XBackend has its own field spec.tls" if ref.kind == "XBackend" else ""
            report.refuse(path, "TargetNotFound", message, hint)
            continue
        service = reader.service(namespace, ref.name)
        if service is None:
            message = f"Service {namespace}/{ref.name} not found; this target has no effect"
            report.refuse(path, "TargetNotFound", message)
            continue
        section = ref.section_name or ""
        names = [port.name for port in service.spec.ports]
        if section and section not in names:
            message = (
                f'"{section}" (Service {namespace}/{ref.name} has {", ".join(names) or "none"})'
            )
            report.refuse(f"{path}.sectionName", "TargetNotFound", message)
            fate = f"{ref_of(policy)} targets port {message}, which can be any port; requests to ports without a policy are refused"
            lost.append(((namespace, ref.name), fate))
            continue
        targets.append(((namespace, ref.name, section), path))
    return tuple(targets), tuple(lost)


def _resolve_authorities(
    policy: BackendTLSPolicy, reader: Reader, keyring: Keyring, report: Report
) -> ir.Secret | None:
    validation, namespace = policy.spec.validation, policy.metadata.namespace
    well_known = validation.well_known_ca_certificates
    if well_known is not None:
        if well_known != "System":
            path = "spec.validation.wellKnownCACertificates"
            report.refuse(path, "Invalid", f'"{well_known}" (supported: System)')
        return None
    bundles = []
    for at, ref in enumerate(validation.ca_certificate_refs):
        path = f"spec.validation.caCertificateRefs[{at}]"
        missing = reader.settings.missing
        kind = authority_of(ref.group, ref.kind, missing)
        if not kind:
            message = wrong_authority(ref.group, ref.kind, missing)
            report.unresolve(path, "InvalidKind", message)
            continue
        read_authority(reader, kind, namespace, ref.name)
        found = keyring.bundle(kind, "" if kind == CLUSTER_KIND else namespace, ref.name)
        if isinstance(found, str):
            report.unresolve(path, "InvalidCACertificateRef", found)
        else:
            bundles.append(found)
    if not bundles:
        path = "spec.validation.caCertificateRefs"
        message = "no reference has a valid CA certificate to verify the backend"
        problem = report.refuse(path, "NoValidCACertificate", message)
        if validation.ca_certificate_refs:
            report.follow(problem)  # of each reference, which has been told of already
    return join_bundles(bundles)
