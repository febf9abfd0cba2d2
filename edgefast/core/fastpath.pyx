# Fast path: what every request passes: sockets, HTTP/1.1, routes, limits, exchanges, connections to backends.
#
# In: applied resources (offsets into the arena), bytes of clients and backends. Out: answers, counters in shared memory.
# It never reads a file, never blocks, and touches no Python object per header. The files are included below, folder by folder, in the order
# of the data flow (ARCHITECTURE.md, "The path of a request"). Policies, HTTP/2, layer 4, telemetry, health checks and TLS are units of their
# own: hooks.pxd declares what is called of them.

include "imports.pxi"
include "cold.pxi"
include "core/consts.pxi"
include "net/consts.pxi"
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
# what the units implement
include "hooks.pyx"
# what clients share
include "share/client_share.pyx"
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
# a rule for its request
include "route/router.pyx"
include "route/location_template.pyx"
include "route/rule.pyx"
include "route/tables.pyx"
# traffic policies
include "head/headernames.pyx"
include "traffic/override.pyx"
include "traffic/compress.pyx"
include "traffic/bandwidth.pyx"
include "traffic/cookies.pyx"
include "traffic/hashpolicy.pyx"
include "traffic/sessionpolicy.pyx"
include "traffic/traffic.pyx"
# limits that count it
include "limit/limit.pyx"
include "limit/check.pyx"
include "limit/exhausted.pyx"
include "limit/dispatcher.pyx"
include "limit/limiter.pyx"
# the request itself
include "exchange/clientaddress.pyx"
include "exchange/clientcheck.pyx"
include "exchange/target.pyx"
include "exchange/grpc.pxi"
include "exchange/failures.pyx"
include "exchange/cors.pyx"
include "exchange/retry_state.pyx"
include "exchange/outlier_report.pyx"
include "exchange/attempts.pyx"
include "exchange/longstreams.pyx"
include "exchange/body_buffer.pyx"
include "exchange/body.pyx"
include "exchange/decision.pyx"
include "exchange/eviction.pyx"
include "exchange/record.pyx"
include "exchange/exchange.pyx"
include "exchange/mirror.pyx"
include "exchange/freelist.pyx"
# heads as they leave
include "head/headerops.pyx"
include "head/substitution.pyx"
include "head/pathpattern.pyx"
include "head/responserewrite.pyx"
include "head/trailers.pyx"
include "head/certificateheaders.pyx"
include "head/forwardedheaders.pyx"
include "head/requesthead.pyx"
include "head/responsehead.pyx"
# a backend
include "upstream/includes.pxi"
include "exchange/outbound.pyx"
include "h1/requester.pyx"
include "h1/client.pyx"


cdef class Engine:
    def __dealloc__(self):
        free(self.path)
        free(self.scratch)
        free(self.out.data)
        free(self.trailers.data)
        free(self.h2_out.data)
        free(self.h2_text)
        free(self.counter_key.data)
        free(self.host_head.data)

    cdef int release_idle(self, PortTable port, bint outdated) except -1:
        """Close idle connections after a grace period for a last request; port None: all of them. `outdated`: see Session.retire."""
        raise NotImplementedError
