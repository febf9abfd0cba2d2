# Prober: checks endpoints for all workers.

cdef class Prober(CheckHooks):
    cdef:
        Engine engine
        Health health       # of clusters that are only asked: this worker's own
        dict heeding        # cluster's name -> Cluster, of those with checks
        dict watches        # cluster's name -> {EndpointCheck: Watch}
        dict wanted         # cluster's name -> [EndpointCheck], of the table
        object changed      # deque of names for which `wanted` is another one
        object queue        # deque of Probes that wait until fewer are being asked
        uint32_t busy       # endpoints that are being asked
        uint32_t probes     # endpoints that are asked again and again
        uint64_t epoch      # of Tables, what `wanted` was made of
        int64_t reported_until  # ms; changes that are told until then are counted
        uint32_t reported, unreported

    cdef int64_t look(self) except -1
    cdef void count(self, int probes) noexcept
    cdef int learn(self) except -1
    cdef list checks_of(self, tuple treatments)
    cdef int settle(self, str name) except -1
    cdef int enter(self, Probe probe) except -1
    cdef int leave(self) except -1
    cdef int call(self, uint32_t most) except -1
    cdef int report(self, str line) except -1
    cdef int stop(self) except -1


cdef class Watch:
    cdef:
        Engine engine
        Cluster cluster     # whose endpoints it is about
        Cluster asked       # the same endpoints, at the check's port, where they are asked: with connections of their own
        EndpointCheck check
        HttpSettings settings
        HttpSettings brief  # ... of connections that are not kept
        uint32_t version    # of `cluster`, what `probes` was made of, plus one; 0: none
        object seen         # the cluster's spec at that time
        dict probes         # Endpoint.key -> Probe
        Watch heir_of       # the one whose place it takes: what that has found out goes on; None: none, or that is done

    cdef uint32_t look(self) except? 4294967295
    cdef int take_over(self, Probe probe) except -1
    cdef int stop(self) except -1


cdef class Probe(UpstreamUser):
    cdef:
        Watch watch
        Endpoint about      # whose state it writes
        Endpoint target     # who is asked
        HealthRecord record
        ProbeDial dial      # of a TCP check, under way
        ProbeSession session
        bint queued         # it is its turn when others have been asked
        bint asking
        bint again          # it has been asked once more, since what came of it said nothing of the endpoint
        bint good           # as far as is known
        bint fatal          # its answer is enough by itself
        bint over           # nobody wants to know any more
        size_t taken        # of the answer's body
        uint32_t fails, goods   # in a row
        Out head
        Out none            # it has no trailers
        bytearray answer    # its body, as far as that matters
        unsigned status     # of its answer; 0: there is none
        int grpc_status
        str why             # it is not well, for the log; None: by its answer
        int64_t next_at     # ms

    cdef int start(self) except -1
    cdef int ask(self) except -1
    cdef int ask_again(self) except -1
    cdef int conclude(self, bint good, bint fatal) except -1
    cdef int note(self, bint good, bint fatal) except -1
    cdef int put(self, Wellness state) except -1
    cdef int detach(self) except -1
    cdef int stop(self) except -1
    cdef int rest(self) except -1
    cdef int open(self, Watch watch, Endpoint about, Endpoint target) except -1
    cdef int write_head(self, size_t n) except -1
    cdef bint is_well(self) except -1
    cdef str report_answer(self)
    cdef int fail(self, str why, bint fatal=*) except -1


cdef class ProbeSession(Session):
    cdef:
        Probe probe
        bytearray came

    cdef int finish(self, bint good) except -1
    cdef int leave(self) except -1


cdef class ProbeDial(Dial):
    cdef:
        Probe probe
        Cluster cluster
        TlsClientWire speaks      # through TLS; None: plain

    cdef int ask(self, Probe probe) except -1
    cdef int call_off(self) except -1


cdef inline Prober prober_of(Engine engine):
    return <Prober>engine.prober
