# One address of a cluster: how it fares, and the connections to it that are idle.
#
# In: whether tries went well. Out: an endpoint that fails again and again is left out for a while, longer each time; at most half of a
# set is. Health belongs to the endpoint, whichever route found out.

cdef class Endpoint(Timer):
    def __init__(self, Cluster cluster, str host, int port):
        self.cluster = cluster
        self.host = host
        self.port = port
        self.key = (host, port)
        self.idle = []
        self.shared = []
        self.speaks = SPEAKS_ALPN
        if port == 0:
            text = "unix:" + host
        elif ":" in host:
            text = f"[{host}]:{port}"
        else:
            text = f"{host}:{port}"
        self.text = text.encode()
        self.id = hash_same(self.text)
        self.log = json_encode(text)

    cdef int stop_idle(self) except -1:
        """Its connections are not used again; those with requests end with the last one."""
        for up in list(self.idle):
            (<Outbound>up).stop(False)
        self.idle.clear()
        for session in list(self.shared):
            (<H2Client>session).stop(False)
        return 0

    cdef int succeeded(self) except -1:
        self.failures = 0
        return 0

    cdef int failed(self) except -1:
        cdef int64_t span
        self.failures += 1
        if self.failures < EJECT_AFTER or self.index < 0 or self.cluster.load[self.index].ejected:
            return 0
        if (self.cluster.ejected + 1) * 2 > self.cluster.size:  # at most half of a set
            return 0
        if self.cluster.engine.wheel.now - self.ejected_at > 2 * EJECT_MAX_MS:
            self.ejections = 0  # old sins are forgiven
        self.ejected_at = self.cluster.engine.wheel.now
        self.failures = 0
        self.ejections += 1
        self.cluster.load[self.index].ejected = 1
        self.cluster.ejected += 1
        span = EJECT_MS * <int64_t>self.ejections
        if span > EJECT_MAX_MS:
            span = EJECT_MAX_MS
        self.cluster.engine.count(G_ENDPOINT_EJECTIONS)
        self.cluster.engine.wheel.arm(self, self.cluster.engine.wheel.now + span)
        return 0

    cdef int on_deadline(self, int64_t now) except -1:
        if self.index >= 0 and self.cluster.load[self.index].ejected:
            self.cluster.load[self.index].ejected = 0
            self.cluster.ejected -= 1
        return 0
