"""Adopted: settings of a policy of another project that objects of ours carry until the translation places them.

In: written by the decoder with `--adopt` (api/migration/adoption) and never by a document.
Out: Structs for edgefast/translate/adoption, which places them on routes and Gateways.
Must never: be set on an object that was written for edgefast.
"""

from __future__ import annotations

import msgspec

from edgefast.api.model.policy_target import PolicyTarget

__all__ = ["AdoptedClient", "AdoptedPolicy", "AdoptedSettings"]


class AdoptedSettings(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Fields of routes that a policy of another project sets; each is plain data that the decoder has checked."""

    cors: object = None  # HTTPCORSFilter
    global_limits: object = None  # RateLimitFilterSpec
    local_limits: object = None  # RateLimitFilterSpec
    retry: object = None  # HTTPRouteRetry
    backend_request: str = ""  # timeouts.backendRequest of a rule


class AdoptedPolicy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A SecurityPolicy or BackendTrafficPolicy of another project."""

    #: Targets by label, of the policy's namespace.
    selectors: tuple[PolicyTarget, ...] = ()
    settings: AdoptedSettings = AdoptedSettings()
    #: Fields of the policies above it remain inside a field that both set.
    merges: bool = False


class AdoptedClient(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A ClientTrafficPolicy, whose other settings are the spec of the EdgeProxy that carries this."""

    name: str
    targets: tuple[PolicyTarget, ...] = ()
    #: FrontendTLSValidation of the targets; None: no client certificates.
    validation: object = None
    #: Options of listeners' tls.
    options: dict[str, str] = {}
    #: Fields that decide access, for targets that cannot have them.
    decides: tuple[str, ...] = ()
