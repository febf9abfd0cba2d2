"""The manifests of the Gateway API's own examples: each is served, or refused for a reason that stands here."""

from __future__ import annotations

import pytest
import yaml

from cluster.environment import Surroundings
from cluster.tools.api_fields import RELEASES
from cluster.tools.examples import gateway_api_examples
from edgefast.api.decode.decode import decode_documents
from edgefast.api.snapshot import Snapshot
from edgefast.diagnostics.problem import Problem
from edgefast.translate import Settings, translate
from edgefast.translate.gateway import protocol

#: A route that nobody can reach: its file names no Gateway.
_NO_PARENT = "spec.parentRefs: Required"
_IMPORT = "kind: InvalidKind"  # Services of other clusters (multicluster.x-k8s.io/ServiceImport)
_PROTOCOL = "Gateway spec.listeners[0].protocol: UnsupportedProtocol"
_PROTOCOLS = (_PROTOCOL, "Gateway spec.listeners[1].protocol: UnsupportedProtocol")
_CLOSED = "spec.parentRefs[0]: NotAllowedByListeners"

#: By file: kind, field and reason of all that is refused in it.
REFUSED: dict[str, tuple[str, ...]] = {
    # A kind of backend of another project.
    "standard/default-match-http.yaml": (
        "HTTPRoute spec.rules[0].backendRefs[0].kind: InvalidKind",
    ),
    # The API answers 500 where a rule has neither backendRefs nor a redirect.
    "standard/http-rewrite.yaml": ("HTTPRoute spec.rules[0].backendRefs: Invalid",),
    **dict.fromkeys(
        (
            "standard/http-filter.yaml",
            "standard/http-redirect-rewrite/httproute-redirect-full.yaml",
            "standard/http-redirect-rewrite/httproute-redirect-prefix.yaml",
            "standard/http-redirect-rewrite/httproute-rewrite-full-path.yaml",
            "standard/http-redirect-rewrite/httproute-rewrite-prefix-path.yaml",
            "standard/http-redirect-rewrite/httproute-rewrite.yaml",
            "standard/httproute.yaml",
            "standard/traffic-splitting/simple-split.yaml",
            "standard/traffic-splitting/traffic-split-1.yaml",
            "standard/traffic-splitting/traffic-split-2.yaml",
            "standard/traffic-splitting/traffic-split-3.yaml",
        ),
        (f"HTTPRoute {_NO_PARENT}",),
    ),
    **dict.fromkeys(
        ("standard/grpc-filter.yaml", "standard/traffic-splitting/grpc-traffic-split-2.yaml"),
        (f"GRPCRoute {_NO_PARENT}",),
    ),
    # A mesh: the parent is no Gateway.
    "standard/multicluster/httproute-gamma.yaml": (
        "HTTPRoute spec.parentRefs[0].kind: NotSupported",
        f"HTTPRoute spec.rules[0].backendRefs[0].{_IMPORT}",
    ),
    "standard/multicluster/httproute-hybrid.yaml": (
        f"HTTPRoute spec.rules[0].backendRefs[1].{_IMPORT}",
    ),
    "standard/multicluster/httproute-location.yaml": tuple(
        f"HTTPRoute spec.rules[{at}].backendRefs[0].{_IMPORT}" for at in range(3)
    ),
    "standard/multicluster/httproute-method.yaml": tuple(
        f"HTTPRoute spec.rules[{at}].backendRefs[0].{_IMPORT}" for at in range(2)
    ),
    "standard/multicluster/httproute-referencegrant.yaml": (
        f"HTTPRoute {_NO_PARENT}",
        f"HTTPRoute spec.rules[0].backendRefs[0].{_IMPORT}",
    ),
    "standard/multicluster/httproute-simple.yaml": (
        f"HTTPRoute spec.rules[0].backendRefs[0].{_IMPORT}",
    ),
    # A mesh, too.
    "experimental/destination-port-matching-tcp.yaml": (
        "TCPRoute spec.parentRefs[0].kind: NotSupported",
    ),
}

#: By protocol of listeners: what is refused while it is not served.
UNSERVED: dict[str, dict[str, tuple[str, ...]]] = {
    "TCP": {
        **dict.fromkeys(
            ("experimental/basic-tcp.yaml", "standard/basic-tcp.yaml"),
            (*_PROTOCOLS, *[f"TCPRoute {_CLOSED}"] * 2),
        ),
        "standard/tcp-routing/gateway.yaml": (_PROTOCOL,),
        "standard/tcp-routing/tcp-route.yaml": (_PROTOCOL, f"TCPRoute {_CLOSED}"),
    },
    "UDP": {
        "standard/basic-udp.yaml": (*_PROTOCOLS, *[f"UDPRoute {_CLOSED}"] * 2),
        "standard/udp-routing/gateway.yaml": (_PROTOCOL,),
        "standard/udp-routing/udp-route.yaml": (_PROTOCOL, f"UDPRoute {_CLOSED}"),
    },
    "TLS": {
        **dict.fromkeys(
            (
                "experimental/v1alpha2/tls-routing/gateway.yaml",
                "experimental/v1alpha3/tls-routing/gateway.yaml",
            ),
            (_PROTOCOL,),
        ),
        "standard/tls-routing/gateway.yaml": _PROTOCOLS,
        **dict.fromkeys(
            (
                "experimental/v1alpha2/tls-routing/tls-route.yaml",
                "experimental/v1alpha3/tls-routing/tls-route.yaml",
                "standard/tls-routing/tls-route.yaml",
                "standard/tls-routing/tls-route-terminate.yaml",
            ),
            (_PROTOCOL, f"TLSRoute {_CLOSED}"),
        ),
    },
}


@pytest.mark.parametrize("served", [protocol.SERVED, ("HTTP", "HTTPS", *UNSERVED)])
@pytest.mark.parametrize("release", RELEASES)
def test_examples_are_served_or_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, release: str, served: tuple[str, ...]
) -> None:
    monkeypatch.setattr(protocol, "SERVED", served)
    examples, surroundings = gateway_api_examples(release), Surroundings()
    found = {path: _refusals(path, text, surroundings) for path, text in examples.items()}
    assert len(found) > 50
    refused = {**REFUSED}
    for name, files in UNSERVED.items():
        refused.update({} if name in served else files)
    assert {path: words for path, words in found.items() if words} == {
        path: sorted(words) for path, words in refused.items() if path in found
    }


def test_every_refusal_is_of_a_file() -> None:
    named = REFUSED.keys() | {path for files in UNSERVED.values() for path in files}
    assert named <= {path for one in RELEASES for path in gateway_api_examples(one)}


def _refusals(path: str, text: str, surroundings: Surroundings) -> list[str]:
    documents = [one for one in yaml.safe_load_all(text) if one]
    assert documents
    whole = [text, *(yaml.safe_dump(one) for one in surroundings.of(documents))]
    decoded = decode_documents("\n---\n".join(whole).encode(), path)
    translated = translate(Snapshot.of(decoded.objects), Settings(adopt=True))
    problems = (*decoded.problems, *translated.problems)
    return sorted(_words(one) for one in problems if one.severity == "error")


def _words(one: Problem) -> str:
    return f"{one.object.kind if one.object else ''} {one.path}: {one.reason}"
