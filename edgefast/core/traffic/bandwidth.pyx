# Bandwidth: limits the bytes of a response body per time (BackendTrafficPolicy bandwidthLimit).
#
# In: body bytes of a backend, and the end of its response. Out: the same bytes to the client, as tokens come in. Each response has its own
# token bucket, as limit_rate of nginx: one second of the rate, and before it the first bytes without a limit. Bytes without a token are kept, and
# reading from the backend pauses: at most one read of the backend is kept. Bytes count as the backend sends them, before compression.
# Must never: keep more than what came before the pause took effect, or wake up more often than a tick of the wheel.

# Parts of a second for which a response waits before it goes on.
cdef enum:
    BANDWIDTH_STEPS = 20


cdef class Bandwidth:
    def __init__(self, spec):
        """spec: ir.Bandwidth."""
        self.amount, self.period, self.unlimited = spec.amount, spec.period, spec.unlimited
        self.burst = max(self.amount * 1000 // self.period, 1)


cdef LimitedResponse limit_response(Exchange ex, Bandwidth bandwidth):
    cdef LimitedResponse made = LimitedResponse.__new__(LimitedResponse)
    made.ex, made.bandwidth = ex, bandwidth
    made.tokens = bandwidth.burst + bandwidth.unlimited
    made.filled_at = ex.engine.wheel.now
    return made


cdef class LimitedResponse(Timer):
    def __dealloc__(self):
        out_free(&self.kept)
        out_free(&self.trailers)

    cdef void fill(self, int64_t now) noexcept:
        """Add the tokens of the time since the last call; time that was too short for a token counts later."""
        cdef Bandwidth bandwidth = self.bandwidth
        cdef int64_t elapsed = min(now - self.filled_at, bandwidth.period), more
        if self.tokens >= bandwidth.burst:
            self.filled_at = now
            return
        more = bandwidth.amount * elapsed // bandwidth.period
        if more <= 0:
            return
        if self.tokens + more >= bandwidth.burst:
            self.tokens, self.filled_at = bandwidth.burst, now
        else:
            self.tokens += more
            self.filled_at += more * bandwidth.period // bandwidth.amount

    cdef size_t take(self, size_t wanted) noexcept:
        cdef size_t n = min(wanted, <size_t>max(self.tokens, 0))
        self.tokens -= <int64_t>n
        return n

    cdef int put(self, const uint8_t *data, size_t n) except -1:
        """Body bytes of the backend; those with a token go on at once."""
        cdef size_t now = 0
        if self.kept.size == 0:
            self.fill(self.ex.engine.wheel.now)
            now = self.take(n)
            if now:
                relay_body(self.ex, data, now)
        if now < n:
            out_reserve(&self.kept, n - now)
            out_raw(&self.kept, data + now, n - now)
        return 0

    cdef bint waits(self) noexcept:
        return self.kept.size > 0

    cdef int wait(self) except -1:
        """Read no more of the backend, and go on when there are tokens for the next step."""
        cdef Bandwidth bandwidth = self.bandwidth
        cdef int64_t wanted = min(<int64_t>(self.kept.size - self.sent), max(bandwidth.burst // BANDWIDTH_STEPS, 1)) - self.tokens
        cdef int64_t at = self.ex.engine.wheel.now + max(wanted, 0) * bandwidth.period // bandwidth.amount + 1
        if self.ex.up is not None:
            self.ex.up.pause()
        if self.ex.idle_deadline:  # it waits on purpose
            self.ex.idle_deadline = max(self.ex.idle_deadline, at + self.ex.idle_timeout)
        return self.ex.engine.wheel.arm(self, at)

    cdef int put_trailers(self, const uint8_t *lines, size_t n) except -1:
        if self.ex.grpc:
            note_grpc_trailers(self.ex, lines, n)  # the endpoint is judged when its answer is here, not when the client has it
        out_reserve(&self.trailers, n)
        out_raw(&self.trailers, lines, n)
        return 0

    cdef int end(self) except -1:
        """The backend has sent all of it. Its connection is free; the rest waits here."""
        cdef Exchange ex = self.ex
        self.ended = True
        ex.up = None
        report_end(ex)
        hand_over(ex, False)
        ex.down.response_flush()
        handed_over(ex)
        return 0 if ex.finished or ex.down.write_paused else self.wait()

    cdef int on_deadline(self, int64_t now) except -1:
        return self.release()

    cdef int release(self) except -1:
        """Send what has tokens by now."""
        cdef Exchange ex = self.ex
        cdef size_t n
        if ex is None or ex.finished or ex.down.write_paused:
            return 0
        self.fill(ex.engine.wheel.now)
        n = self.take(self.kept.size - self.sent)
        if n:
            relay_body(ex, self.kept.data + self.sent, n)
            self.sent += n
            hand_over(ex, False)
            ex.down.response_flush()
            handed_over(ex)
            if ex.finished:
                return 0
        if self.sent < self.kept.size:
            return 0 if ex.down.write_paused else self.wait()
        out_free(&self.kept)
        self.sent = 0
        if self.ended:
            if self.trailers.size:
                relay_trailers(ex, self.trailers.data, self.trailers.size)
            return end_answer(ex)
        return ex.up.resume() if ex.up is not None and not ex.down.write_paused else 0

    cdef int stop(self) except -1:
        """The exchange has ended."""
        self.ex.engine.wheel.disarm(self)
        self.ex = None
        out_free(&self.kept)
        out_free(&self.trailers)
        return 0
