# Engine: the request path of one worker: the shared state of its connections, and the tables that it serves.
#
# In: applied resources (offsets into the arena), listening sockets. Out: answers, counters in shared memory, batches of access log lines.
# It never reads a file, never blocks, and touches no Python object per header. The rest of the request path is included below, folder by
# folder, in the order of the data flow (ARCHITECTURE.md, "The way of a request").

include "imports.pxi"
include "cold.pxi"
include "consts.pxi"
include "net/consts.pxi"
include "tls/consts.pxi"
include "stream/consts.pxi"
include "cells.pxi"
include "head/hashes.pxi"

_log = logging.getLogger("edgefast.engine")

# memory, time and sockets
include "head/out.pyx"
include "loop/wheel.pyx"
include "loop/clock.pyx"
include "loop/trim.pyx"
include "net/readbuffer.pyx"
include "net/inetaddr.pyx"
include "net/preamble.pyx"
include "net/address.pyx"
include "net/bytequeue.pyx"
include "net/end.pyx"
include "net/wire.pyx"
include "net/reactor.pyx"
include "net/peer.pyx"
include "net/session.pyx"
include "net/connect_callback.pyx"
include "net/outgoing.pyx"
include "net/connection.pyx"
include "net/acceptor.pyx"
include "net/dial.pyx"
# a client's bytes
include "exchange/inbound.pyx"
include "h1/parser_check.pyx"
include "h1/partial_head.pyx"
include "h1/gather.pyx"
include "h1/upgrade.pyx"
include "h1/responder.pyx"
include "h1/server.pyx"
include "h1/connection_limit.pyx"
include "h1/portacceptor.pyx"
include "h2/outflow.pyx"
include "h2/frames.pyx"
include "h2/callbacks.pyx"
include "h2/responder.pyx"
include "h2/stream.pyx"
include "h2/servercallbacks.pyx"
include "h2/session.pyx"
include "h2/stall_detection.pyx"
include "h2/memory_budget.pyx"
include "h2/protocol_switch.pyx"
# what lies between their bytes and the descriptor
include "tls/library.pyx"
include "tls/crypto.pyx"
include "tls/context.pyx"
include "tls/backendsessions.pyx"
include "tls/handshakes.pyx"
include "tls/tlswire.pyx"
include "tls/tlsacceptor.pyx"
# a rule for its request
include "route/router.pyx"
include "route/rule.pyx"
include "route/tables.pyx"
# who may enter
include "policy/headernames.pyx"
include "policy/header_strip.pyx"
include "policy/authenticators.pxi"
include "policy/path_variants.pyx"
include "policy/access.pyx"
include "policy/authcache.pyx"
include "policy/authservice.pyx"
include "policy/authcall.pyx"
include "policy/grpcservice.pxi"
include "policy/auth_body_buffer.pyx"
include "policy/auth_flow.pyx"
include "policy/policy_chain.pyx"
include "policy/listenerfilters.pyx"
include "policy/fault.pyx"
include "policy/override.pyx"
include "policy/compress.pyx"
include "policy/cookies.pyx"
include "policy/hashpolicy.pyx"
include "policy/sessionpolicy.pyx"
include "policy/traffic.pyx"
# limits that count it
include "limit/limit.pyx"
include "limit/check.pyx"
include "limit/exhausted.pyx"
include "limit/dispatcher.pyx"
include "limit/limiter.pyx"
# the request itself
include "exchange/clientaddress.pyx"
include "exchange/target.pyx"
include "exchange/grpc.pxi"
include "exchange/failures.pyx"
include "exchange/cors.pyx"
include "exchange/retry_budget.pyx"
include "exchange/outlier_report.pyx"
include "exchange/attempts.pyx"
include "exchange/longstreams.pyx"
include "exchange/body_buffer.pyx"
include "exchange/requestbody.pyx"
include "exchange/exchange.pyx"
include "exchange/mirror.pyx"
include "exchange/freelist.pyx"
# heads as they leave
include "head/headerops.pyx"
include "head/pathpattern.pyx"
include "head/trailers.pyx"
include "head/requesthead.pyx"
include "head/responsehead.pyx"
# a backend
include "upstream/includes.pxi"
include "exchange/outbound.pyx"
include "h1/requester.pyx"
include "h1/client.pyx"
include "h2/requester.pyx"
include "h2/cancels.pyx"
include "h2/call.pyx"
include "h2/clientcallbacks.pyx"
include "h2/client.pyx"
# connections that are passed on unread
include "stream/streamrules.pyx"
include "stream/addressbound.pyx"
include "stream/proxyheader.pyx"
include "stream/tcp_proxy.pyx"
include "stream/streamacceptor.pyx"
include "stream/udp_session_limit.pyx"
include "stream/datagrams.pyx"
include "stream/datagramsession.pyx"
# what is told of it
include "telemetry/accesslog.pyx"
include "telemetry/logprogram.pyx"
include "telemetry/response_flags.pyx"
include "telemetry/logvalue.pyx"
include "telemetry/spans.pxi"
include "telemetry/stream_log.pyx"


cdef class Engine:
    """The request path of one worker process.

    loop: a uvloop loop. arena: read-only view of the whole reserved mapping. stats: writable view of this worker's segment
    (csrc/stat.h). upstream_tls: ir.UpstreamTls -> TlsContext. access_log: takes batches of complete lines and must not block.
    limits: writable view of the counters that all workers share (csrc/limit.h). health: the same of backends (csrc/health.h); None: this
    worker's are its own. ask_others: told the name of a cluster whose connections other workers are to release (release_connections). spans: takes batches of spans (span.pyx) and says whether
    it did; must not block. make_token_verifier: returns the worker's token_verification.TokenVerifier when the first policy asks for tokens; None: the engine
    makes one, for which nobody fetches keys.
    """

    def __cinit__(self, loop, arena, stats, *, int worker, upstream_tls, access_log, limits, health=None, ask_others=None, spans=None, make_token_verifier=None):
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
        self.address_bounds = AddressBounds()
        self.auth_cache = AuthCache()
        self.auth_bodies = AuthBodyBuffer()
        self.passwords = PasswordThread(loop, verify, Hasher)
        self.make_token_verifier = make_token_verifier
        self.body_buffer = BodyBuffer(self)
        self.freelist = Freelist.__new__(Freelist)
        self.freelist.reactor = self.reactor
        self.clock = Clock()
        self.log = LogBatch(self, access_log)
        self.spans = SpanBatch(self, spans)
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
        self.h2_memory = H2MemoryBudget()
        self.resolver = Resolver(loop)
        seed = os.urandom(16)
        self.random[0] = int.from_bytes(seed[:8], "little") | 1
        self.random[1] = int.from_bytes(seed[8:], "little")
        self.window = new_window()

    def __dealloc__(self):
        free(self.path)
        free(self.scratch)
        free(self.out.data)
        free(self.trailers.data)
        free(self.h2_out.data)
        free(self.h2_text)
        free(self.counter_key.data)

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
            (<TlsAcceptor>acceptor).streams = self.stream_tables.port((port, addresses))
        acceptor.engine = self
        acceptor.port = self.tables.port((port, addresses))
        acceptor.listen(self.reactor, fd)
        return acceptor

    def listen_stream(self, int fd, int port, tuple addresses=()):
        """Accept on a listening, non-blocking descriptor, and pass connections on as the port's TCP listener says: a StreamAcceptor."""
        cdef StreamAcceptor acceptor = StreamAcceptor.__new__(StreamAcceptor)
        acceptor.engine = self
        acceptor.port = self.stream_tables.port((port, addresses))
        acceptor.listen(self.reactor, fd)
        return acceptor

    def listen_datagrams(self, int fd, int port, tuple addresses=()):
        """Take datagrams from a bound descriptor, which stays the caller's, and pass them on as the port's UDP listener says: a DatagramPort."""
        cdef DatagramPort taker = DatagramPort.__new__(DatagramPort)
        taker.engine = self
        taker.port = self.stream_tables.datagram_port((port, addresses))
        taker.listen(self.reactor, fd)
        return taker

    def port_tables(self):
        """Return how many tables of ports there are."""
        return len(self.tables.ports) + len(self.stream_tables.ports) + len(self.stream_tables.datagrams)

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

    cdef object get_token_verifier(self):
        """Where tokens are verified. A worker whose policies ask for none has neither it nor its libraries."""
        if self.tokens is None:
            if self.make_token_verifier is None:
                from edgefast.core.policy.token_verification import TokenVerifier
                self.tokens = TokenVerifier(self.loop, lambda uri, cluster: None)
            else:
                self.tokens = self.make_token_verifier()
            self.tokens.is_signed_slow = is_signed
        return self.tokens

    def token_verifier_of(self):
        """Return the token verifier (token_verification.TokenVerifier); it is made if there is none."""
        return self.get_token_verifier()

    def hold_passwords(self, passwords):
        """Have slow hashes made by this one (passwords.py)."""
        self.passwords.close()
        self.passwords = passwords

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
        self.passwords.close()
        self.prober.stop()
        if self.tokens is not None and self.make_token_verifier is None:
            self.tokens.close()
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
        self.log.flush()
        self.spans.flush()

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
            "shown": self.auth_bodies.pieces * <size_t>AUTH_BODY_PIECE,
            "listeners": self.tables.dump(hosts),
            "stream_listeners": self.stream_tables.dump(),
            "clusters": [cluster.dump() for cluster in self.tables.clusters.values()],
            "rate_limits": self.limiter.dump(),
        }


include "telemetry/cellcheck.pyx"
