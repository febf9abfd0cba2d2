"""Reason words: the allowed reasons of a Problem, or of a condition that reports a problem.

In: nothing.
Out: the type `Word`, and `Page`, the documentation of one word. Kubernetes field errors and Gateway
API reasons keep their names; those of edgefast are marked.
Must never: lose a word that statuses of a release may contain; a test requires a page of each.
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Page", "Word"]

Word = Literal[
    "AccessDenied",
    "AddressNotAssigned",
    "AddressNotUsable",
    "Adopted",
    "BackendNotFound",
    "CertificateExpiring",
    "CertificateNotValid",
    "ConfigurationChanged",
    "ConfigurationRefused",
    "Conflicted",
    "Duplicate",
    "EndpointsNotFound",
    "EvictingStore",
    "FleetFailed",
    "FleetKept",
    "Forbidden",
    "HostnameConflict",
    "Ignored",
    "IncompatibleFilters",
    "Invalid",
    "InvalidBackendRef",
    "InvalidCACertificateKind",
    "InvalidCACertificateRef",
    "InvalidCertificateRef",
    "InvalidClientCertificateRef",
    "InvalidCredentialRef",
    "InvalidKind",
    "InvalidListenerFilter",
    "InvalidListenerFilterRef",
    "InvalidParameters",
    "InvalidRouteKinds",
    "KeysNotFetched",
    "KindRemoved",
    "ListenersNotResolved",
    "ListenersNotValid",
    "NoMatchingListenerHostname",
    "NoMatchingParent",
    "NoResources",
    "NoValidCACertificate",
    "NotAllowed",
    "NotAllowedByListeners",
    "NotAssigned",
    "NotCounted",
    "NotFound",
    "NotSupported",
    "OrdersNotServed",
    "OverlappingHostnames",
    "Overridden",
    "ParentNotAccepted",
    "ParentNotProgrammed",
    "PartiallyAssigned",
    "PartiallyInvalidCertificateRef",
    "Pending",
    "PodsNotRead",
    "PolicyIgnored",
    "PortNotFound",
    "PortNotSpecified",
    "PortUnavailable",
    "ProtocolConflict",
    "RefNotPermitted",
    "RefusedByProxies",
    "Required",
    "RouteRulesOverlap",
    "RouteRulesShadowed",
    "Shadowed",
    "TargetNotFound",
    "TicketKeysNotKept",
    "TooLong",
    "TooMany",
    "UnsupportedAddress",
    "UnsupportedProtocol",
    "UnsupportedValue",
    "UnsupportedVersion",
    "ZoneNotKnown",
]

#: Under which settings an example is translated: files, a cluster, files with the address 127.0.0.1, CRDs of a release, files
#: with `--adopt`, a cluster with a deleted CRD of SecurityPolicies.
Place = Literal["files", "cluster", "bound", "release", "adopted", "removed"]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of one word.

    `example` are objects that bring it about beside those of `BASE`; `seen` is what one sees where files cannot bring it
    about. One of both is given.
    """

    word: Word
    means: str  # what is wrong, and what is served meanwhile
    fix: tuple[str, ...]  # what to do: one sentence or two each
    example: str = ""
    seen: str = ""
    place: Place = "files"
    where: str = ""  # where it is seen, of a word that only a controller uses
