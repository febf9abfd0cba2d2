"""Reasons of GatewayClasses, Gateways, ListenerSets and their listeners.

In: nothing. Out: `GATEWAYS`.
"""

from __future__ import annotations

from edgefast.diagnostics.reasons.objects import gateway, listener_set
from edgefast.diagnostics.reasons.word import Page

__all__ = ["GATEWAYS"]

_HTTP = "listeners: [{name: http, port: 8080, protocol: HTTP}]\n"
_HTTPS = "{name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: shop-tls}]}}"
_NOT_SERVED = "The listener is not served; other listeners of the Gateway are."

GATEWAYS = (
    Page(
        word="AddressNotUsable",
        means="An address that the Gateway requests is invalid or not available: no `--bind` has "
        "it (files), or the load balancer assigned another one (cluster). Usable addresses "
        "are served; a Gateway of files without any is not bound.",
        fix=(
            "Files: add `--bind ADDRESS`, or request no address. Cluster: request an address that the load balancer "
            "has, or no address.",
        ),
        example=gateway("addresses: [{value: 192.0.2.1}]\n" + _HTTP),
        place="bound",
    ),
    Page(
        word="Adopted",
        means="With `--adopt` edgefast accepts every GatewayClass, also one that is in no file, "
        "and ignores references to parameters of other projects. You can try files for "
        "another controller unchanged.",
        fix=(
            "Nothing, for a trial. To move to edgefast, set `spec.controllerName: "
            "gateway.edge.io/gatewayclass-controller` in the GatewayClass, and write an "
            "EdgeProxy with the parameters that you need.",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\nspec:\n"
        "  controllerName: gateway.envoyproxy.io/gatewayclass-controller\n"
        "  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: proxy, namespace: default}\n",
        where="With `--adopt` of `edgefast run`, `check`, `diff` and `explain`: one line for all files.",
        place="adopted",
    ),
    Page(
        word="ConfigurationChanged",
        means="The condition InsecureFrontendValidationMode: with `AllowInsecureFallback` the "
        "listener accepts clients with a missing or invalid certificate. This is not an "
        "error; the condition is a reminder.",
        fix=("Remove `mode: AllowInsecureFallback` when all clients have certificates.",),
        example=gateway(
            "tls:\n"
            "  frontend:\n"
            "    default:\n"
            "      validation:\n"
            "        mode: AllowInsecureFallback\n"
            '        caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]\n'
            f"listeners: [{_HTTPS}]\n"
        ),
    ),
    Page(
        word="HostnameConflict",
        means="Another listener has the same port, protocol and hostname. In one Gateway neither "
        "is served; between several objects the oldest one is.",
        fix=("Use a different hostname or port for each listener.",),
        example=gateway("listeners: [{name: http, port: 8080, protocol: HTTP}]\n", "second"),
    ),
    Page(
        word="InvalidCACertificateKind",
        means="A CA certificate to verify clients with must be in a ConfigMap, a Secret or a ClusterTrustBundle, and the API server must have that kind.",
        fix=('Refer to one with the key `ca.crt`; the core group is written `""`.',),
        example=gateway(
            'tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: Service, name: shop}]}}}}\n'
            f"listeners: [{_HTTPS}]\n"
        ),
    ),
    Page(
        word="InvalidCACertificateRef",
        means="A CA certificate is missing, or its `ca.crt` is not a PEM certificate. Other "
        "certificates of the list are used; without any, see "
        "[NoValidCACertificate](NoValidCACertificate.md).",
        fix=("Create the ConfigMap or Secret with the key `ca.crt`.",),
        example=gateway(
            'tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}\n'
            f"listeners: [{_HTTPS}]\n"
        ),
    ),
    Page(
        word="InvalidCertificateRef",
        means="No certificate of the listener can be served: its Secret is missing or invalid, "
        f"or the reference is not to a Secret. {_NOT_SERVED}",
        fix=(
            "Create a Secret of type kubernetes.io/tls with `tls.crt` and `tls.key` in the "
            "namespace of the Gateway.",
            "For an existing Secret, the message gives the error: not PEM, the key of another "
            "certificate.",
        ),
        example=gateway(f"listeners: [{_HTTPS}]"),
    ),
    Page(
        word="InvalidClientCertificateRef",
        means="The client certificate for backends is missing or invalid. The Gateway is served; "
        "backends that require the certificate refuse connections.",
        fix=("Create the Secret with `tls.crt` and `tls.key`.",),
        example=gateway("tls: {backend: {clientCertificateRef: {name: proxy-tls}}}\n" + _HTTP),
    ),
    Page(
        word="InvalidListenerFilter",
        means="A filter of the listener has an error: a header that belongs to the proxy, an "
        "invalid path, or a body size that is too large. All requests of the listener get "
        "500, because the filter cannot authorize them.",
        fix=("Correct the field that the message names, or remove the filter.",),
        example=gateway(
            "listeners:\n"
            "- name: http\n"
            "  port: 8080\n"
            "  protocol: HTTP\n"
            "  filters:\n"
            "    requests:\n"
            "    - type: ExternalAuth\n"
            "      externalAuth:\n"
            "        protocol: HTTP\n"
            "        backendRef: {name: shop, port: 80}\n"
            "        http: {allowedHeaders: [host], allowedResponseHeaders: [x-user]}\n"
        ),
    ),
    Page(
        word="InvalidListenerFilterRef",
        means="A filter of the listener refers to a backend that does not exist or cannot be "
        "used. All requests of the listener get 500, because edgefast cannot call the "
        "authorization service.",
        fix=(
            "Create the Service, or correct kind, name, namespace and port of `backendRef`.",
            "For another namespace a ReferenceGrant is required; without one the reason is "
            "RefNotPermitted.",
        ),
        example=gateway(
            "listeners:\n"
            "- name: http\n"
            "  port: 8080\n"
            "  protocol: HTTP\n"
            "  filters:\n"
            "    requests:\n"
            "    - type: ExternalAuth\n"
            "      externalAuth:\n"
            "        protocol: HTTP\n"
            "        backendRef: {name: auth, port: 80}\n"
            "        http: {allowedResponseHeaders: [x-user]}\n"
        ),
    ),
    Page(
        word="InvalidParameters",
        means="`parametersRef` does not name an existing EdgeProxy. Gateways of the class are "
        "not served.",
        fix=(
            "Create the EdgeProxy, or correct group (`gateway.edge.io`), kind, name and, for a "
            "class, namespace.",
        ),
        example=gateway(
            "infrastructure: {parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: settings}}\n"
            + _HTTP
        ),
    ),
    Page(
        word="InvalidRouteKinds",
        means="`allowedRoutes.kinds` of a listener has a kind that listeners of its protocol do "
        "not support. The listener serves only the supported kinds of the list.",
        fix=(
            "Remove the kind: HTTP and HTTPS support HTTPRoute and GRPCRoute, TLS supports "
            "TLSRoute, TCP TCPRoute, UDP UDPRoute.",
        ),
        example=gateway(
            "listeners: [{name: http, port: 8080, protocol: HTTP, allowedRoutes: {kinds: [{kind: TLSRoute}]}}]\n"
        ),
    ),
    Page(
        word="ListenersNotResolved",
        means="The condition of a Gateway with a listener that has an unresolved reference; the "
        "condition of the listener names it.",
        fix=("Check `status.listeners` and correct the reference.",),
        example=gateway(f"listeners: [{_HTTPS}]"),
    ),
    Page(
        word="ListenersNotValid",
        means="Listeners of the Gateway or ListenerSet are not served. With `Accepted` True some "
        "listeners are served, with False none.",
        fix=("Check the conditions of the listeners that the message names.",),
        example=gateway(
            "listeners:\n"
            "- {name: http, port: 8080, protocol: HTTP}\n"
            "- {name: raw, port: 9000, protocol: acme.io/rtmp}\n"
        ),
    ),
    Page(
        word="NoValidCACertificate",
        means="Clients or a backend must be verified, but no valid CA certificate exists. The "
        "listener is not served, or requests to the backend get 500. edgefast never "
        "connects without the verification.",
        fix=(
            "Create at least one of the referenced CA certificates; the other problems of the "
            "object give the error of each.",
        ),
        example=gateway(
            'tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}\n'
            f"listeners: [{_HTTPS}]\n"
        ),
    ),
    Page(
        word="NotAllowed",
        means="The Gateway does not allow ListenerSets of this namespace (`allowedListeners`). "
        "By default it allows none.",
        fix=("Let the Gateway's owner set `allowedListeners.namespaces.from`.",),
        example=listener_set("listeners: [{name: more, port: 9090, protocol: HTTP}]"),
    ),
    Page(
        word="NotAssigned",
        means="No address that a Gateway requests is assigned. Bound addresses are served.",
        fix=(
            "Files: add `--bind ADDRESS`. Cluster: request an address that the load balancer "
            "has, or no address.",
        ),
        seen="Gateway default/edge: AddressesAssigned=False NotAssigned",
    ),
    Page(
        word="OverlappingHostnames",
        means="The condition OverlappingTLSConfig: another HTTPS listener of the port has a "
        "certificate for hosts of this listener, so a client can reuse a connection of the "
        "other listener (RFC 9113 9.1.1). Requests on a connection with the TLS server "
        "name of another listener get 421.",
        fix=(
            "Nothing, if this is intended. Otherwise use one listener for the hosts, or "
            "certificates that do not overlap.",
        ),
        seen="Gateway default/edge listener shop: OverlappingTLSConfig=True OverlappingHostnames: hostname shop.example.com "
        "overlaps with listener any",
    ),
    Page(
        word="ParentNotAccepted",
        means="The Gateway of a ListenerSet is not accepted, so its listeners are not served.",
        fix=("Correct the Gateway; its conditions give the error.",),
        example=gateway(
            "allowedListeners: {namespaces: {from: All}}\n"
            "infrastructure: {parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: settings}}\n"
            + _HTTP
        )
        + "---\n"
        + listener_set("listeners: [{name: more, port: 9090, protocol: HTTP}]"),
    ),
    Page(
        word="ParentNotProgrammed",
        means="The Gateway of a ListenerSet is not programmed: its fleet has no address or no proxy yet, or it is not accepted.",
        fix=("Check the Gateway's condition Programmed.",),
        example=gateway(
            "allowedListeners: {namespaces: {from: All}}\n"
            "infrastructure: {parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: settings}}\n"
            + _HTTP
        )
        + "---\n"
        + listener_set("listeners: [{name: more, port: 9090, protocol: HTTP}]"),
    ),
    Page(
        word="PartiallyAssigned",
        means="Only some of the addresses that a Gateway requests are assigned; the message "
        "names the missing ones.",
        fix=(
            "Files: add `--bind ADDRESS`. Cluster: request addresses that the fleet has; a "
            "load balancer has one.",
        ),
        seen="Gateway default/edge: AddressesAssigned=False PartiallyAssigned",
    ),
    Page(
        word="PartiallyInvalidCertificateRef",
        means="Only some certificates of a listener are valid; edgefast serves these. A listener "
        "serves one certificate of each key type.",
        fix=("Remove or repair the reference that the message names.",),
        seen="Gateway default/edge spec.listeners[0].tls.certificateRefs[1]: PartiallyInvalidCertificateRef "
        "Secret default/old-tls not found",
    ),
    Page(
        word="PortUnavailable",
        means="The port of a listener is not available: another program uses it, the process has "
        "no right to bind it, another Gateway uses it with other client verification, or "
        "two ports of a fleet need the same container port (80 is 10080 in the pod). "
        f"{_NOT_SERVED}",
        fix=(
            "Stop the other program, choose another port, or grant `NET_BIND_SERVICE` for "
            "ports below 1024.",
            "edgefast retries each time it reads the configuration.",
        ),
        example=gateway(
            "listeners: [{name: low, port: 80, protocol: HTTP}, {name: high, port: 10080, protocol: HTTP}]\n"
        ),
        place="cluster",
    ),
    Page(
        word="PolicyIgnored",
        means="A served object has a policy or an annotation of another project, and edgefast does not apply it. "
        "In files, a policy or annotation that decides access closes its target: requests get "
        "500, unless `--ignore-foreign-policies` is passed. All others have no effect: "
        "requests that they would change or limit "
        "pass. In files this is an error, except for annotations that do not decide access. In a cluster edgefast reports annotations only, "
        "as a warning, and no condition is False because of them.",
        fix=(
            "Use a SecurityPolicy, BackendTrafficPolicy or RateLimitFilter of gateway.edge.io, "
            "filters of the route, or an EdgeProxy. The message names the equivalent field of edgefast; "
            "`edgefast docs migrating` lists all fields.",
            "Run access checks that edgefast does not support in front of or behind this gateway.",
            "Pass `--ignore-foreign-policies` to `edgefast run` to serve everything without these policies, if something else decides access.",
            "Remove the policy or the annotation if it is not needed. The message has its "
            "name; the line number of a policy is that of its target.",
        ),
        example="apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {name: jwt}\nspec:\n"
        "  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]\n"
        "  authorization: {rules: [{action: Allow, principal: {clientCIDRs: [10.0.0.0/8]}}]}\n"
        "  jwt: {providers: []}\n",
    ),
    Page(
        word="ProtocolConflict",
        means="Listeners with different protocols use one port. In one Gateway neither is "
        "served; between several objects the oldest one is.",
        fix=("Use a different port for each protocol.",),
        example=gateway(f"listeners:\n- {{name: http, port: 8443, protocol: HTTP}}\n- {_HTTPS}\n"),
    ),
    Page(
        word="UnsupportedAddress",
        means="`spec.addresses` has a type other than IPAddress and Hostname. The Gateway is not accepted.",
        fix=("Request an IPAddress or a Hostname, or no address.",),
        example=gateway("addresses: [{type: example.com/pool, value: public}]\n" + _HTTP),
    ),
    Page(
        word="UnsupportedProtocol",
        means="A listener has an unsupported protocol, or the port of a backend has an "
        "`appProtocol` that edgefast does not support. The listener is not served; "
        "requests to the backend get 500, and TCP, TLS or UDP connections are refused.",
        fix=(
            "Use a protocol that the message names. For backends remove `appProtocol`, or set "
            "`kubernetes.io/h2c` or `kubernetes.io/ws` (not for GRPCRoutes). `https` and `kubernetes.io/wss` need a BackendTLSPolicy.",
            "Use a GRPCRoute for gRPC backends (`appProtocol: grpc`).",
        ),
        example=gateway("listeners: [{name: raw, port: 9000, protocol: acme.io/rtmp}]"),
    ),
    Page(
        word="KindRemoved",
        means="The CRD of a kind was deleted while objects of that kind were in force, for example by a prune or by helm. The API "
        "server deleted the objects with it. The controller keeps them in force as it last saw them, so that no route opens.",
        fix=(
            "Install the CRD and the objects again: each new object replaces the kept one.",
            "To drop the objects, list the kind in `provider.kubernetes.releaseKinds` of EdgeGateway. A restart of the controller "
            "while the CRD is missing drops them as well. Routes that a SecurityPolicy protected are then open.",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n"
        "spec: {controllerName: gateway.edge.io/gatewayclass-controller}\n",
        place="removed",
    ),
    Page(
        word="UnsupportedVersion",
        means="The CRDs of the Gateway API in the cluster are of a release that this edgefast "
        "does not know. edgefast serves the fields that it knows.",
        fix=("Install the CRDs of a release that the message names.",),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n"
        "spec: {controllerName: gateway.edge.io/gatewayclass-controller}\n",
        place="release",
    ),
)
