"""The proxies of the bench, one file each; `registry.PEERS` names them in table order.

In: nothing. Out: classes. Must never hold logic.
"""

__all__ = ["edgefast", "envoy", "floor", "haproxy", "nghttpx", "nginx", "peer", "registry"]
