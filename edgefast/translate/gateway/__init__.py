"""Gateways: GatewayClasses, Gateways and ListenerSets with their listeners, each for itself.

In: the world. Out: drafts; start with `gateway.py`, then `listener.py`. `fleet/merge.py` resolves
conflicts between them; `status` makes their statuses when routes are known.
Must never: let one Gateway's mistake disturb another.
"""
