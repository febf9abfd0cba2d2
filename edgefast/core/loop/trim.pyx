# Trim: returns memory to the system after a peak of connections, handshakes or streams.
#
# In: the count, after each start (trim_rose) and each end (fell). Out: malloc_trim. The C library keeps freed memory between blocks in use:
# after 5,000 HTTP/2 connections that was 140 MB of a worker.
# Must never: run more often than once in TRIM_APART_MS.

cdef class Trim(Timer):
    def __cinit__(self, Engine engine):
        self.engine = engine

    cdef int fell(self, size_t *peak, size_t n) except -1:
        """`n` are left of `peak`: when most have ended, a trim follows in TRIM_MS."""
        if peak[0] < TRIM_FROM or n > peak[0] // TRIM_PART or self.deadline or self.engine.closing:
            return 0
        return self.engine.wheel.arm(self, max(self.engine.wheel.now + TRIM_MS, self.not_before))

    cdef int on_deadline(self, int64_t now) except -1:
        cdef Engine engine = self.engine
        self.deadline = 0
        self.connections = len(engine.connections)
        self.handshakes = <size_t>engine.handshakes.active()
        self.tcp_proxies = len(engine.streams)
        self.streams = engine.http2.open_streams()
        self.not_before = now + TRIM_APART_MS
        malloc_trim(0)
        return 0
