# Telemetry: access log lines and spans. A unit that is compiled on its own; it cimports the fast path (fastpath.pxd), which never cimports it.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport *
from edgefast.core.stream.extension cimport *

cdef class TimeForm
cdef class LogProgram
cdef class LogBatch
cdef class SpanBatch
cdef class Telemetry

include "telemetry/logprogram.pxd"
include "telemetry/accesslog.pxd"
include "telemetry/span.pxd"
include "telemetry/observer.pxd"
