# The class diagram of the request path. One extension module, one .pxd per concept, all included here because the classes
# refer to each other.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from edgefast.core.csrc cimport *

cdef class Engine
cdef class Connection
cdef class Upstream
cdef class Downstream
cdef class Exchange
cdef class Mirror
cdef class Endpoint
cdef class Cluster
cdef class UpstreamUser
cdef class Rule
cdef class Backend
cdef class HttpSettings
cdef class ListenerTable
cdef class PortTable
cdef class Witness
cdef class HeaderOps

include "wheel.pxd"
include "headers.pxd"
include "witness.pxd"
include "connection.pxd"
include "cluster.pxd"
include "upstream.pxd"
include "rule.pxd"
include "router.pxd"
include "exchange.pxd"
include "downstream.pxd"


cdef class Engine:
    cdef:
        readonly object loop
        Wheel wheel
        # memory that all connections share: valid during one callback only
        ReadBuffer read_buffer
        uint8_t *read_data
        uint8_t *path           # normalised path of the request being routed
        uint8_t *scratch        # joined headers, decoded values, unescaped paths
        size_t scratch_size
        Out out                 # the head being written for a client
        ef_head request_head
        ef_head response_head
        # one gathered write to one client
        iovec pieces[40]
        int n_pieces
        size_t gathered
        int size_piece          # the piece that will hold the chunk's size line; -1: none open
        size_t chunk_bytes
        uint8_t size_line[20]
        # the tables
        const uint8_t *arena
        size_t arena_size
        object arena_view
        dict listeners          # name -> ListenerTable
        dict ports              # number -> PortTable
        dict clusters           # name -> Cluster, only those in use
        dict roots              # name -> (offset, length) of virtual hosts that are cut into fragments
        ef_map cluster_places   # hash of name -> place (offset << 24 | length)
        ef_map fragment_places
        dict regexes            # pattern -> compiled
        readonly str version
        # life
        readonly int worker
        object upstream_ssl
        readonly object resolver
        set connections
        set mirrors
        set tasks
        readonly int64_t active         # requests in flight
        int64_t retrying
        bint draining
        bint closing
        uint64_t random[2]
        Window window
        Witness idle_request_witness
        Witness idle_response_witness
        # what is seen
        ef_stat *stat
        object stat_view
        ef_stat_row *unmatched
        object access_log
        Out log
        bint log_scheduled
        bytes date_cache
        bytes server_cache
        int64_t date_second
        bytes time_cache
        int64_t time_second

    cdef inline void count(self, int cell) noexcept:
        ef_stat_add(&self.stat.globals[cell], 1)

    cdef inline void count_n(self, int cell, uint64_t n) noexcept:
        ef_stat_add(&self.stat.globals[cell], n)

    cdef inline void count_down(self, int cell) noexcept:
        ef_stat_sub(&self.stat.globals[cell], 1)

    cdef int64_t now_us(self) noexcept
    cdef bytes date_line(self)
    cdef bytes server_and_date(self)
    cdef int log_time(self, Out *out) except -1
    cdef int log_written(self) except -1
    cdef void gather_reset(self) noexcept
    cdef int gather(self, Downstream down, const void *data, size_t n) except -1
    cdef int gather_chunked(self, Downstream down, const uint8_t *data, size_t n) except -1
    cdef int gather_last_chunk(self, Downstream down) except -1
    cdef int gather_flush(self, Downstream down) except -1
    cdef void close_chunk(self) noexcept
    cdef int _gather_last(self, const uint8_t *data, size_t n) except -1
    cdef Witness request_witness(self)
    cdef Witness response_witness(self)
    cdef Cluster cluster(self, str name)
    cdef Rule resolve_rule(self, const ef_hit *hit, HttpSettings settings)
    cdef object regex(self, bytes pattern)
    cdef int keep_mirror(self, Mirror mirror) except -1
    cdef int drop_mirror(self, Mirror mirror) except -1
    cdef const uint8_t *at(self, uint64_t offset, uint64_t length) except NULL
    cdef Host *make_host(self, bytes key, uint64_t offset, uint64_t length, Host *before) except NULL


cdef class ReadBuffer:
    cdef:
        uint8_t *data
        Py_ssize_t size
