# The classes of the socket layer, declared as in edgefast/core/fastpath.pxd.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *

include "net/kernel.pxi"

cdef class Reactor
cdef class Session
cdef class Connection

include "loop/wheel.pxd"
include "net/readbuffer.pxd"
include "net/address.pxd"
include "net/bytequeue.pxd"
include "net/end.pxd"
include "net/wire.pxd"
include "net/reactor.pxd"
include "net/session.pxd"
include "net/connect_callback.pxd"
include "net/outgoing.pxd"
include "net/connection.pxd"
include "net/acceptor.pxd"
include "net/dial.pxd"
