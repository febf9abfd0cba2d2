# Retry state: the attempts of one request.

# Where the current attempt is. retry_state.pyx has the table of transitions.
cdef enum TryState:
    TRY_NONE = 0            # no connection is asked for
    TRY_CONNECTING = 1      # the pool looks for a connection
    TRY_CONNECTED = 2       # there is one, and the request head is not written yet
    TRY_SENT = 3            # the head is written
    TRY_ANSWERED = 4        # the response head went to the client: no other attempt follows
    TRY_BACKOFF = 5         # the next attempt begins at Exchange.ask_at


@cython.final
cdef class RetryState:
    cdef:
        TryState state
        uint32_t tries          # attempts with a connection, or with a failed one
        int64_t sent            # us; the request head of this attempt was written
        int64_t deadline        # ms; of this attempt; 0: none
        int64_t began           # ms; the first attempt began, where retry_timeout is set; 0: it did not
        bint counted            # in its cluster's retry budget
        bint starved            # its interval had no retry left (RetryWindow)
        bint reported           # this attempt's result, to its endpoint (outlier_report.pyx)
        bint called             # the response of this attempt is gRPC

    cdef void reset(self) noexcept
    cdef void enter(self, TryState state) noexcept
    cdef int ask(self, Exchange ex) except -1
    cdef int again(self, Exchange ex, int64_t wait, int status, uint32_t why) except -1
    cdef bint in_budget(self, Exchange ex) except -1
    cdef bint in_share(self, Exchange ex) except -1
    cdef bint may_retry(self, Exchange ex, uint32_t most) except -1
    cdef bint is_late(self, Exchange ex) noexcept
    cdef bint may_go_again(self, Exchange ex, Outbound up) except -1
    cdef int64_t backoff(self, Exchange ex, int64_t base) noexcept
