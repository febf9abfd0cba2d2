# The socket layer with sessions that a test drives: everything of edgefast/core/net, compiled apart from the engine.
#
# In: a uvloop loop. Out: `Net`, acceptors and dialers whose sessions are a Probe (events are told, actions are a test's), an Echo or a
# Relay. Built by build.py with the flags of the engine, so that a debug build checks this, too.

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

import logging
from ipaddress import ip_address

from edgefast.local_address import is_local

include "consts.pxi"
include "net/consts.pxi"

_log = logging.getLogger("edgefast.engine")

include "loop/wheel.pyx"
include "net/readbuffer.pyx"
include "net/address.pyx"
include "net/bytequeue.pyx"
include "net/end.pyx"
include "net/wire.pyx"
include "net/reactor.pyx"
include "net/session.pyx"
include "net/connect_callback.pyx"
include "net/outgoing.pyx"
include "net/connection.pyx"
include "net/acceptor.pyx"
include "net/dial.pyx"

ENDS = {
    END_CLOSED: "closed", END_ABORTED: "aborted", END_RESET: "reset", END_TIMED_OUT: "timed out", END_REFUSED: "refused",
    END_UNREACHABLE: "unreachable", END_SHORTAGE: "shortage", END_STALLED: "stalled", END_OVERFLOW: "overflow", END_WIRE: "wire",
    END_FAULT: "fault", END_OTHER: "other",
}
BURST = ACCEPT_BURST
UNSENT_MOST = OUT_MOST
UNREAD_MOST = PENDING_MOST
READ = READ_SMALL
EVENTS = TURN_EVENTS
LOOK = TURN_LOOK
NANOSECONDS = TURN_NS
LATER = LATER_NS
AHEAD = SEND_AHEAD


cdef class Net:
    """A worker's reactor and wheel."""
    cdef:
        readonly Reactor reactor
        Wheel wheel
        uint64_t told[5]    # turns, events, stale, faults, us in turns

    def __init__(self, loop):
        self.wheel = Wheel(loop)
        cdef ReactorCells cells
        self.reactor = Reactor(loop, self.wheel, ReadBuffer(READ_BUFFER))
        cells = self.reactor.cells
        cells.turns, cells.events, cells.stale = &self.told[0], &self.told[1], &self.told[2]
        cells.faults, cells.busy_us = &self.told[3], &self.told[4]
        self.reactor.report(&cells)

    def close(self):
        self.reactor.close()
        self.wheel.stop()

    def count(self, str name):
        """turns, events, stale or faults since the beginning."""
        return self.told[("turns", "events", "stale", "faults").index(name)]

    @property
    def watching(self):
        return self.reactor.watching

    @property
    def armed(self):
        return self.wheel.armed

    def lose_spare(self):
        """As if somebody else had taken the spare descriptor."""
        if self.reactor.spare >= 0:
            close(self.reactor.spare)
        self.reactor.spare = -1

    @property
    def has_spare(self):
        return self.reactor.spare >= 0


cdef tuple told(NetAddress *address):
    if address.kind == ADDRESS_INET:
        return bytes(address.host[:16]), address.port
    return ("unix",) if address.kind == ADDRESS_UNIX else None


cdef class Driven(Session):
    """What a test may ask of any session."""
    cdef:
        readonly str why            # how it ended
        readonly int error
        readonly tuple peer
        public bint deaf            # pauses when it opens

    cdef int on_open(self) except -1:
        self.peer = told(&self.connection.peer)
        if self.deaf:
            self.connection.pause()
        return 0

    cdef int on_lost(self) except -1:
        self.why = ENDS[self.connection.why]
        self.error = self.connection.error
        return 0

    @property
    def fd(self):
        return self.connection.fd if self.connection is not None else -1

    @property
    def unsent(self):
        return self.connection.unsent() if self.connection is not None else 0

    @property
    def kept(self):
        return self.connection.pending.len if self.connection is not None else 0

    @property
    def write_paused(self):
        return self.connection.write_paused

    @property
    def local(self):
        cdef NetAddress name
        self.connection.learn_end(True, &name)
        return told(&name)

    @property
    def roomy(self):
        return self.connection.has_room()

    def bound(self, size_t most):
        self.connection.buffer_bytes = most

    def send(self, *pieces):
        cdef iovec iov[MAX_IOV]
        cdef size_t total = 0
        cdef int i
        for i in range(len(pieces)):
            iov[i].iov_base = PyBytes_AS_STRING(pieces[i])
            iov[i].iov_len = PyBytes_GET_SIZE(pieces[i])
            total += iov[i].iov_len
        self.connection.sendv(iov, len(pieces), total)

    def end_write(self):
        self.connection.end_writes()

    def pause(self):
        self.connection.pause()

    def resume(self):
        self.connection.resume()

    def go_on(self):
        self.connection.go_on()

    def go_on_later(self):
        self.connection.go_on_later()

    def look(self):
        """What the wheel does at the socket's deadline."""
        if self.connection is not None:
            self.connection.on_deadline(self.connection.reactor.wheel.now)

    def call_at_turn_end(self):
        self.connection.call_at_turn_end()

    def give_body(self):
        """A body that an orderly end of the connection completes has been sent."""
        self.connection.body_end = BODY_GIVEN

    def shut(self, bint abort=False):
        if self.connection is not None:
            self.connection.shut(abort)


cdef class Probe(Driven):
    """Tells `heard` each event as a tuple; `react` maps an event's name to what is called then, with this probe."""
    cdef:
        readonly list heard
        public dict react
        public object take          # how many bytes of each on_bytes are consumed; None: all
        public bint bulk
        readonly size_t largest     # read

    def __init__(self, react=None):
        self.heard = []
        self.react = react or {}

    cdef int hear(self, tuple event) except -1:
        self.heard.append(event)
        reaction = self.react.get(event[0])
        if reaction is not None:
            reaction(self)
        return 0

    cdef int on_open(self) except -1:
        Driven.on_open(self)
        return self.hear(("open",))

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        if n > self.largest:
            self.largest = n
        self.hear(("bytes", (<const char *>data)[:n]))
        return <ssize_t>n if self.take is None or self.take > n else self.take

    cdef int on_eof(self) except -1:
        return self.hear(("end",))

    cdef int on_writable(self, bint writable) except -1:
        return self.hear(("room",)) if writable else 0

    cdef int on_hangup(self) except -1:
        return self.hear(("hangup",))

    cdef int on_turn_end(self) except -1:
        return self.hear(("turn end",))

    cdef int on_lost(self) except -1:
        Driven.on_lost(self)
        return self.hear(("lost", ENDS[self.connection.why]))

    cdef int on_deadline(self, int64_t now) except -1:
        return self.hear(("deadline",))

    cdef bint takes_bulk(self) noexcept:
        return self.bulk

    def arm(self, ms):
        self.connection.reactor.wheel.refresh()
        self.connection.arm(ms)

    @property
    def received(self):
        return b"".join([event[1] for event in self.heard if event[0] == "bytes"])


cdef class Echo(Driven):
    """Sends what it gets, reads no more than it can send, ends when its peer does."""
    cdef readonly size_t most   # bytes that were ever queued

    cdef ssize_t received(self, const uint8_t *data, size_t n) except -1:
        self.connection.send(data, n)
        if self.connection.out.len > self.most:
            self.most = self.connection.out.len
        if self.connection.write_paused:
            self.connection.pause()
        return n

    cdef int on_writable(self, bint writable) except -1:
        return self.connection.resume() if writable else 0

    cdef int on_eof(self) except -1:
        self.connection.end_writes()
        return self.connection.shut(False)


include "relay.pyx"


cdef class Listening(Acceptor):
    """Accepts on a socket of a test. serve: makes a session of a connection's (address, port); None from it: refused."""
    cdef:
        public object serve
        public object make_wire
        readonly list sessions      # weak memory: tests that accept thousands turn it off
        public bint keep
        public object relay_to
        readonly list failed        # why connections were never open

    def __init__(self, Net net, int fd, serve, relay_to=None):
        self.serve = serve
        self.sessions = []
        self.failed = []
        self.keep = True
        self.relay_to = relay_to
        self.handshake_ms = 10000
        self.listen(net.reactor, fd)

    cdef Session admit(self, const NetAddress *peer):
        cdef Session session
        cdef NetAddress address = peer[0]
        session = self.serve(told(&address))
        if session is not None and self.keep:
            self.sessions.append(session)
        if self.relay_to is not None:
            relay(self.reactor, <Half>session, self.relay_to)
        return session

    cdef Wire wire(self):
        return self.make_wire() if self.make_wire is not None else None

    cdef int on_not_opened(self, Connection connection) except -1:
        self.failed.append(ENDS[connection.why])
        return 0

    def open_within(self, ms):
        self.handshake_ms = ms

    def stop_now(self):
        self.stop()

    def take_now(self, most):
        return self.take(most)


cdef class Call(Dial):
    """A connect of a test. answer: None while it lasts; its session, or why there is none."""
    cdef:
        readonly object answer
        object make_wire, react

    def __init__(self, Net net, bytes host, int port, Session session, int64_t timeout=10000, make_wire=None, react=None):
        self.make_wire = make_wire
        self.react = react
        self.begin(net.reactor, host, port, session, timeout)

    cdef Wire wire(self):
        return self.make_wire() if self.make_wire is not None else None

    cdef int on_opened(self, Connection connection) except -1:
        return self.hear(connection.session)

    cdef int on_failed(self, End why, int error) except -1:
        return self.hear(ENDS[why])

    def give_up_now(self):
        self.end(END_TIMED_OUT, 0)

    cdef int hear(self, object answer) except -1:
        assert self.answer is None
        self.answer = answer
        if self.react is not None:
            self.react(self)
        return 0


include "veil.pyx"
