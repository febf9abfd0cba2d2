{{/* Made from controller/manifests/rbac.py by `python -m controller.manifests.generate --write`; do not edit. */}}

{{- define "edge.rules.cluster" -}}
# GatewayClasses have no namespace; get reads one again after a status conflict.
- apiGroups: ["gateway.networking.k8s.io"]
  resources: ["gatewayclasses"]
  verbs: ["get", "list", "watch"]
# Their conditions.
- apiGroups: ["gateway.networking.k8s.io"]
  resources: ["gatewayclasses/status"]
  verbs: ["patch"]
# Labels: allowedRoutes.namespaces.selector, and watch.type NamespaceSelector.
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["list", "watch"]
# Addresses of fleets with a Service of type NodePort; watched only if one exists.
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["list", "watch"]
# Find the installed version of the Gateway API, and whether an object or its CRD was deleted.
- apiGroups: ["apiextensions.k8s.io"]
  resources: ["customresourcedefinitions"]
  resourceNames: ["backends.gateway.edge.io", "backendtlspolicies.gateway.networking.k8s.io", "backendtrafficpolicies.gateway.edge.io", "edgeproxies.gateway.edge.io", "gatewayclasses.gateway.networking.k8s.io", "gateways.gateway.networking.k8s.io", "grpcroutes.gateway.networking.k8s.io", "httproutefilters.gateway.edge.io", "httproutes.gateway.networking.k8s.io", "listenersets.gateway.networking.k8s.io", "ratelimitfilters.gateway.edge.io", "referencegrants.gateway.networking.k8s.io", "securitypolicies.gateway.edge.io", "tcproutes.gateway.networking.k8s.io", "tlsroutes.gateway.networking.k8s.io", "udproutes.gateway.networking.k8s.io", "xbackends.gateway.networking.x-k8s.io", "xbackendtrafficpolicies.gateway.networking.x-k8s.io"]
  verbs: ["get"]
# CA certificates of the cluster. Only metadata is listed and watched; get is called only for referenced ones.
- apiGroups: ["certificates.k8s.io"]
  resources: ["clustertrustbundles"]
  verbs: ["get", "list", "watch"]
# Events in the namespace of their object; Events of GatewayClasses are in namespace default.
- apiGroups: ["events.k8s.io"]
  resources: ["events"]
  verbs: ["create"]
{{- end -}}

{{- define "edge.rules.watch" -}}
# Objects that are translated; get reads one again after a status conflict.
- apiGroups: ["gateway.networking.k8s.io"]
  resources: ["gateways", "httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes", "listenersets", "backendtlspolicies"]
  verbs: ["get", "list", "watch"]
# References between namespaces.
- apiGroups: ["gateway.networking.k8s.io"]
  resources: ["referencegrants"]
  verbs: ["list", "watch"]
# Conditions, addresses and attached routes; nothing else of users' objects is written.
- apiGroups: ["gateway.networking.k8s.io"]
  resources: ["gateways/status", "httproutes/status", "grpcroutes/status", "tlsroutes/status", "tcproutes/status", "udproutes/status", "listenersets/status", "backendtlspolicies/status"]
  verbs: ["patch"]
# Kinds of edgefast.
- apiGroups: ["gateway.edge.io"]
  resources: ["edgeproxies", "ratelimitfilters", "backends", "httproutefilters"]
  verbs: ["list", "watch"]
# Policies of edgefast; get reads one again after a status conflict.
- apiGroups: ["gateway.edge.io"]
  resources: ["securitypolicies", "backendtrafficpolicies"]
  verbs: ["get", "list", "watch"]
# Their conditions.
- apiGroups: ["gateway.edge.io"]
  resources: ["securitypolicies/status", "backendtrafficpolicies/status"]
  verbs: ["patch"]
# Retry budgets, if the experimental CRD is installed; get as above.
- apiGroups: ["gateway.networking.x-k8s.io"]
  resources: ["xbackendtrafficpolicies"]
  verbs: ["get", "list", "watch"]
# Their conditions.
- apiGroups: ["gateway.networking.x-k8s.io"]
  resources: ["xbackendtrafficpolicies/status"]
  verbs: ["patch"]
# Backends, and the addresses of fleets.
- apiGroups: [""]
  resources: ["services"]
  verbs: ["list", "watch"]
# Endpoints of backends, and which proxies of a fleet are ready.
- apiGroups: ["discovery.k8s.io"]
  resources: ["endpointslices"]
  verbs: ["list", "watch"]
# Certificates and authorities. Only metadata is listed and watched; get is called only for referenced ones.
- apiGroups: [""]
  resources: ["secrets", "configmaps"]
  verbs: ["get", "list", "watch"]
{{- end -}}

{{- define "edge.rules.xbackends" -}}
# Backends of the experimental channel; get reads one again after a status conflict.
- apiGroups: ["gateway.networking.x-k8s.io"]
  resources: ["xbackends"]
  verbs: ["get", "list", "watch"]
# Their conditions.
- apiGroups: ["gateway.networking.x-k8s.io"]
  resources: ["xbackends/status"]
  verbs: ["patch"]
# Endpoints of XBackends of type EndpointSelector; only Pods with the selected labels are listed and watched.
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list", "watch"]
{{- end -}}

{{- define "edge.rules.ingresses" -}}
# Ingresses that are translated; get reads one again after a status conflict.
- apiGroups: ["networking.k8s.io"]
  resources: ["ingresses"]
  verbs: ["get", "list", "watch"]
# The addresses of the Service that serves them.
- apiGroups: ["networking.k8s.io"]
  resources: ["ingresses/status"]
  verbs: ["patch"]
{{- end -}}

{{- define "edge.rules.ingressclasses" -}}
# Which Ingresses the controller serves; IngressClasses have no namespace.
- apiGroups: ["networking.k8s.io"]
  resources: ["ingressclasses"]
  verbs: ["list", "watch"]
{{- end -}}

{{- define "edge.rules.infra" -}}
# Fleets: identity, address, authority (spec section 5).
- apiGroups: [""]
  resources: ["serviceaccounts", "services", "configmaps"]
  verbs: ["create", "get", "delete", "deletecollection", "patch"]
# Fleets: proxies (spec section 5).
- apiGroups: ["apps"]
  resources: ["deployments", "daemonsets"]
  verbs: ["create", "get", "delete", "deletecollection", "patch"]
# Fleets: scaling and disruption (spec section 5).
- apiGroups: ["autoscaling", "policy"]
  resources: ["horizontalpodautoscalers", "poddisruptionbudgets"]
  verbs: ["create", "get", "delete", "deletecollection", "patch"]
# Finds objects that other clients changed, to repair them, and objects without a Gateway. Services, ConfigMaps and EndpointSlices of fleets are read with the objects that are watched.
- apiGroups: [""]
  resources: ["serviceaccounts"]
  verbs: ["list", "watch"]
# The same.
- apiGroups: ["apps"]
  resources: ["deployments", "daemonsets"]
  verbs: ["list", "watch"]
# The same.
- apiGroups: ["autoscaling", "policy"]
  resources: ["horizontalpodautoscalers", "poddisruptionbudgets"]
  verbs: ["list", "watch"]
{{- end -}}

{{- define "edge.rules.tokens" -}}
# Checks the token that a proxy shows (spec section 5).
- apiGroups: ["authentication.k8s.io"]
  resources: ["tokenreviews"]
  verbs: ["create"]
{{- end -}}

{{- define "edge.rules.own" -}}
# Leader election: one replica writes statuses and fleets.
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  resourceNames: ["{{ include "edge.base" . }}-leader"]
  verbs: ["get", "update"]
# The first leader creates the Lease; create cannot be limited by name.
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["create"]
# Renews the server certificate and the authority, rotates the keys of session tickets.
- apiGroups: [""]
  resources: ["secrets"]
  resourceNames: ["{{ include "edge.base" . }}", "{{ include "edge.base" . }}-ca", "{{ include "edge.base" . }}-tickets"]
  verbs: ["get", "update"]
# Creates a deleted server certificate again, and the keys of session tickets; create cannot be limited by name.
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create"]
{{- end -}}

{{- define "edge.rules.clients" -}}
# A client certificate for each fleet (mutual TLS): applied, repaired, removed with it.
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create", "get", "list", "watch", "delete", "patch"]
{{- end -}}

{{- define "edge.rules.certgen" -}}
# The first certificates.
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["create"]
# Keeps existing ones, or replaces them with certgen.overwrite.
- apiGroups: [""]
  resources: ["secrets"]
  resourceNames: ["{{ include "edge.base" . }}", "{{ include "edge.base" . }}-ca"]
  verbs: ["get", "update"]
{{- end -}}
