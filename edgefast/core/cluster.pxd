# A cluster, its endpoints, their health and their idle connections.

cdef class Endpoint(Timer):
    cdef:
        Cluster cluster
        int index           # in cluster.endpoints; -1: removed from the cluster
        object key          # (address, port): what makes an endpoint the same after an update
        str host
        int port            # 0: unix socket at `host`
        bytes text          # "127.0.0.1:8080"
        bytes log           # the same as a JSON string
        list idle           # Upstream, most recently used last
        uint32_t failures   # consecutive
        uint32_t ejections
        int64_t ejected_at      # ms, the last time

    cdef int succeeded(self) except -1
    cdef int failed(self) except -1


cdef class Cluster:
    cdef:
        Engine engine
        readonly str name
        object spec         # ir.Cluster
        dict resolved       # hostname -> tuple of addresses; () while unknown
        list endpoints
        ef_endpoint_load *load
        uint32_t size
        uint32_t ejected
        object ssl          # SSLContext or None
        str sni
        uint32_t connections
        object pending      # deque of UpstreamUser that wait for a connection
        uint32_t max_connections, max_pending   # of the spec
        BodyShare bodies    # None while no body is on its way
        bytes log           # name as a JSON string
        object __weakref__

    cdef int update(self, object spec) except -1
    cdef int rebuild(self) except -1
    cdef Endpoint pick(self, uint64_t tried)
    cdef int acquire(self, UpstreamUser user, uint64_t tried) except -1
    cdef int dial(self, UpstreamUser user, Endpoint endpoint) except -1
    cdef Upstream checkout(self, Endpoint endpoint)
    cdef Upstream any_idle(self)
    cdef int release(self, Upstream up) except -1
    cdef int lost(self, Upstream up) except -1
    cdef void done(self, Endpoint endpoint) noexcept
    cdef BodyShare share(self)
    cdef int serve_pending(self) except -1
    cdef int forget_gone(self) except -1
    cdef bint resolving(self)
