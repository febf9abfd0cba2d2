# TLS: what lies between the bytes of a session and the descriptor. A unit that is compiled on its own; it cimports the fast path (fastpath.pxd), which never cimports it.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport *
from edgefast.core.stream.extension cimport *

cdef class VerifyingKey
cdef class Hasher
cdef class TlsContext
cdef class BackendSession
cdef class BackendSessions
cdef class Handshakes
cdef class TlsWire
cdef class TlsAcceptor
cdef class PendingTlsSession

include "tls/library.pxd"
include "tls/crypto.pxd"
include "tls/context.pxd"
include "tls/backendsessions.pxd"
include "tls/handshakes.pxd"
include "tls/tlswire.pxd"
include "tls/tlsacceptor.pxd"
