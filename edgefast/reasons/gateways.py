"""Reasons of GatewayClasses, Gateways, ListenerSets and their listeners.

In: nothing. Out: `GATEWAYS`.
"""

from __future__ import annotations

from edgefast.reasons.objects import gateway, listener_set
from edgefast.reasons.word import Page

__all__ = ["GATEWAYS"]

_HTTP = "listeners: [{name: http, port: 8080, protocol: HTTP}]\n"
_HTTPS = "{name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: shop-tls}]}}"
_NOT_SERVED = "The listener is not served; others of the Gateway are."

GATEWAYS = (
    Page(
        word="AddressNotUsable",
        means="An address that the Gateway asks for is not one, or nobody can give it: no `--bind` has it (files), or the "
        "load balancer gave another (cluster). What is bound serves all the same.",
        fix=(
            "Files: add `--bind ADDRESS`. Cluster: ask for an address that the load balancer has, or for none.",
        ),
        example=gateway("addresses: [{value: 192.0.2.1}]\n" + _HTTP),
        place="bound",
    ),
    Page(
        word="Adopted",
        means="With `--adopt` every GatewayClass is taken for ours, also one that is in no file, and references to parameters of "
        "other projects are left aside: files that were written for another controller can be tried as they are.",
        fix=(
            "Nothing to try it. To stay, write `spec.controllerName: gateway.edge.io/gatewayclass-controller` into the "
            "GatewayClass, and an EdgeProxy for the parameters that you need.",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\nspec:\n"
        "  controllerName: gateway.envoyproxy.io/gatewayclass-controller\n"
        "  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: proxy, namespace: default}\n",
        where="With `--adopt` of `edgefast run`, `check`, `diff` and `explain`: one line for all files.",
        place="adopted",
    ),
    Page(
        word="ConfigurationChanged",
        means="The condition InsecureFrontendValidationMode: with `AllowInsecureFallback` clients come in whose certificate is "
        "missing or invalid. It is told because it is easily forgotten, and is no mistake.",
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
        means="Another listener has the same port, protocol and hostname. Of one Gateway neither is served; between several "
        "objects the oldest keeps it.",
        fix=("Give each a hostname or a port of its own.",),
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
        means="A CA certificate is missing, or its `ca.crt` is no PEM certificate. Others of the list are used; without any, see "
        "[NoValidCACertificate](NoValidCACertificate.md).",
        fix=("Write the ConfigMap or Secret with the key `ca.crt`.",),
        example=gateway(
            'tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}\n'
            f"listeners: [{_HTTPS}]\n"
        ),
    ),
    Page(
        word="InvalidCertificateRef",
        means=f"No certificate of the listener can be served: its Secret is missing, broken, or no Secret. {_NOT_SERVED}",
        fix=(
            "Write a Secret of type kubernetes.io/tls with `tls.crt` and `tls.key` beside the Gateway.",
            "The message says what is wrong with one that is there: PEM, the key of another certificate, expired.",
        ),
        example=gateway(f"listeners: [{_HTTPS}]"),
    ),
    Page(
        word="InvalidClientCertificateRef",
        means="The certificate that the proxy shows to backends is missing or broken. The Gateway is served; backends that want "
        "the certificate will refuse.",
        fix=("Write the Secret with `tls.crt` and `tls.key`.",),
        example=gateway("tls: {backend: {clientCertificateRef: {name: proxy-tls}}}\n" + _HTTP),
    ),
    Page(
        word="InvalidListenerFilter",
        means="A filter of the listener has a mistake: a header that belongs to the proxy, a path that is none, a body that is too "
        "large. All requests of the listener are answered 500: who was to judge them cannot.",
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
        means="A filter of the listener refers to a backend that is not there, or that cannot be used. All requests of the listener "
        "are answered 500, because edgefast cannot call the service that authorises them.",
        fix=(
            "Write the Service, or correct kind, name, namespace and port of `backendRef`.",
            "In another namespace a ReferenceGrant has to allow it: that is RefNotPermitted.",
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
        means="`parametersRef` names no EdgeProxy. Gateways of a class without its parameters are not served.",
        fix=(
            "Write the EdgeProxy, or correct group (`gateway.edge.io`), kind, name and, for a class, namespace.",
        ),
        example=gateway(
            "infrastructure: {parametersRef: {group: gateway.edge.io, kind: EdgeProxy, name: settings}}\n"
            + _HTTP
        ),
    ),
    Page(
        word="InvalidRouteKinds",
        means="`allowedRoutes.kinds` of a listener has a kind that listeners of its protocol do not take. The listener is served "
        "for those that it names too, else for none.",
        fix=(
            "Remove the kind: HTTP and HTTPS take HTTPRoute and GRPCRoute, TLS TLSRoute, TCP TCPRoute, UDP UDPRoute.",
        ),
        example=gateway(
            "listeners: [{name: http, port: 8080, protocol: HTTP, allowedRoutes: {kinds: [{kind: TLSRoute}]}}]\n"
        ),
    ),
    Page(
        word="ListenersNotResolved",
        means="The condition of a Gateway of which a listener has a reference that leads nowhere; the listener's own condition "
        "says which.",
        fix=("Look at `status.listeners` and put the reference right.",),
        example=gateway(f"listeners: [{_HTTPS}]"),
    ),
    Page(
        word="ListenersNotValid",
        means="Listeners of the Gateway or ListenerSet are not served. With `Accepted` True some are, with False none.",
        fix=("The conditions of the listeners that the message names say why.",),
        example=gateway(
            "listeners:\n"
            "- {name: http, port: 8080, protocol: HTTP}\n"
            "- {name: raw, port: 9000, protocol: acme.io/rtmp}\n"
        ),
    ),
    Page(
        word="NoValidCACertificate",
        means="Clients, or a backend, must be verified, and nothing is there to verify them with. The listener is not served, "
        "or requests to the backend get 500: never unverified.",
        fix=(
            "Write at least one CA certificate that is named; the other problems of the object say what is wrong with each.",
        ),
        example=gateway(
            'tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}\n'
            f"listeners: [{_HTTPS}]\n"
        ),
    ),
    Page(
        word="NotAllowed",
        means="The Gateway takes no listeners of a ListenerSet of this namespace: `allowedListeners` says of which. By default of "
        "none.",
        fix=("Let the Gateway's owner set `allowedListeners.namespaces.from`.",),
        example=listener_set("listeners: [{name: more, port: 9090, protocol: HTTP}]"),
    ),
    Page(
        word="NotAssigned",
        means="None of the addresses that a Gateway asks for is there. What is bound serves all the same.",
        fix=(
            "Files: add `--bind ADDRESS`. Cluster: ask for an address that the load balancer has, or for none.",
        ),
        example=gateway("addresses: [{value: 192.0.2.1}]\n" + _HTTP),
    ),
    Page(
        word="OverlappingHostnames",
        means="The condition OverlappingTLSConfig: hosts of an HTTPS listener are covered by another one of the port, so that a "
        "client may reuse a connection whose certificate is the other listener's (RFC 9113 9.1.1). Requests that come on a "
        "connection for another listener's name get 421.",
        fix=(
            "Nothing, if that is meant. Else give the hosts one listener, or certificates that do not overlap.",
        ),
        seen="Gateway default/edge listener shop: OverlappingTLSConfig=True OverlappingHostnames: hostname shop.example.com "
        "overlaps with listener any",
    ),
    Page(
        word="ParentNotAccepted",
        means="The Gateway of a ListenerSet is not accepted, so its listeners are not served.",
        fix=("Put the Gateway right; its conditions say what is wrong.",),
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
        fix=("Look at the Gateway's condition Programmed.",),
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
        means="Some of the addresses that a Gateway asks for are there, others are not; the message names those that are not.",
        fix=(
            "Files: add `--bind ADDRESS`. Cluster: ask for addresses that the fleet has; a load balancer has one.",
        ),
        example=gateway("addresses: [{value: 192.0.2.1}, {value: 127.0.0.1}]\n" + _HTTP),
    ),
    Page(
        word="PartiallyInvalidCertificateRef",
        means="Some certificates of a listener can be served and others not; those that can are. A listener serves one "
        "certificate of each key type.",
        fix=("Remove or repair the reference that the message names.",),
        seen="Gateway default/edge spec.listeners[0].tls.certificateRefs[1]: PartiallyInvalidCertificateRef "
        "Secret default/old-tls not found",
    ),
    Page(
        word="PortUnavailable",
        means="The port of a listener cannot be had: another program has it, the process may not bind it, another Gateway has it "
        "with other settings for verifying clients, or in a fleet two ports need the same container port (80 is 10080 "
        f"in the pod). {_NOT_SERVED}",
        fix=(
            "End the other program, choose another port, or grant `NET_BIND_SERVICE` for ports below 1024.",
            "It is tried again whenever the configuration is looked at.",
        ),
        example=gateway(
            "listeners: [{name: low, port: 80, protocol: HTTP}, {name: high, port: 10080, protocol: HTTP}]\n"
        ),
        place="cluster",
    ),
    Page(
        word="PolicyIgnored",
        means="A served object has a policy or an annotation of another project, and edgefast does not apply it. "
        "In files, a policy or annotation that decides access closes its target: requests are "
        "answered 500, unless `--ignore-foreign-policies` is given. All others have no effect: requests that they would change or limit "
        "pass. In files this is an error, except for annotations that do not decide access. In a cluster edgefast reports annotations only, "
        "as a warning, and no condition is False because of them.",
        fix=(
            "Use a SecurityPolicy, BackendTrafficPolicy or RateLimitFilter of gateway.edge.io, "
            "filters of the route, or an EdgeProxy. The message names the equivalent field of edgefast; "
            "`edgefast docs migrating` lists all fields.",
            "Run access checks that edgefast does not support before or behind this gateway.",
            "Pass `--ignore-foreign-policies` to `edgefast run` to serve everything without these policies, if something else decides access.",
            "Remove the policy or the annotation when it is not needed; the message has its name, the line of a policy is that of its target.",
        ),
        example="apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {name: jwt}\nspec:\n"
        "  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]\n"
        "  authorization: {rules: [{action: Allow, principal: {clientCIDRs: [10.0.0.0/8]}}]}\n"
        "  jwt: {providers: []}\n",
    ),
    Page(
        word="ProtocolConflict",
        means="Listeners with different protocols are on one port. Of one Gateway neither is served; between several objects the "
        "oldest keeps it.",
        fix=("Give each a port of its own.",),
        example=gateway(f"listeners:\n- {{name: http, port: 8443, protocol: HTTP}}\n- {_HTTPS}\n"),
    ),
    Page(
        word="UnsupportedAddress",
        means="`spec.addresses` has a type other than IPAddress and Hostname. The Gateway is not accepted.",
        fix=("Ask for an IPAddress or a Hostname, or for nothing.",),
        example=gateway("addresses: [{type: example.com/pool, value: public}]\n" + _HTTP),
    ),
    Page(
        word="UnsupportedProtocol",
        means="A listener has a protocol that is not served, or the port of a backend wants one that is not spoken to "
        "backends (`appProtocol`). The listener is not served; requests to the backend get 500, connections are refused.",
        fix=(
            "Use a protocol that the message names; for backends leave `appProtocol` out, or `kubernetes.io/h2c`, or `kubernetes.io/ws` (not for GRPCRoutes).",
            "Name backends of gRPC (`appProtocol: grpc`) in a GRPCRoute.",
        ),
        example=gateway("listeners: [{name: raw, port: 9000, protocol: acme.io/rtmp}]"),
    ),
    Page(
        word="KindRemoved",
        means="The CRD of a kind was deleted while objects of that kind were in force, for example by a prune or by helm. The API "
        "server deleted the objects with it. The controller keeps them in force as it last saw them, so that no route opens.",
        fix=(
            "Install the CRD and the objects again: each object that comes replaces the one that is kept.",
            "To drop the objects, list the kind in `provider.kubernetes.releaseKinds` of EdgeGateway. A restart of the controller "
            "while the CRD is missing drops them as well. Routes that a SecurityPolicy protected are then open.",
        ),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n"
        "spec: {controllerName: gateway.edge.io/gatewayclass-controller}\n",
        place="removed",
    ),
    Page(
        word="UnsupportedVersion",
        means="The CRDs of the Gateway API in the cluster are of a release that this one does not know. Objects are served as far as "
        "they are understood.",
        fix=("Install the CRDs of a release that the message names.",),
        example="apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n"
        "spec: {controllerName: gateway.edge.io/gatewayclass-controller}\n",
        place="release",
    ),
)
