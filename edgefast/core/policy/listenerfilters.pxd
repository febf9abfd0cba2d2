# Listener filters: the filters that a request meets before routing.

cdef class ListenerFilterChain(ListenerFilters):
    cdef:
        list policies           # LivePolicy of each, in their order

    cdef PolicyResult filter(self, Exchange ex, Routed *at, ef_request *request) except *


# A request that is shown to them.
cdef class ListenerAuthFlow(RuleAuthFlow):
    pass
