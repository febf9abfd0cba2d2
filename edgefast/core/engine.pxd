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
cdef class LogCapture
cdef class LogProgram
cdef class Session
cdef class Peer
cdef class Inbound
cdef class Outbound
cdef class H1Client
cdef class H2Frames
cdef class H2Server
cdef class H2ClientUsage
cdef class H2MemoryBudget
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
cdef class ZoneWeights
cdef class ZoneRanges
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
cdef class ClientQueue
cdef class FairQueue
cdef class ClientEntry
cdef class ClientShare
cdef class LongStreams
cdef class ConnectionShare
cdef class EvictionHeap
cdef class BodyShare
cdef class BodyClient
cdef class AnswerShare
cdef class RequestBody
cdef class BodyBuffer
cdef class Freelist
cdef class Rule
cdef class Backend
cdef class HttpSettings
cdef class ListenerTable
cdef class PortTable
cdef class ParserCheck
cdef class HeaderOps
cdef class Policy
cdef class PolicyChain
cdef class Access
cdef class Traffic
cdef class PathPattern
cdef class AuthService
cdef class AuthCall
cdef class AuthEdits
cdef class AuthResponse
cdef class AuthFlow
cdef class ListenerFilters
cdef class AuthBodyOwner
cdef class AuthBodyBuffer
cdef class Limit
cdef class LimitDecision
cdef class Check
cdef class Dispatcher
cdef class Limiter
cdef class TcpProxy
cdef class TcpProxyShare
cdef class TcpProxySide
cdef class TcpProxyDownstream
cdef class TcpProxyUpstream
cdef class StreamListener
cdef class StreamRule
cdef class StreamPort
cdef class DatagramSession
cdef class UdpSessionLimit

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
include "net/connect_callback.pxd"
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
include "h1/parser_check.pxd"
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
include "upstream/heap.pxd"
include "upstream/clientshare.pxd"
include "upstream/client_queue.pxd"
include "upstream/fair_queue.pxd"
include "upstream/eviction_heap.pxd"
include "upstream/bodyshare.pxd"
include "upstream/answershare.pxd"
include "upstream/fair_share_eviction.pxd"
include "upstream/cluster.pxd"
include "upstream/sweep.pxd"
include "upstream/prober.pxd"
include "h1/client.pxd"
include "upstream/protocol_negotiation.pxd"
include "upstream/pooldial.pxd"
include "route/rule.pxd"
include "telemetry/logprogram.pxd"
include "route/router.pxd"
include "route/tables.pxd"
include "telemetry/accesslog.pxd"
include "telemetry/span.pxd"
include "limit/limit.pxd"
include "limit/check.pxd"
include "limit/exhausted.pxd"
include "limit/dispatcher.pxd"
include "limit/limiter.pxd"
include "exchange/routed.pxd"
include "policy/headernames.pxd"
include "policy/credential_extractor.pxd"
include "policy/tokencache.pxd"
include "policy/authenticator.pxd"
include "policy/access.pxd"
include "policy/fault.pxd"
include "policy/override.pxd"
include "policy/compress.pxd"
include "policy/hashpolicy.pxd"
include "policy/sessionpolicy.pxd"
include "policy/traffic.pxd"
include "policy/protobuf.pxd"
include "policy/check_response.pxd"
include "policy/authedits.pxd"
include "policy/authcache.pxd"
include "policy/authservice.pxd"
include "policy/authcall.pxd"
include "policy/check_call.pxd"
include "policy/auth_body_buffer.pxd"
include "policy/auth_flow.pxd"
include "policy/policy_chain.pxd"
include "policy/listenerfilters.pxd"
include "exchange/grpcweb.pxd"
include "exchange/exchange.pxd"
include "exchange/body_buffer.pxd"
include "exchange/longstreams.pxd"
include "exchange/freelist.pxd"
include "h1/server.pxd"
include "h1/connection_limit.pxd"
include "h2/outflow.pxd"
include "h2/frames.pxd"
include "h2/server.pxd"
include "h2/memory_budget.pxd"
include "h2/client.pxd"
include "stream/streamrules.pxd"
include "stream/addressbound.pxd"
include "stream/tcp_proxy.pxd"
include "stream/streamacceptor.pxd"
include "stream/datagrams.pxd"
include "stream/datagramsession.pxd"
include "stream/udp_session_limit.pxd"


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
        H2MemoryBudget h2_memory    # what HTTP/2's clients have of the worker
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
        dict streams            # TcpProxy -> None: connections that are passed on, oldest first
        set sessions            # DatagramSession
        StreamTables stream_tables
        AddressBounds address_bounds
        AuthCache auth_cache
        AuthBodyBuffer auth_bodies
        size_t compressing         # answers that are encoded (policy/compress.pyx)
        size_t delayed          # requests that wait on purpose (policy/fault.pyx)
        object make_token_verifier       # makes `tokens`; None: the engine does
        object tokens           # TokenVerifier: signed tokens; None: nobody has asked for it
        object passwords        # passwords.py: slow hashes, on a thread
        BodyBuffer body_buffer
        Freelist freelist
        bint draining
        bint closing
        uint64_t random[2]
        object window           # what a ParserCheck is shown
        ParserCheck idle_request_check
        ParserCheck idle_response_check
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
    cdef object get_token_verifier(self)
