"""Reasons of single fields: the reasons of Kubernetes field errors, and those that a data plane adds.

In: nothing.
Out: `FIELDS`.
"""

from __future__ import annotations

from edgefast.diagnostics.reasons.objects import gateway, route
from edgefast.diagnostics.reasons.word import Page

__all__ = ["FIELDS"]

_KEPT = "In files, the last good version of the object stays in use. Without one the object is ignored, and requests to a route get 500. An API server refuses the object."
_LIMITS = """\
apiVersion: gateway.edge.io/v1alpha1
kind: RateLimitFilter
metadata: {name: limits}
spec:
  type: Global
"""

FIELDS = (
    Page(
        word="Duplicate",
        means="A value that must be unique occurs twice: an object of the same kind and name, an "
        "entry of a list, or a key. " + _KEPT,
        fix=("Remove one of the two. The message names the first one.",),
        example=route(
            "rules:\n"
            "- backendRefs: [{name: shop, port: 80}]\n"
            "  filters:\n"
            "  - {type: URLRewrite, urlRewrite: {hostname: a.example}}\n"
            "  - {type: URLRewrite, urlRewrite: {hostname: b.example}}\n"
        ),
    ),
    Page(
        word="Forbidden",
        means="A field is not allowed here: another field excludes it, or the kind of object "
        "does not support it. An error has the same effect as Invalid; with a warning the "
        "field is ignored.",
        fix=("Remove the field, or the one that excludes it; the message names both.",),
        example=route(
            "rules:\n"
            "- filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="Ignored",
        means="An object of a kind that gateways do not read (Deployment, a Secret for another "
        "use, ...). edgefast ignores it, because files can contain whole applications.",
        fix=("Nothing, unless you expected an effect of the object.",),
        example="apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {}\n",
    ),
    Page(
        word="Invalid",
        means="A value is not allowed in the field: it has another type, is out of range or "
        "breaks a rule. Or a file cannot be read. " + _KEPT,
        fix=(
            "Write a value that the message allows; the [reference](../reference/README.md) "
            "lists all fields.",
            "With a warning the value is used, possibly not as intended; the message gives the "
            "effect.",
        ),
        example=route(
            "rules:\n- matches: [{path: {value: shop}}]\n  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="NotFound",
        means="A referenced object does not exist: a RateLimitFilter, or a Secret or ConfigMap "
        "of the configuration. Rules that need it answer 500.",
        fix=(
            "Create the object, or correct the name. The object must be in the same namespace "
            "unless the field has a namespace.",
            "For files: the object must be in the files that are passed with `-f`.",
        ),
        example=route(
            "rules:\n"
            "- filters:\n"
            "  - {type: ExtensionRef, extensionRef: {group: gateway.edge.io, kind: RateLimitFilter, name: limits}}\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="NotSupported",
        means="A field has an unknown value, or a setting that edgefast does not support. " + _KEPT,
        fix=(
            "Choose one of the values that the message lists. It suggests one if a similar "
            "value exists.",
            "edgefast refuses unsupported settings completely and never applies a part: use "
            "another setting, or remove it.",
        ),
        example=route(
            "rules:\n"
            "- matches: [{path: {type: PathPrefx, value: /}}]\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="Required",
        means="A required field is missing or empty, or a file is empty. " + _KEPT,
        fix=("Write the field. The message gives the expected content.",),
        example=gateway("listeners: [{name: http, protocol: HTTP}]"),
    ),
    Page(
        word="TooLong",
        means="A text, a file or a table has more bytes than the limit. " + _KEPT,
        fix=(
            "Make it shorter; the message has the size and the limit.",
            "Split a file that is too long into several files.",
        ),
        example=_LIMITS + "  global:\n"
        "    rules:\n"
        "    - clientSelectors:\n"
        f"      - headers: [{{name: x-key, type: Exact, value: {'k' * 1100}}}]\n"
        "      limit: {requests: 5, unit: Second}\n"
        "---\n"
        + route(
            "rules:\n"
            "- filters:\n"
            "  - {type: ExtensionRef, extensionRef: {group: gateway.edge.io, kind: RateLimitFilter, name: limits}}\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="TooMany",
        means="A list has more entries than the field allows, or a folder has too many files. "
        "Also the last line for a file with very many problems, of which only the first "
        "are shown. " + _KEPT,
        fix=("Split it into several objects; the number of routes of a host is not limited.",),
        example=route(
            "rules:\n"
            "- backendRefs: [{name: shop, port: 80}]\n"
            f"  matches: [{', '.join(['{path: {value: /a}}'] * 65)}]\n"
        ),
    ),
    Page(
        word="UnsupportedValue",
        means="The API allows the value, but edgefast does not support it (the reason is of the "
        "Gateway API). A rule of a route with such a value answers 500, and a listener "
        "with it is not served; other rules and listeners are. An unknown field has the "
        "same effect, because it can decide access "
        "([which](../reference/configuration.md#fields-that-are-not-served)).",
        fix=(
            "Change the value, or remove the field; the message lists supported values.",
            "If the field is unknown to this release, the CRDs in the cluster are newer: "
            "install a release that supports it.",
            "In a condition, the message contains the underlying problems, which can have "
            "other reasons: see their pages.",
        ),
        example=gateway(
            "listeners:\n"
            "- name: https\n"
            "  port: 8443\n"
            "  protocol: HTTPS\n"
            "  tls:\n"
            "    certificateRefs: [{name: shop-tls}]\n"
            '    options: {gateway.edge.io/tls-min-version: "1.1"}\n'
        ),
    ),
)
