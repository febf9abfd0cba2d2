# Engine: the data plane of one worker: the fast path with all units, and the calls of the worker.
#
# In: a loop, mapped memory, applied resources, listening sockets. Out: answers, counters, batches of access log lines and spans.
# It cimports every unit; no unit cimports it.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport (
    BodyBuffer, Clock, Cluster, EndpointChecks, Freelist, Gather, Health, Mirror, Outlier, PortAcceptor, PortTable, ReactorCells, Reactor,
    ReadBuffer, Session, Tables, Trim, Wheel, Zones, MIRROR_REQUEST, new_window, own_ports, release_connections,
)
from edgefast.core.fastpath cimport Engine as FastPath
from edgefast.core.h2.extension cimport Http2
from edgefast.core.healthcheck.extension cimport Prober
from edgefast.core.policy.extension cimport PolicyUnits
from edgefast.core.stream.extension cimport DatagramPort, DatagramSession, StreamAcceptor, StreamTables, TcpProxy, PE_COUNT, PE_DRAINED
from edgefast.core.telemetry.extension cimport Telemetry
from edgefast.core.tls.extension cimport Handshakes, TlsAcceptor, EF_TLS_F_COUNT

include "imports.pxi"

# What the other processes and the tests use of the units.
from edgefast.core.fastpath import ExhaustedLimits, Limiter, address_in, canonical_address, count_choices, is_private_address
from edgefast.core.policy.extension import TOKENS, TOKEN_BYTES, TokenCache, cost_of_token, count_admitted, read_check
from edgefast.core.policy.passwords import Passwords as PasswordThread
from edgefast.core.tls.extension import Hasher, TlsContext, TlsError, is_signed, tls_library, use_tickets

include "core/consts.pxi"
include "net/consts.pxi"
include "stream/consts.pxi"
include "cells.pxi"


cdef class Engine(FastPath):
    """The request path of one worker process.

    loop: a uvloop loop. arena: read-only view of the whole reserved mapping. stats: writable view of this worker's segment
    (csrc/stat.h). upstream_tls: ir.UpstreamTls -> TlsContext. access_log: takes batches of complete lines and must not block.
    limits: writable view of the counters that all workers share (csrc/limit.h). health: the same of backends (csrc/health.h); None: this
    worker's are its own. ask_others: told the name of a cluster whose connections other workers are to release (release_connections). spans: takes batches of spans (span.pyx) and says whether
    it did; must not block. make_token_verifier: returns the worker's token_verification.TokenVerifier when the first policy asks for tokens; None: the engine
    makes one, for which nobody fetches keys. login_services: for policies with oidc (login_flow.py); None: the engine refuses those.
    """

    def __cinit__(self, loop, arena, stats, *, int worker, upstream_tls, access_log, limits, health=None, ask_others=None, spans=None, make_token_verifier=None, login_services=None):
        cdef Py_buffer view
        cdef size_t size
        cdef ReactorCells cells
        self.loop = loop
        self.worker = worker
        self.upstream_tls = upstream_tls
        self.wheel = Wheel(loop)
        self.read_buffer = ReadBuffer(READ_BUFFER)
        self.reactor = Reactor(loop, self.wheel, self.read_buffer)
        self.scratch_size = 262144 + 16  # the largest head there can be, and a little
        self.path = <uint8_t *>malloc(self.scratch_size)
        self.scratch = <uint8_t *>malloc(self.scratch_size)
        if self.path == NULL or self.scratch == NULL:
            raise MemoryError
        self.tables = Tables(self, arena)
        self.gather = Gather(self)
        self.streams = {}
        self.sessions = set()
        self.stream_tables = StreamTables(self)
        self.policies = PolicyUnits(self, make_token_verifier, login_services, PasswordThread(loop, verify, Hasher), is_signed)
        self.http2 = Http2()
        self.body_buffer = BodyBuffer(self)
        self.freelist = Freelist.__new__(Freelist)
        self.freelist.reactor = self.reactor
        self.clock = Clock()
        self.observer = Telemetry(self, access_log, spans)
        self.stat_view = memoryview(stats)
        PyObject_GetBuffer(self.stat_view, &view, PyBUF_WRITABLE)
        self.stat = <ef_stat *>view.buf
        size = view.len
        PyBuffer_Release(&view)
        if ef_stat_check(self.stat, size) < 0:
            raise ValueError("stats is not a counter segment")
        ef_stat_adopt(self.stat)
        Py_INCREF(self.stat_view)  # mapped as long as the process lives: a rule may outlive its engine, and lets go of its row
        for name in GAUGES:
            self.stat.globals[GLOBALS.index(name)] = 0  # of a worker that died
        cells = self.reactor.cells
        cells.turns = &self.stat.globals[G_TURNS]
        cells.events = &self.stat.globals[G_TURN_EVENTS]
        cells.faults = &self.stat.globals[G_FAULTS]
        cells.busy_us = &self.stat.globals[G_TURNS_US]
        cells.longest_us = &self.stat.globals[G_TURN_LONGEST_US]
        self.reactor.report(&cells)
        self.limiter = Limiter(self, limits)
        self.health = Health(health, worker)
        self.limiter.join(health, worker)
        self.ask_others = ask_others
        self.outlier = Outlier()
        self.checks = EndpointChecks()
        self.outliers = WeakValueDictionary()
        self.prober = Prober(self)
        self.zones = Zones(self)
        self.unmatched = ef_stat_hold(self.stat, <const uint8_t *>b"-\t-", 3)
        self.connections, self.old, self.mirrors = {}, set(), set()
        self.trim = Trim(self)
        self.handshakes = Handshakes(self)
        self.resolver = Resolver(loop)
        seed = os.urandom(16)
        self.random[0] = int.from_bytes(seed[:8], "little") | 1
        self.random[1] = int.from_bytes(seed[8:], "little")
        self.window = new_window()

    def apply(self, changes, str version):
        """Take a set of changes at once, between two requests.

        changes: (op "put" or "del", type, name, offset, length). Returns the refused ones as (type, name, error); what they would
        have replaced stays. Afterwards nothing here reads blobs that were replaced or removed.
        """
        return self.tables.apply(changes, version)

    @property
    def version(self):
        return self.tables.version

    def own(self, tcp, udp):
        """Set the ports of this machine on which the proxy itself listens: it never connects to them."""
        self.reactor.own_ports = own_ports(tcp, udp)

    # --- connections -----------------------------------------------------------------------------------------------

    def listen(self, int fd, int port, choose=None, tuple addresses=()):
        """Accept on a listening, non-blocking descriptor, which stays the caller's: a PortAcceptor. `port` is the listener's port, not the
        bound one. choose: TLS is spoken; which TlsContext answers a server name in lower case ("": none was sent), None for nobody's.
        addresses: those of its listeners (ir.Listener), which tell ports of one number apart."""
        cdef PortAcceptor acceptor
        if choose is None:
            acceptor = PortAcceptor.__new__(PortAcceptor)
        else:
            acceptor = TlsAcceptor.__new__(TlsAcceptor)
            (<TlsAcceptor>acceptor).choose = choose
            (<TlsAcceptor>acceptor).streams = (<StreamTables>self.stream_tables).port((port, addresses))
        acceptor.engine = self
        acceptor.port = self.tables.port((port, addresses))
        acceptor.listen(self.reactor, fd)
        return acceptor

    def listen_stream(self, int fd, int port, tuple addresses=()):
        """Accept on a listening, non-blocking descriptor, and pass connections on as the port's TCP listener says: a StreamAcceptor."""
        cdef StreamAcceptor acceptor = StreamAcceptor.__new__(StreamAcceptor)
        acceptor.engine = self
        acceptor.port = (<StreamTables>self.stream_tables).port((port, addresses))
        acceptor.listen(self.reactor, fd)
        return acceptor

    def listen_datagrams(self, int fd, int port, tuple addresses=()):
        """Take datagrams from a bound descriptor, which stays the caller's, and pass them on as the port's UDP listener says: a DatagramPort."""
        cdef DatagramPort taker = DatagramPort.__new__(DatagramPort)
        taker.engine = self
        taker.port = (<StreamTables>self.stream_tables).datagram_port((port, addresses))
        taker.listen(self.reactor, fd)
        return taker

    def port_tables(self):
        """Return how many tables of ports there are."""
        return len(self.tables.ports) + len((<StreamTables>self.stream_tables).ports) + len((<StreamTables>self.stream_tables).datagrams)

    def drain(self):
        """From now on answers carry `connection: close`; connections that stay idle are closed after a grace."""
        self.draining = True
        self.old = {*self.connections, *self.streams}
        self.release_idle(None, False)

    @property
    def old_connections(self):
        """How many connections from before the drain are left."""
        self.old &= {*self.connections, *self.streams}
        return len(self.old)

    cdef int release_idle(self, PortTable port, bint outdated) except -1:
        """Close idle connections after a grace period for a last request; port None: all of them. `outdated`: see Session.retire."""
        cdef Session session
        self.wheel.refresh()
        for session in self.connections:
            session.retire(port, outdated)
        if port is not None:
            for tcp_proxy in list(self.streams):
                (<TcpProxy>tcp_proxy).retire(port.key)
        return 0

    def token_verifier_of(self):
        """Return the token verifier (token_verification.TokenVerifier); it is made if there is none."""
        return (<PolicyUnits>self.policies).get_token_verifier()

    def hold_passwords(self, passwords):
        """Have slow hashes made by this one (passwords.py)."""
        (<PolicyUnits>self.policies).hold_passwords(passwords)

    def close(self, double after=0.0):
        """The end of a drain: close idle connections now, abort the rest after `after` seconds."""
        cdef Session session
        self.draining = self.closing = True
        for session in list(self.connections):
            session.stop(False)
        if after > 0 and (self.connections or self.streams):
            self.loop.call_later(after, self._abort_all)
        else:
            self._abort_all()

    def _abort_all(self):
        cdef Session session
        cdef Mirror mirror
        cdef TcpProxy tcp_proxy
        cdef DatagramSession datagrams
        self.wheel.disarm(self.trim)
        (<PolicyUnits>self.policies).close()
        (<Prober>self.prober).stop()
        for session in list(self.connections):
            session.stop(True)
        for tcp_proxy in list(self.streams):
            tcp_proxy.stop()
        for datagrams in list(self.sessions):
            datagrams.end(PE_DRAINED)
        for mirror in list(self.mirrors):
            mirror.stop()
        self.tables.stop_idle()
        self.resolver.close()
        self.reactor.close()
        self.log_flush()

    @property
    def open_connections(self):
        """Connections of clients, those in their handshake and those that are passed on included, and sessions of UDP."""
        return len(self.connections) + self.handshakes.active() + len(self.streams) + len(self.sessions)

    def log_flush(self):
        """Hand over what has been logged and traced so far."""
        self.observer.flush()

    def release_connections(self, str name, uint32_t to):
        """Give up connections of a cluster for users that wait in other workers; `to` has asked."""
        cluster = self.tables.clusters.get(name)
        return release_connections(<Cluster>cluster, to) if cluster is not None else 0

    def forget_rows(self, labels):
        """Give away the rows of these labels (as they are in rows) that no rule holds; returns how many there were."""
        cdef bytes label
        cdef int forgotten = 0
        for label in labels:
            forgotten += ef_stat_forget(self.stat, <const uint8_t *>PyBytes_AS_STRING(label), PyBytes_GET_SIZE(label))
        return forgotten

    def dump(self, bint hosts=True):
        """What is applied, with live numbers; `hosts` False: how many virtual hosts there are, not which."""
        cdef Cluster cluster
        return {
            "version": self.version, "zone": self.zones.own,
            "connections": len(self.connections), "streams": len(self.streams),
            "active": self.active, "gathered": self.body_buffer.held, "delayed": self.delayed,
            "pressing": self.compressing,
            "shown": (<PolicyUnits>self.policies).buffered_bytes,
            "listeners": self.tables.dump(hosts),
            "stream_listeners": (<StreamTables>self.stream_tables).dump(),
            "clusters": [cluster.dump() for cluster in self.tables.clusters.values()],
            "rate_limits": self.limiter.dump(),
        }


include "cellcheck.pyx"
