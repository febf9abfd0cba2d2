# Endpoint: one address of a cluster: its health, and its idle connections.
#
# In: the results of attempts. Out: an endpoint that fails repeatedly is ejected for a while, longer each time (outlier.pyx). Health belongs
# to the endpoint, for all routes and workers.

cdef class Endpoint:
    def __init__(self, Cluster cluster, str host, int port):
        self.cluster = cluster
        self.host = host
        self.port = port
        self.key = (host, port)
        self.idle = []
        self.shared = []
        self.checked = []
        self.speaks = SPEAKS_ALPN
        if port == 0:
            text = "unix:" + host
        elif ":" in host:
            text = f"[{host}]:{port}"
        else:
            text = f"{host}:{port}"
        self.text = text.encode()
        self.id = hash_same(self.text)
        self.record = cluster.health.hold(b"endpoint/%b/%b" % (cluster.name.encode(), self.text))
        self.log = json_encode(text)

    cdef bint is_regular(self) noexcept:
        """It takes what is new: it is neither removed nor one that drains."""
        return self.index >= 0 and <uint32_t>self.index < self.cluster.size

    cdef int stop_idle(self) except -1:
        """Its connections are not used again; those with requests end with the last one."""
        for up in list(self.idle):
            (<Outbound>up).stop(False)
        self.idle.clear()
        for session in list(self.shared):
            (<MultiplexedSession>session).stop(False)
        return 0

    cdef int succeeded(self) except -1:
        """A whole answer, or a connection that is passed on."""
        ef_health_succeed(self.record.at, EF_FAILURE_LOCAL)
        return 0

    cdef int answered(self, Outlier how, int status) except -1:
        """It has answered. how: what the rule's policies say; None: they say nothing."""
        return (how if how is not None else self.cluster.engine.outlier).answered(self, status)

    cdef int failed(self, Outlier how, bint reported_outlier) except -1:
        """A connect, or a connection without a whole answer; `reported_outlier`: of one that began with a failure, which counts already."""
        return (how if how is not None else self.cluster.engine.outlier).failed(self, reported_outlier)
