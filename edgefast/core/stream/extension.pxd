# Layer 4: connections and datagrams that are passed on unread. A unit that is compiled on its own; it cimports the fast path (fastpath.pxd), which never cimports it.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport *

include "stream/kernel.pxi"

cdef class StreamShare
cdef class StreamRule
cdef class StreamListener
cdef class StreamPort
cdef class StreamTables
cdef class AddressBounds
cdef class TcpProxySide
cdef class TcpProxyDownstream
cdef class TcpProxyUpstream
cdef class TcpProxyDial
cdef class TcpProxyShare
cdef class TcpProxy
cdef class StreamAcceptor
cdef class DatagramPort
cdef class DatagramSession
cdef class UdpSessionLimit

include "stream/streamrules.pxd"
include "stream/addressbound.pxd"
include "stream/tcp_proxy.pxd"
include "stream/streamacceptor.pxd"
include "stream/datagrams.pxd"
include "stream/datagramsession.pxd"
include "stream/udp_session_limit.pxd"
