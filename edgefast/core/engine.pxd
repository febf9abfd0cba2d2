# The class diagram of the request path. One extension module, one .pxd per concept, all included here because the classes
# refer to each other.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *

include "net/kernel.pxi"
include "stream/kernel.pxi"

from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.nghttp2 cimport *

cdef class Engine
cdef class Reactor
cdef class Connection
cdef class TlsWire
cdef class Attempts
cdef class Tables
cdef class Gather
cdef class Clock
cdef class Trim
cdef class LogBatch
cdef class Trace
cdef class SpanBatch
cdef class LogKept
cdef class LogProgram
cdef class Session
cdef class Peer
cdef class Inbound
cdef class Outbound
cdef class H1Client
cdef class H2Frames
cdef class H2Server
cdef class H2Holder
cdef class H2Holders
cdef class H2Client
cdef class H2Call
cdef class PoolDial
cdef class Exchange
cdef class Mirror
cdef class Endpoint
cdef class Pool
cdef class Cluster
cdef class Health
cdef class HealthRecord
cdef class Outlier
cdef class Breaker
cdef class Zones
cdef class ZoneRule
cdef class ZoneChances
cdef class ZoneRuns
cdef class EndpointCheck
cdef class EndpointChecks
cdef class Prober
cdef class Watch
cdef class Probe
cdef class ProbeSession
cdef class ProbeDial
cdef class UpstreamUser
cdef class Identities
cdef class SessionPolicy
cdef class NamedSession
cdef class Line
cdef class Turns
cdef class ClientPart
cdef class ClientShare
cdef class LongStreams
cdef class ConnectionShare
cdef class Behind
cdef class BodyShare
cdef class BodyClient
cdef class AnswerShare
cdef class RequestBody
cdef class Gathered
cdef class Spares
cdef class Rule
cdef class Backend
cdef class HttpSettings
cdef class ListenerTable
cdef class PortTable
cdef class Witness
cdef class HeaderOps
cdef class Policy
cdef class Guard
cdef class Access
cdef class Traffic
cdef class PathPattern
cdef class AuthService
cdef class AuthCall
cdef class AuthEdits
cdef class AuthTold
cdef class Admittance
cdef class ListenerFilters
cdef class ShownOwner
cdef class ShownBodies
cdef class Limit
cdef class Verdict
cdef class Check
cdef class Dispatcher
cdef class Limiter
cdef class Passage
cdef class PassageShare
cdef class PassageSide
cdef class PassageDown
cdef class PassageUp
cdef class StreamListener
cdef class StreamRule
cdef class StreamPort
cdef class DatagramSession
cdef class DatagramRoom

include "loop/wheel.pxd"
include "loop/clock.pxd"
include "loop/trim.pxd"
include "head/out.pxd"
include "head/headerops.pxd"
include "head/pathpattern.pxd"
include "net/readbuffer.pxd"
include "net/inetaddr.pxd"
include "net/address.pxd"
include "net/bytequeue.pxd"
include "net/end.pxd"
include "net/wire.pxd"
include "net/reactor.pxd"
include "net/peer.pxd"
include "net/session.pxd"
include "net/opener.pxd"
include "net/outgoing.pxd"
include "net/connection.pxd"
include "net/preamble.pxd"
include "net/dial.pxd"
include "net/acceptor.pxd"
include "h1/portacceptor.pxd"
include "tls/library.pxd"
include "tls/crypto.pxd"
include "tls/context.pxd"
include "tls/backendsessions.pxd"
include "tls/handshakes.pxd"
include "tls/tlswire.pxd"
include "tls/tlsacceptor.pxd"
include "h1/witness.pxd"
include "h1/gather.pxd"
include "exchange/cut.pxd"
include "exchange/inbound.pxd"
include "exchange/outbound.pxd"
include "upstream/health.pxd"
include "upstream/outlier.pxd"
include "upstream/breaker.pxd"
include "upstream/retrywindow.pxd"
include "upstream/check.pxd"
include "upstream/balance.pxd"
include "upstream/zone.pxd"
include "upstream/identities.pxd"
include "upstream/upstreamuser.pxd"
include "upstream/pool.pxd"
include "upstream/endpoint.pxd"
include "upstream/ranks.pxd"
include "upstream/clientshare.pxd"
include "upstream/line.pxd"
include "upstream/turns.pxd"
include "upstream/behind.pxd"
include "upstream/bodyclient.pxd"
include "upstream/bodyshare.pxd"
include "upstream/answershare.pxd"
include "upstream/crowding.pxd"
include "upstream/cluster.pxd"
include "upstream/sweep.pxd"
include "upstream/prober.pxd"
include "h1/client.pxd"
include "upstream/newcomer.pxd"
include "upstream/pooldial.pxd"
include "route/rule.pxd"
include "telemetry/logprogram.pxd"
include "route/router.pxd"
include "route/tables.pxd"
include "telemetry/accesslog.pxd"
include "telemetry/span.pxd"
include "limit/limit.pxd"
include "limit/check.pxd"
include "limit/spent.pxd"
include "limit/dispatcher.pxd"
include "limit/limiter.pxd"
include "exchange/routed.pxd"
include "guard/headernames.pxd"
include "guard/places.pxd"
include "guard/tokencache.pxd"
include "guard/proof.pxd"
include "guard/access.pxd"
include "guard/fault.pxd"
include "guard/override.pxd"
include "guard/press.pxd"
include "guard/hashpolicy.pxd"
include "guard/sessionpolicy.pxd"
include "guard/traffic.pxd"
include "guard/protobuf.pxd"
include "guard/checkanswer.pxd"
include "guard/authedits.pxd"
include "guard/authcache.pxd"
include "guard/authservice.pxd"
include "guard/authcall.pxd"
include "guard/checkcall.pxd"
include "guard/shownbodies.pxd"
include "guard/admittance.pxd"
include "guard/policy.pxd"
include "guard/listenerfilters.pxd"
include "exchange/grpcweb.pxd"
include "exchange/exchange.pxd"
include "exchange/gathered.pxd"
include "exchange/longstreams.pxd"
include "exchange/spares.pxd"
include "h1/server.pxd"
include "h1/places.pxd"
include "h2/outflow.pxd"
include "h2/frames.pxd"
include "h2/server.pxd"
include "h2/holders.pxd"
include "h2/client.pxd"
include "stream/streamrules.pxd"
include "stream/addressbound.pxd"
include "stream/passage.pxd"
include "stream/streamacceptor.pxd"
include "stream/datagrams.pxd"
include "stream/datagramsession.pxd"
include "stream/datagramroom.pxd"


cdef class Engine:
    cdef:
        readonly object loop
        Wheel wheel
        Reactor reactor
        # memory that all connections share: valid during one callback only
        ReadBuffer read_buffer
        uint8_t *path           # normalised path of the request being routed
        uint8_t *scratch        # joined headers, decoded values, unescaped paths
        size_t scratch_size
        Out out                 # the head being written for a client
        Out trailers            # fields behind a response, on their way to a client
        Out h2_out              # frames on their way to a client
        uint8_t *h2_text        # the head of an HTTP/2 request, as it is written; NULL: there was none yet
        ef_h2_pair h2_pairs[512]
        H2Holders h2_holders    # what HTTP/2's clients have of the worker
        Out counter_key         # the key being made for a rate limit
        ef_head request_head
        ef_head response_head
        Gather gather
        Tables tables
        readonly Limiter limiter
        Health health
        Outlier outlier         # where no policy says
        EndpointChecks checks
        object outliers         # ir.OutlierDetection -> Outlier, of those that anybody has
        Prober prober
        readonly Zones zones
        object ask_others       # told of a cluster whose connections are other workers'; None: nobody is there
        # life
        readonly int worker
        object upstream_tls
        readonly object resolver
        Handshakes handshakes
        Trim trim
        size_t copied           # bytes that copies for mirrors hold beyond MIRROR_FREE each (exchange/mirror.pyx)
        dict connections        # Session of each client's connection -> None, oldest first: shares of clients are made in this order
        set old                 # of them, those from before the drain
        set mirrors
        readonly int64_t active         # requests in flight
        dict streams            # Passage -> None: connections that are passed on, oldest first
        set sessions            # DatagramSession
        StreamTables stream_tables
        AddressBounds address_bounds
        AuthCache auth_cache
        ShownBodies shown
        size_t pressing         # answers that are encoded (guard/press.pyx)
        size_t delayed          # requests that wait on purpose (guard/fault.pyx)
        object token_desk       # makes `tokens`; None: the engine does
        object tokens           # TokenDesk: signed tokens; None: nobody has asked for it
        object passwords        # passwords.py: slow hashes, on a thread
        Gathered gathered
        Spares spares
        bint draining
        bint closing
        uint64_t random[2]
        object window           # what a Witness is shown
        Witness idle_request_witness
        Witness idle_response_witness
        # what is seen
        ef_stat *stat
        object stat_view
        ef_stat_row *unmatched
        LogBatch log
        SpanBatch spans
        Clock clock

    cdef inline void count(self, int cell) noexcept:
        ef_stat_add(&self.stat.globals[cell], 1)

    cdef inline void count_n(self, int cell, uint64_t n) noexcept:
        ef_stat_add(&self.stat.globals[cell], n)

    cdef inline void count_down(self, int cell) noexcept:
        ef_stat_sub(&self.stat.globals[cell], 1)

    cdef int release_idle(self, PortTable port, bint outdated) except -1
    cdef object desk(self)
