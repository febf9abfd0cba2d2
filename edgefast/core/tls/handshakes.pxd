# Handshakes of a worker's clients.

cdef class Handshakes(TlsHooks):
    cdef:
        Engine engine
        BackendSessions sessions
        object silent           # OrderedDict by age: TlsWire -> its Connection; those that have not said hello
        object shaking          # ... those that have
        uint64_t turn           # in which `steps` were taken
        int steps
        int64_t spent_ns        # on these
        object lengthy          # OrderedDict: of the silent ones those with more than EARLY_LONG bytes, who were so first
        size_t early            # bytes of all silent ones
        int64_t reported_at         # ms of the wheel: that a certificate could not be chosen; 0: never
        uint64_t dial_turn      # in which `dials` were
        int dials

    cdef bint may_step(self) noexcept
    cdef bint may_dial(self) noexcept
    cdef bint make_room(self, line, Py_ssize_t most) except -1
    cdef bint weigh(self, TlsWire wire) except -1
    cdef int give_up(self, TlsWire wire, connection) except -1
    cdef int forget(self, TlsWire wire) except -1
    cdef int report(self, error) except -1
    cdef int enter(self, TlsWire wire, Connection connection) except -1
    cdef int begin(self, TlsWire wire, int64_t patience) except -1
    cdef int leave(self, TlsWire wire) except -1


cdef inline Handshakes handshakes_of(Engine engine):
    return <Handshakes>engine.handshakes
