# Health checks: probes of endpoints. A unit that is compiled on its own; it cimports the fast path (fastpath.pxd), which never cimports it.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *
from edgefast.core.csrcgrpc cimport *
from edgefast.core.csrcbackend cimport *
from edgefast.core.csrch2 cimport *
from edgefast.core.fastpath cimport *

cdef class Prober
cdef class Watch
cdef class Probe
cdef class ProbeSession
cdef class ProbeDial

include "healthcheck/prober.pxd"
