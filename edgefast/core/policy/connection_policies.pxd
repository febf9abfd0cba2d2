# Connection policies: the policy units of a layer 4 route, and their checks of a connection or UDP session.

cdef class ConnectionPolicyChain(ConnectionPolicies):
    cdef:
        list policies           # of LivePolicy, in the order in which they are asked

    cdef bytes refuses(self, const NetAddress *client, bytes sni, Wire wire, bint counts)
