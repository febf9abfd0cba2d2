"""JWT: rules about jwt of a SecurityPolicy, each with its CEL twin for the CRD.

In: parts of `jwt`. Out: violations; `cel` is the same rule for an API server.
Must never: differ from its CEL, or look into a key set.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgefast.api.edge.jwt import (
    JWT,
    JWTExtractor,
    JWTProvider,
    LocalJWKS,
    RemoteJWKS,
)
from edgefast.api.model.units import parse_duration
from edgefast.api.validation.rule import RuleBook, Violation

BOOK = RuleBook()

#: Milliseconds between two looks at keys.
LEAST_CACHE, MOST_CACHE = 10_000, 86_400_000


@BOOK.on(
    JWT,
    "optional",
    "fail_open",
    cel="!self.optional || !self.failOpen",
    message="only one of optional and failOpen can be set",
)
def check_leniency(one: JWT) -> Iterable[Violation]:
    """Who lets bad tokens pass lets none pass, too."""
    if one.optional and one.fail_open:
        return (Violation(("failOpen",), "Forbidden", "together with optional"),)
    return ()


@BOOK.on(
    JWT,
    "providers",
    cel="self.providers.all(one, self.providers.exists_one(other, other.name == one.name))",
    message="providers must have different names",
)
def check_names(one: JWT) -> Iterable[Violation]:
    """Rules name them."""
    seen: set[str] = set()
    for index, provider in enumerate(one.providers):
        if provider.name in seen:
            yield Violation(("providers", index, "name"), "Duplicate", f'"{provider.name}"')
        seen.add(provider.name)


@BOOK.on(
    JWTProvider,
    "local_jwks",
    "remote_jwks",
    cel="has(self.localJWKS) != has(self.remoteJWKS)",
    message="exactly one of localJWKS and remoteJWKS must be set",
)
def check_keys(one: JWTProvider) -> Iterable[Violation]:
    """Its keys are in one place."""
    if one.local_jwks is None and one.remote_jwks is None:
        return (Violation(("localJWKS",), "Required", "this or remoteJWKS"),)
    if one.local_jwks is not None and one.remote_jwks is not None:
        return (Violation(("localJWKS",), "Forbidden", "together with remoteJWKS"),)
    return ()


@BOOK.on(
    LocalJWKS,
    "type",
    "inline",
    "value_ref",
    cel="self.type == 'Inline' ? has(self.inline) && !has(self.valueRef) : has(self.valueRef) && !has(self.inline)",
    message="exactly the one of inline and valueRef that matches type must be set",
)
def check_local(one: LocalJWKS) -> Iterable[Violation]:
    """The keys are there, once."""
    inline = one.type == "Inline"
    if inline and one.inline is None:
        return (Violation(("inline",), "Required", "field is missing"),)
    if not inline and one.value_ref is None:
        return (Violation(("valueRef",), "Required", "field is missing"),)
    if inline and one.value_ref is not None:
        return (Violation(("valueRef",), "Forbidden", "with type Inline"),)
    if not inline and one.inline is not None:
        return (Violation(("inline",), "Forbidden", "with type ValueRef"),)
    return ()


@BOOK.on(
    RemoteJWKS,
    "backend_ref",
    "backend_refs",
    cel="!has(self.backendRef) || !has(self.backendRefs) || size(self.backendRefs) == 0",
    message="only one of backendRef and backendRefs can be set",
)
def check_asked(one: RemoteJWKS) -> Iterable[Violation]:
    """Who is asked is named in one place."""
    if one.backend_ref is not None and one.backend_refs:
        return (Violation(("backendRef",), "Forbidden", "together with backendRefs"),)
    return ()


@BOOK.on(
    RemoteJWKS,
    "uri",
    "backend_ref",
    "backend_refs",
    cel="self.uri.startsWith('https://') || has(self.backendRef) || (has(self.backendRefs) && size(self.backendRefs) > 0)",
    message="uri must use https, unless a backend is set",
)
def check_scheme(one: RemoteJWKS) -> Iterable[Violation]:
    """Whoever is on the way could give other keys."""
    named = one.backend_ref is not None or one.backend_refs
    if not named and not one.uri.startswith("https://"):
        return (Violation(("uri",), "Invalid", "expected https://, unless a backend is set"),)
    return ()


@BOOK.on(
    RemoteJWKS,
    "cache_duration",
    cel="duration(self.cacheDuration) >= duration('10s') && duration(self.cacheDuration) <= duration('24h')",
    message="cacheDuration must be 10s to 24h",
)
def check_cache(one: RemoteJWKS) -> Iterable[Violation]:
    """Issuers are not pressed, and keys that they take back are not believed for days."""
    if LEAST_CACHE <= parse_duration(one.cache_duration) <= MOST_CACHE:
        return ()
    return (
        Violation(("cacheDuration",), "Invalid", f'"{one.cache_duration}" (expected 10s to 24h)'),
    )


@BOOK.on(
    JWTExtractor,
    "headers",
    "cookies",
    "params",
    cel="(has(self.headers) && size(self.headers) > 0) || "
    "(has(self.cookies) && size(self.cookies) > 0) || (has(self.params) && size(self.params) > 0)",
    message="one of headers, cookies and params must be set",
)
def check_places(one: JWTExtractor) -> Iterable[Violation]:
    """A place that is none holds no token."""
    if not (one.headers or one.cookies or one.params):
        return (Violation((), "Required", "headers, cookies or params"),)
    return ()
