# Limiter: the store of counters, and what its answers mean.

cdef class Limiter(Dispatcher):
    cdef:
        object segment          # keeps the mapping of the memory store
        ef_store *memory
        public object on_crowded  # called with (route, limit, ms to the window's end) when new values find no room, once a window
        bint fail_closed
        ExhaustedLimits spent
        ef_limit *in_progress   # requests in progress of all workers (csrc/limit_local.h)
        object in_progress_view # keeps its mapping
        uint32_t seat, seats    # this worker's there, and how many there are

    cdef int64_t now(self) noexcept
    cdef bint refuses(self, Exchange ex, const ef_request *request, list limits) except -1
    cdef bint take_token(self, LimitDecision decision, Limit limit, bytes key) except -1
    cdef bint hold(self, LimitDecision decision, Limit limit, bytes key) except -1
    cdef int release(self, LimitDecision decision) except -1
    cdef LimitDecision ask(self, Exchange ex, const ef_request *request)
    cdef bint take_now(self, LimitDecision decision, Limit limit, bytes key) except -1
    cdef int answer(self, Check check, int64_t took) except -1
    cdef int answer_one(self, Check check, uint32_t place, Exchange ex, Limit limit, int64_t took) except -1
    cdef int one_less(self, Exchange ex) except -1
    cdef int refuse_one(self, Exchange ex, Limit limit) except -1
    cdef int note_crowded(self, Limit limit, int64_t reset_ms) except -1
    cdef int on_error(self, LimitDecision decision, Limit limit) except -1
