# Counters asked for, together, once per turn of the loop.

cdef class Limiter:
    cdef:
        Engine engine
        object segment          # keeps the mapping of the memory store
        ef_rooms *memory
        public object on_crowded  # called with (route, limit, ms to the window's end) when new values find no room, once a window
        object store            # RedisStore; None: the memory store
        int64_t timeout         # ms
        bint fail_closed
        dict turn               # key -> Check of this turn
        list queue              # the same, in order
        list in_flight          # what is under way, in order; some at the front may have their answer
        Py_ssize_t oldest       # before this place all have it
        bint scheduled
        int flying              # requests whose answers are under way
        object timer            # of the oldest check under way
        object pacer            # of the first in the queue: no answers come meanwhile
        double pace             # seconds that it may wait
        SpentCache spent

    cdef int64_t now(self) noexcept
    cdef Verdict ask(self, Exchange ex, const ef_request *request)
    cdef int enqueue(self, Exchange ex, Limit limit, bytes key) except -1
    cdef bint take_now(self, Verdict verdict, Limit limit, bytes key) except -1
    cdef int send(self) except -1
    cdef int give_up(self) except -1
    cdef int expire(self, int64_t now) except -1
    cdef Check find_oldest(self)
    cdef int land(self, Check check, int64_t now) except -1
    cdef int go_on(self) except -1
    cdef int answer(self, Check check, int64_t took) except -1
    cdef int answer_one(self, Check check, uint32_t place, Exchange ex, Limit limit, int64_t took) except -1
    cdef int one_less(self, Exchange ex) except -1
    cdef int refuse_all(self, list checks) except -1
    cdef int refuse_one(self, Exchange ex, Limit limit) except -1
    cdef int note_crowded(self, Limit limit, int64_t reset_ms) except -1
    cdef int on_error(self, Verdict verdict, Limit limit) except -1
