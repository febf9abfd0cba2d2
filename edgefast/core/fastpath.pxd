# The class diagram of the fast path: one extension module, one .pxd for each concept. All are included here because the classes refer to
# each other. What needs no part of it in each request is compiled in units of its own (hooks.pxd).

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy
from posix.strings cimport strncasecmp

from edgefast.core.csrc cimport *

include "net/kernel.pxi"

from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.nghttp2 cimport *

cdef class Engine
cdef class Reactor
cdef class LogFormat
cdef class Observer
cdef class TlsClientWire
cdef class TlsHooks
cdef class MultiplexedSession
cdef class Http2Hooks
cdef class StreamHooks
cdef class CheckHooks
cdef class Fault
cdef class ErrorService
cdef class PolicyHooks
cdef class Connection
cdef class Tables
cdef class Gather
cdef class Clock
cdef class Trim
cdef class Trace
cdef class LogCapture
cdef class Session
cdef class Peer
cdef class Inbound
cdef class Outbound
cdef class H1Client
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
cdef class UpstreamUser
cdef class Identities
cdef class SessionPolicy
cdef class NamedSession
cdef class FairQueue
cdef class ClientEntry
cdef class ClientShare
cdef class LongStreams
cdef class ConnectionShare
cdef class EvictionHeap
cdef class BodyShare
cdef class AnswerShare
cdef class Body
cdef class RetryState
cdef class BodyBuffer
cdef class Freelist
cdef class Rule
cdef class Backend
cdef class HttpSettings
cdef class ListenerTable
cdef class PortTable
cdef class ParserCheck
cdef class HeaderOps
cdef class HeaderNames
cdef class CertificateHeaders
cdef class ClientCheck
cdef class Policy
cdef class PolicyChain
cdef class ConnectionPolicies
cdef class Traffic
cdef class PathPattern
cdef class AuthResponse
cdef class AuthFlow
cdef class ListenerFilters
cdef class Limit
cdef class LimitDecision
cdef class Check
cdef class Dispatcher
cdef class Limiter

include "loop/wheel.pxd"
include "loop/clock.pxd"
include "loop/trim.pxd"
include "head/out.pxd"
include "head/headerops.pxd"
include "head/substitution.pxd"
include "head/pathpattern.pxd"
include "head/responserewrite.pxd"
include "head/forwardedheaders.pxd"
include "net/readbuffer.pxd"
include "net/inetaddr.pxd"
include "net/address.pxd"
include "net/bytequeue.pxd"
include "net/end.pxd"
include "net/wire.pxd"
include "net/reactor.pxd"
include "net/peer.pxd"
include "head/certificateheaders.pxd"
include "net/session.pxd"
include "net/connect_callback.pxd"
include "net/outgoing.pxd"
include "net/connection.pxd"
include "net/preamble.pxd"
include "net/dial.pxd"
include "net/acceptor.pxd"
include "h1/portacceptor.pxd"
include "h1/parser_check.pxd"
include "h1/gather.pxd"
include "exchange/cut.pxd"
include "exchange/inbound.pxd"
include "exchange/outbound.pxd"
include "exchange/routed.pxd"
include "hooks.pxd"
include "share/client_share.pxd"
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
include "upstream/fair_queue.pxd"
include "upstream/eviction_heap.pxd"
include "upstream/bodyshare.pxd"
include "upstream/answershare.pxd"
include "upstream/fair_share_eviction.pxd"
include "upstream/cluster.pxd"
include "upstream/sweep.pxd"
include "h1/client.pxd"
include "upstream/protocol_negotiation.pxd"
include "upstream/pooldial.pxd"
include "route/location_template.pxd"
include "route/rule.pxd"
include "exchange/clientcheck.pxd"
include "route/router.pxd"
include "route/tables.pxd"
include "limit/limit.pxd"
include "limit/check.pxd"
include "limit/exhausted.pxd"
include "limit/dispatcher.pxd"
include "limit/limiter.pxd"
include "head/headernames.pxd"
include "traffic/override.pxd"
include "traffic/compress.pxd"
include "traffic/bandwidth.pxd"
include "traffic/hashpolicy.pxd"
include "traffic/sessionpolicy.pxd"
include "traffic/traffic.pxd"
include "exchange/grpcweb.pxd"
include "exchange/transition.pxd"
include "exchange/body.pxd"
include "exchange/retry_state.pxd"
include "exchange/exchange.pxd"
include "exchange/body_buffer.pxd"
include "exchange/longstreams.pxd"
include "exchange/freelist.pxd"
include "h1/server.pxd"
include "h1/connection_limit.pxd"

include "head/requesthead.pxd"
include "head/responsehead.pxd"
include "h1/upgrade.pxd"
include "h1/responder.pxd"
include "upstream/checkout.pxd"
include "upstream/choice.pxd"
include "traffic/cookies.pxd"
include "exchange/protobuf.pxd"
include "exchange/grpc.pxd"


# What the parts of one worker share. edgefast.core.engine.Engine completes it.
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
        Out counter_key         # the key being made for a rate limit
        Out host_head           # an HTTP/1.0 head with the Host that it lacked
        ef_head request_head
        ef_head response_head
        Gather gather
        Tables tables
        readonly Limiter limiter
        Health health
        Outlier outlier         # where no policy says
        EndpointChecks checks
        object outliers         # ir.OutlierDetection -> Outlier, of those that anybody has
        CheckHooks prober
        readonly Zones zones
        object ask_others       # told of a cluster whose connections are other workers'; None: nobody is there
        # life
        readonly int worker
        object upstream_tls
        readonly object resolver
        TlsHooks handshakes
        Trim trim
        size_t copied           # bytes that copies for mirrors hold beyond MIRROR_FREE each (exchange/mirror.pyx)
        dict connections        # Session of each client's connection -> None, oldest first: shares of clients are made in this order
        set old                 # of them, those from before the drain
        set mirrors
        readonly int64_t active         # requests in flight
        dict streams            # TcpProxy -> None: connections that are passed on, oldest first
        set sessions            # DatagramSession
        StreamHooks stream_tables
        PolicyHooks policies
        Http2Hooks http2
        Observer observer
        size_t compressing         # answers that are encoded (policy/compress.pyx)
        size_t delayed          # requests that wait on purpose (policy/fault.pyx)
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
        Clock clock

    cdef inline void count(self, int cell) noexcept:
        ef_stat_add(&self.stat.globals[cell], 1)

    cdef inline void count_n(self, int cell, uint64_t n) noexcept:
        ef_stat_add(&self.stat.globals[cell], n)

    cdef inline void count_down(self, int cell) noexcept:
        ef_stat_sub(&self.stat.globals[cell], 1)

    cdef int release_idle(self, PortTable port, bint outdated) except -1
