# Who asks endpoints how they are, for all workers.

cdef class Prober(Timer):
    cdef:
        Engine engine
        dict watches        # (cluster's name, EndpointCheck) -> Watch
        uint64_t epoch      # of Tables, what `watches` was made of
        bint asks           # this worker is who does

    cdef int look(self) except -1
    cdef int learn(self) except -1
    cdef int stop(self) except -1


cdef class Watch:
    cdef:
        Engine engine
        Cluster cluster     # whose endpoints it is about
        Cluster asked       # whose they are where they are asked: the same, or with the port of the check
        EndpointCheck check
        HttpSettings settings
        uint32_t version    # of `cluster`, what `probes` was made of, plus one; 0: none
        object seen         # the cluster's spec at that time
        dict probes         # Endpoint.key -> Probe

    cdef int look(self) except -1
    cdef int stop(self) except -1


cdef class Probe(UpstreamUser):
    cdef:
        Watch watch
        Endpoint about      # whose state it writes
        Endpoint target     # who is asked
        HealthRecord record
        ProbeDial dial      # of a TCP check, under way
        ProbeSession session
        bint asking
        bint begun          # its request is out
        bint good           # as far as is known
        bint fatal          # its answer is enough by itself
        bint over           # nobody wants to know any more
        size_t taken        # of the answer's body
        uint32_t fails, goods   # in a row
        Out head
        Out none            # it has no trailers
        bytes answer        # its body, as far as that matters
        int grpc_status
        int64_t next_at     # ms

    cdef int start(self) except -1
    cdef int conclude(self, bint good, bint fatal) except -1
    cdef int note(self, bint good, bint fatal) except -1
    cdef int put(self, Wellness state) except -1
    cdef int let_go(self) except -1
    cdef int stop(self) except -1
    cdef int wait(self) except -1
    cdef int open(self, Watch watch, Endpoint about, Endpoint target) except -1
    cdef int write_head(self, size_t n) except -1
    cdef bint is_well(self) except -1


cdef class ProbeSession(Session):
    cdef:
        Probe probe
        bytes came

    cdef int finish(self, bint good) except -1
    cdef int leave(self) except -1


cdef class ProbeDial(Dial):
    cdef:
        Probe probe
        Cluster cluster

    cdef int ask(self, Probe probe) except -1
    cdef int call_off(self) except -1
