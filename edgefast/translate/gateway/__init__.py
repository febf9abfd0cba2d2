"""GatewayClasses, Gateways and ListenerSets with their listeners, each for itself.

In: the world. Out: drafts; begin with `gateway.py`, then `listener.py`. `fleet/merge.py` says what they agree on, `status` makes
statuses of them when routes are known. Must never: let one Gateway's mistake disturb another.
"""
