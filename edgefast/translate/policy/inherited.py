"""Inherited: the policies that listeners pass on to their routes.

In: the Gateways as routes see them, the attached policies. Out: the same Gateways, each listener
with the levels above its routes. The levels are Gateway, its listener; or Gateway, ListenerSet, its
listener.
Source: GEP-713 (hierarchy); a sectionName that no listener has attaches nowhere.
Must never: rebuild a view that no policy is above.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgefast.api.snapshot import Key
from edgefast.translate.deps.dependency_facts import GatewayView, ListenerView
from edgefast.translate.deps.intern import intern
from edgefast.translate.deps.policy_summary import Level, Target

__all__ = ["inherit_policies"]

Views = Mapping[Key, GatewayView | None]


def inherit_policies(views: Views, attached: Mapping[Target, Level]) -> Views:
    """Return the views with what their listeners pass on."""
    if not attached:
        return views
    return {
        key: _inherit(view, attached) if view is not None else None for key, view in views.items()
    }


def _inherit(view: GatewayView, attached: Mapping[Target, Level]) -> GatewayView:
    listeners = tuple(_add(one, view, attached) for one in view.listeners)
    if all(one is other for one, other in zip(listeners, view.listeners, strict=True)):
        return view
    return msgspec.structs.replace(view, listeners=listeners)


def _add(
    listener: ListenerView, view: GatewayView, attached: Mapping[Target, Level]
) -> ListenerView:
    places: list[Target] = [("Gateway", view.namespace, view.name, "")]
    if listener.set is None:
        places.append(("Gateway", view.namespace, view.name, listener.section))
    else:
        places.append(("ListenerSet", *listener.set, ""))
        places.append(("ListenerSet", *listener.set, listener.section))
    levels = tuple(level for one in places if (level := attached.get(one)))
    return msgspec.structs.replace(listener, policies=intern(levels)) if levels else listener
