"""XBackendTrafficPolicy: the retry budget of a Service.

In: `gateway.networking.x-k8s.io/v1alpha1` documents. Out: `XBackendTrafficPolicy`.
Source: Gateway API v1.7 `apisx` (experimental channel), GEP-3388. `model/unsupported_fields.py`
lists the fields that are not served.
Must never: fill in a field that is not set, except with the defaults of the CRD.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from edgefast.api.model.fail_closed import Closed
from edgefast.api.model.fields import Duration, Element, Group, Kind, ObjectName, Resource
from edgefast.api.model.meta import ObjectMeta
from edgefast.api.model.policy_target import Newer, PolicyTarget


class BackendTarget(Element, frozen=True, kw_only=True):
    """What the policy is attached to, whole: it has no ports."""

    group: Group
    kind: Kind
    name: ObjectName
    section_name: ClassVar[None] = None


class BudgetDetails(Element, frozen=True, kw_only=True):
    """Repeats as a part of all requests of an interval."""

    percent: Annotated[int, Meta(ge=0, le=100)] = 20
    interval: Duration = "10s"


class RequestRate(Element, frozen=True, kw_only=True):
    """So many in an interval."""

    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 10
    interval: Duration = "1s"


class RetryConstraint(Element, frozen=True, kw_only=True):
    """When a request may be repeated."""

    budget: BudgetDetails = BudgetDetails()
    min_retry_rate: RequestRate = RequestRate()


class XBackendTrafficPolicySpec(Element, frozen=True, kw_only=True):
    """`spec` of an XBackendTrafficPolicy."""

    target_refs: Annotated[tuple[BackendTarget, ...], Meta(min_length=1, max_length=16)]
    retry_constraint: RetryConstraint | None = None
    merge_type: ClassVar[str] = "Inherit"


class XBackendTrafficPolicy(Resource, frozen=True, kw_only=True):
    """A namespaced policy attached to Services and Backends."""

    metadata: ObjectMeta
    spec: XBackendTrafficPolicySpec
    #: As those of our own policies (edge/backendtrafficpolicy.py): none of them is a document's.
    closed: Closed | None = None
    aimed: tuple[PolicyTarget, ...] = ()
    newer: Newer | None = None
