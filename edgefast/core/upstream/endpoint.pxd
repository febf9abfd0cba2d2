# Endpoint: one address of a cluster, its health, and its idle connections.

cdef class Endpoint:
    cdef:
        Cluster cluster
        int index           # in cluster.endpoints, or behind them in cluster.draining; -1: removed from the cluster
        object key          # (address, port): what makes an endpoint the same after an update
        str host
        int port            # 0: unix socket at `host`
        str zone            # "": nobody says
        bytes text          # "127.0.0.1:8080"
        uint64_t id         # of `text`: what keys are hashed with
        uint64_t identity   # what sessions call it (identities.pyx); 0: no session has asked yet
        bytes log           # the same as a JSON string
        list idle           # Outbound, most recently used last
        list shared         # MultiplexedSession, the oldest first
        PoolDial coming     # a connection that is being made for whoever waits for it; None: none
        UpstreamProtocol speaks     # of one where that is found out: what it agreed on last
        int64_t since       # ms: it is one of its cluster's; 0: from the beginning
        list checked        # HealthRecord, for each of its cluster's checks: how it is by that
        HealthRecord record # failures in a row, ejections: of all workers

    cdef bint is_regular(self) noexcept
    cdef int succeeded(self) except -1
    cdef int answered(self, Outlier how, int status) except -1
    cdef int failed(self, Outlier how, bint reported_outlier) except -1
    cdef int stop_idle(self) except -1
