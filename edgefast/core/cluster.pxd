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
    cdef int serve_pending(self) except -1
    cdef int forget_gone(self) except -1
    cdef bint resolving(self)


# What can go wrong before a connection is ready (UpstreamUser.on_up_failed).
cdef enum UpFailure:
    UP_NO_ENDPOINT = 1
    UP_OVERFLOW = 2
    UP_CONNECT = 3
    UP_CONNECT_TIMEOUT = 4
    UP_TLS = 5


# Who uses an upstream connection: an exchange or a mirrored request.
cdef class UpstreamUser(Timer):
    cdef:
        Engine engine
        HttpSettings settings
        Upstream up
        Endpoint endpoint   # chosen last; while its try is in progress its load counts us
        bint chosen         # for this try; False: `endpoint` is an earlier one's, if there is any
        uint32_t ticket     # number of the try: a late connection finds out that nobody waits
        bint waiting

    cdef int on_up_ready(self, Upstream up) except -1
    cdef int on_up_failed(self, UpFailure why) except -1
    cdef int on_response_info(self, const uint8_t *base, ef_head *head) except -1
    cdef int on_response_head(self, const uint8_t *base, ef_head *head) except -1
    cdef int on_response_body(self, const uint8_t *data, size_t n) except -1
    cdef int on_response_end(self) except -1
    cdef int on_response_flush(self) except -1
    cdef int on_up_lost(self, int why) except -1
    cdef int on_up_writable(self, bint writable) except -1
    cdef bint takes_bulk(self) noexcept
