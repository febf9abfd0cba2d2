"""referenced(): Gateways of ours, policies, Backends and the configuration name what is read. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from controller.kube.references import READ, referenced
from edgefast.api.config.edgegateway_rate_limit import (
    GatewayRateLimit,
    RateLimitBackend,
    RedisBackend,
    RedisTLS,
    SecretKeyReference,
    SecretReference,
)
from edgefast.api.decode.decode import decode_documents
from edgefast.api.model.meta import LabelSelector
from edgefast.api.snapshot import Snapshot
from edgefast.translate.settings import Settings

SETTINGS = Settings(standalone=False, namespace="system", controller_name="gateway.edge.io/ours")
CLASSES = b"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gateway.edge.io/ours}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: theirs}
spec: {controllerName: gateway.edge.io/theirs}
"""


def snapshot(text: str) -> Snapshot:
    """Read documents; the texts stand in for what an API server has accepted."""
    decoded = decode_documents(CLASSES + b"---\n" + text.encode(), "x.yaml")
    assert not decoded.problems, [one.line() for one in decoded.problems]
    return Snapshot.of(decoded.objects)


def gateway(listener: str, cls: str = "ours", tls: str = "{}") -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: g, namespace: apps}}
spec:
  gatewayClassName: {cls}
  tls: {tls}
  listeners:
  - {{name: a, port: 443, protocol: HTTPS, tls: {{certificateRefs: [{listener}]}}}}
"""


def test_certificates_of_our_gateways_alone() -> None:
    found = snapshot(gateway("{name: c}"))
    assert referenced(found, SETTINGS) == {("Secret", "apps", "c")}
    assert not referenced(snapshot(gateway("{name: c}", "theirs")), SETTINGS)
    assert not referenced(snapshot(gateway("{name: c}", "nobodys")), SETTINGS)
    assert not referenced(snapshot(gateway("{name: c, kind: Other, group: x.io}")), SETTINGS)


def test_unwatched_namespaces_are_left_alone() -> None:
    found = snapshot(gateway("{name: c}"))
    elsewhere = msgspec.structs.replace(SETTINGS, watch_namespaces=("other",))
    assert not referenced(found, elsewhere)
    labelled = msgspec.structs.replace(
        SETTINGS, watch_selector=LabelSelector(match_labels={"a": "b"})
    )
    assert not referenced(found, labelled)


GRANT = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: g, namespace: vault}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: NAMESPACE}]
  to: [{group: "", kind: Secret}]
"""


def test_other_namespaces_need_a_grant() -> None:
    text = gateway("{name: c, namespace: vault}")
    assert not referenced(snapshot(text), SETTINGS)
    assert not referenced(snapshot(text + GRANT.replace("NAMESPACE", "foreign")), SETTINGS)
    granted = snapshot(text + GRANT.replace("NAMESPACE", "apps"))
    assert referenced(granted, SETTINGS) == {("Secret", "vault", "c")}


SET = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: more, namespace: team}}
spec:
  parentRef: {{name: g, namespace: {parent}}}
  listeners:
  - {{name: a, port: 444, protocol: HTTPS, tls: {{certificateRefs: [{{name: own}}, {{name: far, namespace: certs}}]}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {{name: one, namespace: certs}}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: {granted}, namespace: team}}]
  to: [{{group: "", kind: Secret}}]
"""


def test_certificates_of_listener_sets_of_our_gateways() -> None:
    here = gateway("{name: c}")
    found = referenced(snapshot(here + SET.format(parent="apps", granted="ListenerSet")), SETTINGS)
    assert found == {("Secret", "apps", "c"), ("Secret", "team", "own"), ("Secret", "certs", "far")}
    found = referenced(snapshot(here + SET.format(parent="apps", granted="Gateway")), SETTINGS)
    assert ("Secret", "certs", "far") not in found
    elsewhere = snapshot(here + SET.format(parent="other", granted="ListenerSet"))
    assert referenced(elsewhere, SETTINGS) == {("Secret", "apps", "c")}
    unwatched = msgspec.structs.replace(SETTINGS, watch_namespaces=("apps",))
    whole = snapshot(here + SET.format(parent="apps", granted="ListenerSet"))
    assert referenced(whole, unwatched) == {("Secret", "apps", "c")}


def test_bundles_of_the_cluster_are_in_no_namespace_and_need_no_grant() -> None:
    one = '{group: certificates.k8s.io, kind: ClusterTrustBundle, name: "example.com:internal:v1"}'
    tls = f"{{frontend: {{default: {{validation: {{caCertificateRefs: [{one}]}}}}}}}}"
    wanted = ("ClusterTrustBundle", "", "example.com:internal:v1")
    found = referenced(snapshot(gateway("{name: c}", tls=tls)), SETTINGS)
    assert found == {("Secret", "apps", "c"), wanted}
    policy = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: p, namespace: apps}}
spec:
  targetRefs: [{{group: "", kind: Service, name: s}}]
  validation: {{hostname: x.example.com, caCertificateRefs: [{one}]}}
"""
    assert referenced(snapshot(policy), SETTINGS) == {wanted}


def test_all_that_tls_of_a_gateway_names() -> None:
    authority = '{group: "", kind: ConfigMap, name: NAME}'
    tls = f"""
      backend: {{clientCertificateRef: {{name: client}}}}
      frontend:
        default: {{validation: {{caCertificateRefs: [{authority.replace("NAME", "first")}]}}}}
        perPort:
        - port: 8443
          tls: {{validation: {{caCertificateRefs: [{authority.replace("NAME", "second")}]}}}}
"""
    found = snapshot(gateway("{name: c}", tls=tls.replace("\n", "\n    ")))
    assert referenced(found, SETTINGS) == {
        ("Secret", "apps", "c"),
        ("Secret", "apps", "client"),
        ("ConfigMap", "apps", "first"),
        ("ConfigMap", "apps", "second"),
    }


def test_policies_and_backends() -> None:
    found = snapshot("""
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: p, namespace: apps}
spec:
  targetRefs: [{group: "", kind: Service, name: s}]
  validation:
    hostname: s.example.com
    caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}, {group: "", kind: Secret, name: sca}]
---
apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata: {name: b, namespace: apps}
spec:
  endpoints: [{fqdn: {hostname: b.example.com, port: 443}}]
  tls:
    caCertificateRefs: [{group: "", kind: ConfigMap, name: bca}]
    clientCertificateRef: {name: mine}
---
apiVersion: gateway.edge.io/v1alpha1
kind: Backend
metadata: {name: other, namespace: apps}
spec:
  endpoints: [{fqdn: {hostname: b.example.com, port: 443}}]
  tls: {clientCertificateRef: {name: foreign, namespace: vault}}
""")
    policy = {("ConfigMap", "apps", "ca"), ("Secret", "apps", "sca")}
    backend = {("ConfigMap", "apps", "bca"), ("Secret", "apps", "mine")}
    assert referenced(found, SETTINGS) == policy | backend
    without = msgspec.structs.replace(SETTINGS, enable_backend=False)
    assert referenced(found, without) == policy


def test_bodies_of_answers() -> None:
    found = snapshot("""
apiVersion: gateway.edge.io/v1alpha1
kind: HTTPRouteFilter
metadata: {name: page, namespace: apps}
spec: {directResponse: {body: {type: ValueRef, valueRef: {group: "", kind: ConfigMap, name: pages}}}}
---
apiVersion: gateway.edge.io/v1alpha1
kind: HTTPRouteFilter
metadata: {name: text, namespace: apps}
spec: {directResponse: {body: {inline: hello}}}
""")
    assert referenced(found, SETTINGS) == {("ConfigMap", "apps", "pages")}


def test_keys_and_passwords_of_policies() -> None:
    found = snapshot("""
apiVersion: gateway.edge.io/v1alpha1
kind: SecurityPolicy
metadata: {name: who, namespace: apps}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  apiKeyAuth:
    credentialRefs: [{name: keys}, {name: keys, namespace: vault}, {name: other, namespace: vault}]
    extractFrom: [{headers: [x-key]}]
  basicAuth: {users: {name: users}}
  jwt:
    providers:
    - {name: a, localJWKS: {type: ValueRef, valueRef: {group: "", kind: ConfigMap, name: jwks}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: keys, namespace: vault}
spec:
  from: [{group: gateway.edge.io, kind: SecurityPolicy, namespace: apps}]
  to: [{group: "", kind: Secret, name: keys}]
""")
    assert referenced(found, SETTINGS) == {
        ("Secret", "apps", "keys"),
        ("Secret", "vault", "keys"),
        ("Secret", "apps", "users"),
        ("ConfigMap", "apps", "jwks"),
    }


def test_bodies_of_answers_in_place_of_others() -> None:
    found = snapshot("""
apiVersion: gateway.edge.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: pages, namespace: apps}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  responseOverride:
  - match: {statusCodes: [{value: 404}]}
    response: {body: {type: ValueRef, valueRef: {group: "", kind: ConfigMap, name: page}}}
  - {match: {statusCodes: [{value: 403}]}, redirect: {hostname: a.example}}
""")
    assert referenced(found, SETTINGS) == {("ConfigMap", "apps", "page")}


def test_the_store_of_rate_limits() -> None:
    redis = RedisBackend(
        url_ref=SecretKeyReference(name="url"),
        password_ref=SecretKeyReference(name="password", namespace="vault"),
        tls=RedisTLS(
            ca_certificate_ref=SecretKeyReference(name="ca"),
            client_certificate_ref=SecretReference(name="client"),
        ),
    )
    limit = GatewayRateLimit(backend=RateLimitBackend(type="Redis", redis=redis))
    settings = msgspec.structs.replace(SETTINGS, rate_limit=limit)
    assert referenced(Snapshot(), settings) == {
        ("Secret", "system", "url"),
        ("Secret", "vault", "password"),
        ("Secret", "system", "ca"),
        ("Secret", "system", "client"),
    }
    assert not referenced(Snapshot(), SETTINGS)


class _Shut:
    """A table that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} of a table that is not named in READ")


def test_no_table_is_looked_at_that_is_not_named() -> None:
    objects = snapshot(gateway("{name: c}"))
    rest = [name for name in Snapshot.__struct_fields__ if name not in READ]
    shut = msgspec.structs.replace(objects, **dict.fromkeys(rest, _Shut()))
    assert referenced(shut, SETTINGS) == {("Secret", "apps", "c")}
