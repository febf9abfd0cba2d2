"""Page: docs/guides/migrating, made from the tables of equivalents of other projects' policies.

In: the projects. Out: Markdown by file. Must never: be edited by hand; a test compares the pages
with the tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.api.migration.access_policies import PRODUCTS, Product
from edgefast.api.migration.adoption.adopted_document import ENVOY_GROUP
from edgefast.api.migration.adoption.effects import describe_effect
from edgefast.api.migration.field_mapping import (
    Annotations,
    FieldMapping,
    ForeignKind,
    Project,
)
from edgefast.api.migration.field_mappings import PROJECTS

_MADE = """<!-- Made from edgefast/api/migration by `pytest tests/api/test_field_mappings.py --update-goldens`; do not edit. -->
"""
_INDEX = f"""{_MADE}
# From another gateway

Find out what edgefast makes of your files before you change anything:

```text
edgefast check --adopt -f their-files/
```

**In a cluster edgefast ignores policies of other projects: requests pass without them.** A route that a policy of Envoy Gateway protects
is open on edgefast. Write the [SecurityPolicy](../../reference/policies.md) before you attach the route to a Gateway of edgefast.

`--adopt` serves every GatewayClass of the files ([configuration](../../reference/configuration.md#files-of-another-controller)). It also
serves policies, filters and Backends of [Envoy Gateway](envoy-gateway.md#serve-it-as-it-is).

| object of another project | what to do |
|---|---|
| Gateway, HTTPRoute, GRPCRoute of the Gateway API | no change, except for the next two rows |
| a filter or backendRef that refers to an object of another project | change it: its rule answers 500 |
| `parametersRef` to an object of another project | remove it, or name an [EdgeProxy](../../reference/edgeproxy.md) |
| a policy | write the same for edgefast. In files, a policy of a served target is an error ([PolicyIgnored](../../problems/PolicyIgnored.md)); the message has the replacement of each field |

Each of these pages lists the fields of one project and their replacements:

| from | page |
|---|---|
"""
_ACCESS = """
## The steps

1. Export the objects into two folders. Add the policies and the Ingresses of the other project to the first one. From
   ingress-nginx, also export `ingresses,ingressclasses` and the ConfigMap of its controller, and pass `--ingress-class nginx`
   to `check` and `diff` ([Ingress](../ingress.md)). `edgefast convert` does these steps for Ingresses
   ([in an afternoon](ingress-nginx-afternoon.md)):

   ```text
   mkdir their-files new-files
   kubectl get -A -o yaml gatewayclasses.gateway.networking.k8s.io,gateways.gateway.networking.k8s.io,httproutes.gateway.networking.k8s.io,grpcroutes.gateway.networking.k8s.io,referencegrants.gateway.networking.k8s.io,services,endpointslices,configmaps,namespaces > their-files/all.yaml
   cp their-files/all.yaml new-files/
   ```

2. Run `edgefast check --adopt -f their-files/`. Write a replacement for each policy, filter and annotation that it reports to `new-files`, until
   `edgefast check --adopt -f new-files/` reports nothing but missing Secrets. [The order of policies](../../reference/policies.md#the-order) and
   [which policy applies](../../reference/policies.md#which-policy-applies) describe the target.
3. Compare: `edgefast diff --adopt --ignore-foreign-policies their-files new-files` ([diff](../diff.md)). edgefast decides both sides, without the
   policies of the other project. The command therefore lists what your new policies deny and change (`refused`, `rule`). Without
   `--ignore-foreign-policies` the old side answers 500 wherever such a policy decides access, and each of these routes is listed as `opened`.
4. Install edgefast [beside the other gateway](../kubernetes.md), with a separate GatewayClass
   (`controllerName: gateway.edge.io/gatewayclass-controller`). Apply the policies of `new-files`.
5. Copy the Gateway under a new name, set its `gatewayClassName` to the class of edgefast, and apply it. It gets a separate address. Add the
   copy to `parentRefs` of each route: both gateways then serve the route. A route with a filter of the other project needs a copy with
   the replacement, attached to the new Gateway only.
6. Send test requests to the new address. `edgefast explain` shows [why a request gets its response](../explain.md).
7. Move the DNS name to the new address. To go back, move it to the old address: nothing changed there. Delete the old Gateway when its
   metrics show no requests for longer than the DNS name is cached.

## EnvoyProxy and Backend of Envoy Gateway

| Envoy Gateway | edgefast |
|---|---|
| EnvoyProxy `provider.kubernetes`: `envoyDeployment` or `envoyDaemonSet`, `envoyService`, `envoyHpa`, `envoyPDB` | EdgeProxy `spec.deployment`, `spec.service`, `spec.hpa`, `spec.pdb` |
| EnvoyProxy `concurrency` | EdgeProxy `spec.workers` |
| EnvoyProxy `backendTLS.clientCertificateRef` | Gateway [`spec.tls.backend.clientCertificateRef`](../tls.md#client-certificate-for-backends) |
| EnvoyProxy `telemetry.accessLog`, `telemetry.tracing` | EdgeProxy [`spec.accessLog`](../access-log.md#from-envoy-gateway), [`spec.tracing`](../tracing.md#from-envoy-gateway) |
| EnvoyProxy `shutdown.drainTimeout`, `shutdown.minDrainDuration` | EdgeProxy `spec.shutdown`, the same names |
| EnvoyProxy `mergeGateways` | EdgeProxy `spec.mergeGateways` |
| EnvoyProxy `bootstrap`, `extraArgs`, `filterOrder` | no equivalent: edgefast does not use Envoy |
| Backend of `gateway.envoyproxy.io` | [Backend](../backends.md#backend) of `gateway.edge.io`: `endpoints` are the same. Set `extensionApis.enableBackend` |
| Backend `tls.insecureSkipVerify` | Backend [`spec.tls.insecureSkipVerify`](../tls.md#without-verification) |
| Backend `appProtocols: [gateway.envoyproxy.io/h2c]` | Backend [`spec.protocol: H2C`](../../reference/backend.md) |
| Backend `type: DynamicResolver`, `fallback`, other `appProtocols` | no equivalent |

The fields below these can differ: `edgefast check` names each field that an EdgeProxy or a Backend does not have.

## Policies that decide access

In files, each of these policies closes its target: edgefast answers its requests with 500. `--ignore-foreign-policies` serves the target
without the policy ([configuration](../../reference/configuration.md#policies-of-other-projects)). A policy of any other product closes its target too, if its
kind is named after access.

| product | policies | annotations |
|---|---|---|
"""
_STEPS = """Check your files first; each message contains the replacement of a field:

```text
edgefast check --adopt -f their-files/
```

[From another gateway](README.md#the-steps) lists the steps of a migration.
"""
_ADOPTION = """## Serve it as it is

`--adopt` of `edgefast run`, `check`, `diff` and `explain` reads these kinds as the objects of edgefast that they are:

```text
edgefast check --adopt -f their-files/
edgefast run --adopt -f their-files/
```

`edgefast convert --adopt -f their-files/ -o converted` writes the same objects as files of group `gateway.edge.io`. A comment above each
object names what was not carried over. An object that closes its targets is not written. Apply the routes and Gateways of the output when
edgefast serves them: Envoy Gateway does not know their filters.

- A problem names each field without a counterpart: the object, the field and what to do.
- A field that decides access and has no counterpart closes the targets of its policy: they answer 500.
- edgefast reads `targetRef`, `targetRefs` and `targetSelectors`. A policy with targets in other namespaces is not adopted; it closes its
  targets if it decides access or limits rates.
- A field that edgefast has and Envoy Gateway lacks, such as `satisfy`, is an error in an object of Envoy Gateway.
- Of two policies with the same target, the older one applies.
- `cors`, `rateLimit` and `retry` become filters and fields of the rules of the targets. A field of the rule itself takes precedence. A
  route with several parents gets the rate limits of all of them. CORS and retries apply if its listeners have the same policy.
- A policy of a route without `mergeType` replaces policies above it, as in Envoy Gateway. A policy of a listener inherits.
- With `mergeType` a global and a local rate limit of two levels apply together. A SecurityPolicy closes its route if it sets a part of a
  field, such as `authorization`, and the policy above sets another part: edgefast does not merge inside a field.
- A Gateway whose EnvoyProxy has an error is not served.
- If a local rate limit has rules with and without `clientSelectors`, the rule without them counts all requests.
- In a cluster the controller does not adopt objects: convert them.
"""
#: Istio has no policies with a table of fields here.
_ISTIO = """# From Istio

{steps}
Gateways and routes of the Gateway API need no change except `gatewayClassName`. edgefast does not read VirtualService, DestinationRule or
Istio's own Gateway: write them as HTTPRoutes and policies.

| in Istio | in edgefast |
|---|---|
| AuthorizationPolicy | SecurityPolicy `spec.authorization`: [access rules](../access-rules.md) |
| AuthorizationPolicy with `action: CUSTOM` | SecurityPolicy `spec.extAuth`: [external authorization](../external-auth.md) |
| RequestAuthentication | SecurityPolicy `spec.jwt`: [JWT](../jwt.md) |
| VirtualService `route` with weights | HTTPRoute `backendRefs` with `weight`: [canary](../canary.md) |
| VirtualService `timeout`, `retries` | HTTPRoute `timeouts`, `retry`: [retries and timeouts](../retries-timeouts.md) |
| VirtualService `mirror` | filter RequestMirror: [mirroring](../mirroring.md) |
| VirtualService `fault` | BackendTrafficPolicy `spec.faultInjection`: [faults](../faults.md) |
| VirtualService `corsPolicy` | filter CORS: [CORS](../cors.md) |
| DestinationRule `loadBalancer` | BackendTrafficPolicy `spec.loadBalancer`: [load balancing](../load-balancing.md) |
| DestinationRule `connectionPool` | BackendTrafficPolicy `spec.circuitBreaker`: [circuit breaking](../circuit-breaking.md) |
| DestinationRule `outlierDetection` | BackendTrafficPolicy `spec.healthCheck.passive`: [health checks](../health-checks.md) |
| DestinationRule `tls` | BackendTLSPolicy: [TLS](../tls.md) |
| ServiceEntry | Backend, XBackend: [backends outside the cluster](../backends.md) |
| EnvoyFilter, WasmPlugin | no equivalent |

In files, these policies decide access and close their targets until you remove them:

| product | policies | annotations |
|---|---|---|
{access_policies}

A policy without a selector applies to all Gateways of its namespace, and one in `istio-system` to all Gateways.
"""
_PLACES = {"later": "no equivalent", "never": "no equivalent"}


def write_pages() -> dict[str, str]:
    """Return the pages by name of their file."""
    pages = {name_page(one.title): _page(one) for one in PROJECTS}
    (istio,) = (one for one in PRODUCTS if one.title == "Istio")
    pages["istio.md"] = (
        f"{_MADE}\n{_ISTIO.format(steps=_STEPS, access_policies=_access_policies(istio))}"
    )
    titles = {name_page(one.title): one.title for one in PROJECTS} | {"istio.md": "Istio"}
    rows = "".join(
        f"| {titles[name]} | [{name.removesuffix('.md')}]({name}) |\n" for name in sorted(pages)
    )
    access_policies = "".join(f"{_access_policies(one)}\n" for one in PRODUCTS)
    return {"README.md": _INDEX + rows + _ACCESS + access_policies, **pages}


def name_page(title: str) -> str:
    """Return the file of a project's page."""
    return f"{title.lower().replace(' ', '-')}.md"


def _page(one: Project) -> str:
    return "\n".join([_MADE, *_project(one)])


def _access_policies(one: Product) -> str:
    kinds = []
    for guard in one.access_policies:
        message = f" ({', '.join(f'`{field}`' for field in guard.only)})" if guard.only else ""
        message = (
            f" (any field but {', '.join(f'`{field}`' for field in guard.but)})"
            if guard.but
            else message
        )
        kinds.append(f"{guard.kind}{message}")
    groups = f" of {' and '.join(f'`{group}`' for group in one.groups)}" if one.groups else ""
    named = ", ".join(kinds) + groups if kinds else ""
    return f"| {one.title} | {named} | {', '.join(f'`{name}`' for name in one.annotations)} |"


def _project(one: Project) -> Iterator[str]:
    yield f"# From {one.title}"
    yield ""
    yield _STEPS
    groups = " and ".join(f"`{group}`" for group in one.groups)
    yield f"Group {groups}; read in {one.title} {one.version}."
    yield ""
    if one.about:
        yield one.about
        yield ""
    if ENVOY_GROUP in one.groups:
        yield _ADOPTION
    for kind in one.kinds:
        yield from _kind(kind, adopts=ENVOY_GROUP in one.groups)
    if one.annotations is not None:
        yield from _annotations(one.annotations)


def _kind(one: ForeignKind, *, adopts: bool) -> Iterator[str]:
    yield f"## {one.kind}"
    yield ""
    if one.about:
        yield one.about
        yield ""
    yield "| field | use | with `--adopt` |" if adopts else "| field | use |"
    yield "|---|---|---|" if adopts else "|---|---|"
    for name, found in one.fields.items():
        inner = [part for part in one.inner if part.startswith((f"{name}.", f"{name}[]."))]
        for path, mapping in ((name, found), *((part, one.inner[part]) for part in inner)):
            effect = f" {describe_effect(one.kind, path, mapping)} |" if adopts else ""
            yield f"| `{path}` | {_write_message(mapping)} |{effect}"
    yield ""


def _annotations(one: Annotations) -> Iterator[str]:
    for title, table in (("access", one.access_policies), ("anything else", one.others)):
        yield f"## Annotations that decide {title}"
        yield ""
        yield f"| `{one.domain}/` | use |"
        yield "|---|---|"
        for name, found in table.items():
            yield f"| `{name}` | {_write_message(found)} |"
        yield ""


def _write_message(one: FieldMapping) -> str:
    if one.place == "here":
        return one.said
    meanwhile = "; meanwhile " if one.place == "later" else ", because "
    return f"{_PLACES[one.place]}{meanwhile}{one.said}" if one.said else _PLACES[one.place]
