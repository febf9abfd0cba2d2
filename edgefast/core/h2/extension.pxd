# HTTP/2: connections of clients and of backends. A unit that is compiled on its own; it cimports the fast path (fastpath.pxd), which never cimports it.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport *
from edgefast.core.nghttp2 cimport *

cdef class H2Frames
cdef class H2Responder
cdef class H2Stream
cdef class H2Server
cdef class H2ClientUsage
cdef class H2Clients
cdef class H2MemoryBudget
cdef class H2Requester
cdef class H2Call
cdef class H2Client
cdef class Http2

include "h2/outflow.pxd"
include "h2/frames.pxd"
include "h2/server.pxd"
include "h2/memory_budget.pxd"
include "h2/client.pxd"
include "h2/http2.pxd"
