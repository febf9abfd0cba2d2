# Connection policies: authorization of a layer 4 connection or UDP session, before a backend is selected.
#
# In: the client's address, the server name and client certificate of its TLS. Out: the unit and rule that refuse it, as members of its log
# line; None: it is admitted. Every authorization must admit it. A unit that is missing, has an error or needs a request refuses everything.
# Must never admit a connection that a unit cannot decide about.

cdef class ConnectionPolicyChain(ConnectionPolicies):
    def __init__(self, Engine engine, names):
        self.policies = [engine.tables.policy(name) for name in names]

    cdef bytes refuses(self, const NetAddress *client, bytes sni, Wire wire, bint counts):
        cdef const uint8_t *address = client.host if client.kind == ADDRESS_INET else NULL
        cdef ClientCertificate certificate = None
        cdef bint read = False
        cdef LivePolicy policy
        for policy in self.policies:
            if policy.status or policy.access is None or policy.access.asks_request:
                if counts:
                    ef_stat_add(&policy.row.cells[P_ERROR], 1)
                return b'"policy":%b' % policy.log
            if policy.access.asks_certificate and wire is not None and not read:
                certificate = wire.client_certificate()
                read = True
            if not policy.access.admits_connection(address, sni, certificate):
                if counts:
                    ef_stat_add(&policy.row.cells[P_DENIED], 1)
                if policy.access.decided is None:
                    return b'"policy":%b' % policy.log
                return b'"policy":%b,"policy_rule":%b' % (policy.log, policy.access.decided.log)
            if counts:
                ef_stat_add(&policy.row.cells[P_ALLOWED], 1)
        return None
