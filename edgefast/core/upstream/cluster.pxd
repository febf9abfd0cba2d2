# Cluster: a cluster and its endpoints.

cdef class Cluster(Pool):
    cdef:
        readonly str name
        object spec         # ir.Cluster
        dict resolved       # hostname -> tuple of addresses; () while unknown
        dict refused        # hostname -> refused addresses, with the reason
        uint32_t version    # another one when its endpoints are others
        list draining       # endpoints that go: they get requests of their sessions alone
        Identities identities   # None: no session has asked since there was another set
        ef_health_record **records  # of each endpoint
        Health health       # where its records are
        list checks         # EndpointCheck, of the table's rules (prober.pyx); the n-th one's bit is HEED_CHECK << n
        ZoneRule zone_rule  # as its Service says; None: nothing
        uint32_t seen       # version of its own record when it was looked at who is out
        uint64_t *ids       # of each endpoint
        int64_t *turns      # places of each (BY_TURN); NULL: nobody has asked since there was another set
        object tls      # None: plain
        object tls_h1   # what offers HTTP/1.1 alone; `tls`, where that does
        object tls_stream   # what offers nothing, of connections that are passed on; None: not asked for yet
        str sni
        bytes log           # name as a JSON string
        int64_t active      # requests that are for it
        size_t gathered     # bytes of its bodies that are gathered whole (exchange/body_buffer.pyx)
        int64_t mirror_reported     # ms; when a dropped copy was logged last; 0: never
        uint64_t mirror_unreported  # copies dropped since
        dict sweeps         # Outlier -> Sweep, of those whose answers are counted; None: none are
        object __weakref__

    cdef int update(self, object spec) except -1
    cdef object stream_tls(self)
    cdef int rebuild(self) except -1
    cdef int apply_checks(self, list checks) except -1
    cdef uint8_t out_by_checks(self, Endpoint endpoint) except? 255
    cdef uint8_t bit_of(self, EndpointCheck check) noexcept
    cdef object usable(self, hostname)
    cdef int64_t *places(self) except NULL
