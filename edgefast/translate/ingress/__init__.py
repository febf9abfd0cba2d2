"""Ingress: Ingresses with the annotations of ingress-nginx -> objects of the Gateway API and of edgefast.

In: Ingresses, IngressClasses, the ConfigMap of ingress-nginx, Services, Secrets. Out: one Gateway, HTTPRoutes, HTTPRouteFilters,
SecurityPolicies, BackendTrafficPolicies and Backends in the snapshot that the pipeline translates. Each made object has an
Origin: problems, explain and check name the Ingress and its annotation.

The order of the modules: classes (which Ingresses), annotations and configmap (what they ask for), servers (hosts, owners of
paths), locations (matches and their order), backends and canary (where requests go), rules (what a location becomes), emit
(objects), assemble (all hosts, and only those that a change concerns), expand (the snapshot).
Source: ingress-nginx 1.15.1 (controller.go, location.go, template.go, nginx.tmpl, balancer.lua, lua_ingress.lua).
Must never: serve a location whose access rules it does not understand; such a location answers 503.
"""
