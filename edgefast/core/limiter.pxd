# Counters asked for, together, once per turn of the loop.

# One counter in one batch.
cdef class Check:
    cdef:
        readonly bytes key
        readonly uint32_t n, limit, unit
        readonly bint sliding
        int64_t batch
        int64_t due             # ms; the first of its requests has waited long enough
        bint done
        uint32_t admitted, remaining
        int64_t reset_ms
        uint64_t window
        list waiters            # Exchange (None: counted only), Limit, Exchange, Limit, ... in the order of arrival


# A counter that is at its end until a moment: no need to ask.
cdef class Spent:
    cdef:
        uint32_t limit
        int64_t until           # ms of Wheel.now
        uint64_t window


cdef class Limiter:
    cdef:
        Engine engine
        object segment          # keeps the mapping of the memory store
        ef_limit *memory
        object store            # RedisStore; None: the memory store
        int64_t timeout         # ms
        bint fail_closed
        dict turn               # key -> Check of this turn
        list queue              # the same, in order
        list in_flight          # the batch under way
        bint scheduled
        int64_t batch           # number of the batch under way, or of the last one
        int64_t graced          # number of the batch that was given a last look
        int flying              # those of its checks without an answer
        int64_t sent            # us
        int64_t sent_ms
        int64_t deadline        # ms
        object timer
        dict spent              # key -> Spent

    cdef Verdict ask(self, Exchange ex, const ef_request *request)
    cdef int enqueue(self, Exchange ex, Limit limit, bytes key) except -1
    cdef bint take_now(self, Verdict verdict, Limit limit, bytes key) except -1
    cdef int send(self) except -1
    cdef int give_up(self) except -1
    cdef int landed_all(self, int64_t took) except -1
    cdef int answer(self, Check check, int64_t took) except -1
    cdef int one_less(self, Exchange ex) except -1
    cdef int refuse_all(self, list checks) except -1
    cdef int on_error(self, Verdict verdict, Limit limit) except -1
    cdef int note_spent(self, Check check) except -1
