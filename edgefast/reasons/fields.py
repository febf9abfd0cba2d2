"""Reasons of single fields: the words of Kubernetes field errors, and what a data plane adds to them.

In: nothing. Out: `FIELDS`.
"""

from __future__ import annotations

from edgefast.reasons.objects import gateway, route
from edgefast.reasons.word import Page

__all__ = ["FIELDS"]

_KEPT = (
    "From files the last good version of the object stays in service; where there is none, the object is left out, "
    "and the place of a route answers 500. "
    "An API server does not take the object."
)
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
        means="Something stands twice that may stand once: an object of one kind and name, an entry of a list, a key. "
        + _KEPT,
        fix=("Remove one of both. The message names the first one.",),
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
        means="A field has no place where it stands: another field excludes it, or it is not for this kind of object. "
        "As an error it counts as Invalid does; as a warning the field is passed over.",
        fix=("Remove the field, or the one that excludes it; the message names both.",),
        example=route(
            "rules:\n"
            "- filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="Ignored",
        means="A kind of Kubernetes that no gateway reads (Deployment, Secret of another use, ...). It is passed over: files "
        "may hold whole applications.",
        fix=("Nothing, unless you expected something of it.",),
        example="apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {}\n",
    ),
    Page(
        word="Invalid",
        means="A value is not what the field takes: of another type, out of range, against a rule, or a file that cannot be "
        "read. " + _KEPT,
        fix=(
            "Write a value as the message expects it; [reference](../reference/README.md) has all fields.",
            "As a warning the value is served, perhaps not as meant: the message says how.",
        ),
        example=route(
            "rules:\n- matches: [{path: {value: shop}}]\n  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="NotFound",
        means="An object that is named is not there: a RateLimitFilter, or a Secret or ConfigMap of the configuration. Rules that "
        "need it answer 500.",
        fix=(
            "Write the object, or correct the name; both are of the same namespace unless the field has one.",
            "In files it must be in the files given with `-f`.",
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
        means="A field has a word that is none of those it takes, or asks for something that edgefast does not do. "
        + _KEPT,
        fix=(
            "Choose one of the words that the message lists; it says which one is meant if it can guess.",
            "What is not available at all is refused, never half done: look for another way, or remove it.",
        ),
        example=route(
            "rules:\n"
            "- matches: [{path: {type: PathPrefx, value: /}}]\n"
            "  backendRefs: [{name: shop, port: 80}]\n"
        ),
    ),
    Page(
        word="Required",
        means="A field is missing, or empty, that is needed; or a file has nothing in it. " + _KEPT,
        fix=("Write it. The message says what belongs there.",),
        example=gateway("listeners: [{name: http, protocol: HTTP}]"),
    ),
    Page(
        word="TooLong",
        means="A text, a file or a table has more bytes than there is room for. " + _KEPT,
        fix=(
            "Make it shorter; the message has both numbers.",
            "A file that is too long is cut into several.",
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
        means="A list has more entries than the field takes, or a folder more files. Also the last line of a file with very many "
        "problems, of which the others are not shown. " + _KEPT,
        fix=("Spread it over several objects; routes of one host may be as many as you like.",),
        example=route(
            "rules:\n"
            "- backendRefs: [{name: shop, port: 80}]\n"
            f"  matches: [{', '.join(['{path: {value: /a}}'] * 65)}]\n"
        ),
    ),
    Page(
        word="UnsupportedValue",
        means="A value is allowed by the API and not served: by the Gateway API's reason for that. A rule of a route with such a "
        "value answers 500, a listener is not served, and other rules and listeners are. A field that this release does not have "
        "does the same: it may decide who gets in ([which](../reference/configuration.md#fields-that-are-not-served)).",
        fix=(
            "Change the value, or remove the field; the message says what is supported.",
            "If the field is not known to this release: the CRDs in the cluster are newer; install a release that has it.",
            "As the reason of a condition the message has the problems behind it, which may have other words: see their pages.",
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
