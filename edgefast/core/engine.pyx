# The engine of one worker: what its connections share, and the tables they are served from.
#
# In: applied resources (offsets into the arena), connections from the loop. Out: answers, counters in shared memory, batches of
# access log. It never reads a file, never blocks, and touches no Python object per header. The rest of the request path is included
# below in the order the data flows.

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from posix.strings cimport strncasecmp

import logging
import os
import time
from asyncio import timeout as asyncio_timeout
from collections import deque
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from ssl import SSLError

import msgspec
import re2
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser
from orjson import dumps as json_encode

from edgefast import ir
from edgefast.core.cells import GLOBALS, HEAD_ERRORS, ROW
from edgefast.core.resolver import Resolver

include "consts.pxi"
include "cells.pxi"

cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")  # nobody outside can aim at a hash
cdef uint32_t HASH_USER_AGENT = ef_name_hash(<const uint8_t *>b"user-agent", 10)
cdef uint32_t HASH_REQUEST_HEADERS = ef_name_hash(<const uint8_t *>b"access-control-request-headers", 30)

_log = logging.getLogger("edgefast.engine")
_decode_rule = msgspec.msgpack.Decoder(ir.Rule).decode
_decode_cluster = msgspec.msgpack.Decoder(ir.Cluster).decode
_decode_listener = msgspec.msgpack.Decoder(ir.Listener).decode
_re2_options = re2.Options()
_re2_options.log_errors = False

cdef dict STATUS_LINES = {}


cdef bytes status_line(int status):
    line = STATUS_LINES.get(status)
    if line is None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = ""
        line = STATUS_LINES[status] = f"HTTP/1.1 {status} {phrase}\r\n".encode()
    return line


include "wheel.pyx"
include "headers.pyx"
include "witness.pyx"
include "client.pyx"
include "connection.pyx"
include "cluster.pyx"
include "upstream.pyx"
include "rule.pyx"
include "router.pyx"
include "heads.pyx"
include "exchange.pyx"
include "mirror.pyx"
include "downstream.pyx"
include "accesslog.pyx"


cdef class ReadBuffer:
    """The one buffer that every read goes to."""

    def __cinit__(self, Py_ssize_t size):
        self.data = <uint8_t *>malloc(size)
        self.size = size
        if self.data == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 0, flags)

    def __releasebuffer__(self, Py_buffer *view):
        pass


cdef class Engine:
    """The request path of one worker process.

    loop: a uvloop loop. arena: read-only view of the whole reserved mapping. stats: writable view of this worker's segment
    (csrc/stat.h). upstream_ssl: ir.UpstreamTls -> SSLContext. access_log: takes batches of complete lines and must not block.
    """

    def __cinit__(self, loop, arena, stats, *, int worker, upstream_ssl, access_log):
        cdef Py_buffer view
        cdef size_t size
        self.loop = loop
        self.worker = worker
        self.upstream_ssl = upstream_ssl
        self.access_log = access_log
        self.version = ""
        self.wheel = Wheel(loop)
        self.read_buffer = ReadBuffer(READ_BUFFER)
        self.read_data = self.read_buffer.data
        self.scratch_size = 262144 + 16  # the largest head there can be, and a little
        self.path = <uint8_t *>malloc(self.scratch_size)
        self.scratch = <uint8_t *>malloc(self.scratch_size)
        if self.path == NULL or self.scratch == NULL:
            raise MemoryError
        self.size_piece = -1
        self.arena_view = memoryview(arena)
        PyObject_GetBuffer(self.arena_view, &view, PyBUF_SIMPLE)
        self.arena = <const uint8_t *>view.buf
        self.arena_size = view.len
        PyBuffer_Release(&view)  # the memoryview keeps the mapping
        self.stat_view = memoryview(stats)
        PyObject_GetBuffer(self.stat_view, &view, PyBUF_WRITABLE)
        self.stat = <ef_stat *>view.buf
        size = view.len
        PyBuffer_Release(&view)
        if ef_stat_check(self.stat, size) < 0:
            raise ValueError("stats is not a counter segment")
        for name in ("connections_active", "requests_active", "upstream_connections_active", "tunnels_active"):
            self.stat.globals[GLOBALS.index(name)] = 0  # gauges of a worker that died
        self.unmatched = ef_stat_get(self.stat, <const uint8_t *>b"-\t-", 3)
        self.listeners = {}
        self.ports = {}
        self.clusters = {}
        self.roots = {}
        self.regexes = {}
        if ef_map_init(&self.cluster_places, 64) < 0 or ef_map_init(&self.fragment_places, 16) < 0:
            raise MemoryError
        self.connections = set()
        self.mirrors = set()
        self.tasks = set()
        self.resolver = Resolver(loop)
        seed = os.urandom(16)
        self.random[0] = int.from_bytes(seed[:8], "little") | 1
        self.random[1] = int.from_bytes(seed[8:], "little")
        self.window = Window()
        self.date_second = self.time_second = -1

    def __dealloc__(self):
        free(self.path)
        free(self.scratch)
        free(self.out.data)
        free(self.log.data)
        ef_map_free(&self.cluster_places)
        ef_map_free(&self.fragment_places)

    # --- tables ----------------------------------------------------------------------------------------------------

    def apply(self, changes, str version):
        """Take a set of changes at once, between two requests.

        changes: (op "put" or "del", type, name, offset, length). Returns the refused ones as (type, name, error); what they would
        have replaced stays. Afterwards nothing here reads blobs that were replaced or removed.
        """
        cdef list refused = []
        cdef set torn = set()
        cdef bint rearrange = False
        for op, kind, name, offset, length in changes:
            try:
                if kind == "cluster":
                    self._change_cluster(op, name, offset, length)
                elif kind == "fragment":
                    self._change_fragment(op, name, offset, length)
                    torn.add(name.rsplit("#", 1)[0])
                elif kind == "virtual_host":
                    self._change_host(op, name, offset, length)
                    torn.discard(name)
                elif kind == "listener":
                    self._change_listener(op, name, offset, length)
                    rearrange = True
                else:
                    raise ValueError(f"unknown resource type {kind!r}")
            except (ValueError, OSError, msgspec.MsgspecError) as error:
                self.count(G_RESOURCES_REFUSED)
                refused.append((kind, name, str(error)))
        for name in sorted(torn):  # only fragments changed: the root stays, its pointers do not
            place = self.roots.get(name)
            if place is not None:
                try:
                    self._change_host("put", name, place[0], place[1])
                except ValueError as error:
                    self.count(G_RESOURCES_REFUSED)
                    refused.append(("virtual_host", name, str(error)))
        if rearrange:
            self._arrange_ports()
        if len(self.regexes) > 4096:
            self.regexes.clear()
        self.version = version
        self.count(G_APPLIES)
        return refused

    def _change_cluster(self, str op, str name, uint64_t offset, uint64_t length):
        cdef bytes key = name.encode()
        cdef uint64_t hashed = ef_hash64(SEED, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0)
        cdef uint64_t old
        cdef Cluster live = self.clusters.get(name)
        if op == "del":
            ef_map_del(&self.cluster_places, hashed, &old)
            if live is not None:
                live.update(None)
            return
        if length >= 1 << 24:
            raise ValueError("the cluster is larger than 16 MiB")
        data = self.at(offset, length)[:length]
        if live is not None or b"\xa8hostname" in data:  # names are resolved before the first request asks
            spec = _decode_cluster(data)
            if live is None:
                live = self.clusters[name] = Cluster(self, name)
            live.update(spec)
        if ef_map_put(&self.cluster_places, hashed, offset << 24 | length, &old) < 0:
            raise MemoryError

    def _change_fragment(self, str op, str name, uint64_t offset, uint64_t length):
        cdef bytes key = name.encode()
        cdef uint64_t hashed = ef_hash64(SEED, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0)
        cdef uint64_t old
        cdef int error
        if op == "del":
            ef_map_del(&self.fragment_places, hashed, &old)
            return
        error = ef_table_check(self.at(offset, length), length)
        if error < 0:
            raise ValueError(f"not a table of this format (error {error})")
        if length >= 1 << 24:
            raise ValueError("the fragment is larger than 16 MiB")
        if ef_map_put(&self.fragment_places, hashed, offset << 24 | length, &old) < 0:
            raise MemoryError

    def _change_host(self, str op, str name, uint64_t offset, uint64_t length):
        cdef ListenerTable table
        cdef Host *host
        cdef Host *before
        cdef int error
        listener, _, hostname = name.rpartition("/")
        table = self.listeners.get(listener)
        key = hostname.encode()
        if op == "del":
            if table is not None:
                table.remove(key)
            self.roots.pop(name, None)
            return
        error = ef_table_check(self.at(offset, length), length)
        if error < 0:
            raise ValueError(f"not a table of this format (error {error})")
        if table is None:
            table = self.listeners[listener] = ListenerTable(listener)
        before = table.find(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
        host = self.make_host(name.encode(), offset, length, before)
        table.put(self, key, host)
        if host.vhost.n_fragments > 1:
            self.roots[name] = (offset, length)
        else:
            self.roots.pop(name, None)

    cdef Host *make_host(self, bytes key, uint64_t offset, uint64_t length, Host *before) except NULL:
        cdef const ef_blob *root = <const ef_blob *>self.at(offset, length)
        cdef Host *host
        cdef uint64_t place
        cdef uint32_t i, n = ef_blob_fragments(root)
        cdef size_t key_len
        cdef const uint8_t *own = ef_blob_key(root, &key_len)
        cdef bytes name
        cdef const ef_blob **fragments
        if own[:key_len] != key:
            raise ValueError("the table belongs to another virtual host")
        host = <Host *>calloc(1, sizeof(Host))
        if host == NULL:
            raise MemoryError
        host.vhost.root = root
        host.vhost.n_fragments = n
        if n > 1:
            fragments = <const ef_blob **>calloc(n, sizeof(ef_blob *))
            if fragments == NULL:
                free(host)
                raise MemoryError
            host.vhost.fragments = fragments
            for i in range(n):
                name = b"%b#%d" % (key, i)
                if ef_map_get(
                    &self.fragment_places,
                    ef_hash64(SEED, <const uint8_t *>PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), 0), &place,
                ):
                    fragments[i] = <const ef_blob *>self.at(place >> 24, place & 0xFFFFFF)
                    if ef_blob_fragments(fragments[i]) != n or ef_blob_fragment_index(fragments[i]) != i:
                        free(fragments)
                        free(host)
                        raise ValueError(f"fragment {i} belongs to another cut of this virtual host")
        if before != NULL and before.vhost.root == root:  # rules that were resolved stay resolved
            host.rules = before.rules
            before.rules = NULL
            if before.parts != NULL and before.vhost.n_fragments == n:
                host.parts = <PyObject ***>calloc(n, sizeof(PyObject **))
                if host.parts != NULL:
                    for i in range(n):
                        if before.vhost.fragments[i] == host.vhost.fragments[i]:
                            host.parts[i] = before.parts[i]
                            before.parts[i] = NULL
        return host

    def _change_listener(self, str op, str name, uint64_t offset, uint64_t length):
        cdef ListenerTable table = self.listeners.get(name)
        if op == "del":
            self.listeners.pop(name, None)
            return
        spec = _decode_listener(self.at(offset, length)[:length])
        settings = HttpSettings(spec.http)
        if table is None:
            table = self.listeners[name] = ListenerTable(name)
        table.take(spec, settings)

    def _arrange_ports(self):
        cdef ListenerTable table
        cdef PortTable port
        by_port = {}
        for name in sorted(self.listeners):
            table = self.listeners[name]
            if table.spec is not None:
                by_port.setdefault(table.spec.port, []).append(table)
        for number in by_port.keys() | self.ports.keys():
            port = self.ports.get(number)
            if port is None:
                port = self.ports[number] = PortTable(self, number)
            port.arrange(by_port.get(number, []))

    cdef const uint8_t *at(self, uint64_t offset, uint64_t length) except NULL:
        if offset > self.arena_size or length > self.arena_size - offset:
            raise ValueError("the resource lies outside the arena")
        return self.arena + offset

    cdef Cluster cluster(self, str name):
        """The live cluster of a name; one without endpoints when the table has none."""
        cdef Cluster cluster = self.clusters.get(name)
        cdef bytes key
        cdef uint64_t place
        if cluster is not None:
            return cluster
        cluster = self.clusters[name] = Cluster(self, name)
        key = name.encode()
        if ef_map_get(
            &self.cluster_places, ef_hash64(SEED, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0), &place
        ):
            try:
                spec = _decode_cluster(self.at(place >> 24, place & 0xFFFFFF)[:place & 0xFFFFFF])
                if spec.name == name:
                    cluster.update(spec)
            except (ValueError, OSError) as error:
                _log.error("cluster %s cannot be used: %s", name, error)
        return cluster

    cdef Rule resolve_rule(self, const ef_hit *hit, HttpSettings settings):
        cdef size_t length
        cdef const uint8_t *payload = ef_blob_rule(hit.blob, hit.rule, &length)
        return Rule(self, _decode_rule(payload[:length]), settings)

    cdef object regex(self, bytes pattern):
        compiled = self.regexes.get(pattern)
        if compiled is None:
            compiled = self.regexes[pattern] = re2.compile(pattern, _re2_options)
        return compiled

    # --- connections -----------------------------------------------------------------------------------------------

    def factory(self, int port, bint tls):
        """Protocol factory for loop.create_server; `port` is the listener's port, not the bound one."""
        cdef PortTable table = self.ports.get(port)
        if table is None:
            table = self.ports[port] = PortTable(self, port)
        return lambda: Downstream(self, table, tls)

    def spawn(self, coroutine):
        task = self.loop.create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self._on_task)

    def _on_task(self, task):
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task of the engine failed", exc_info=task.exception())

    def drain(self):
        """From now on answers carry `connection: close`; connections that stay idle are closed after a grace."""
        cdef Downstream down
        self.draining = True
        self.wheel.refresh()
        for down in self.connections:
            if down.exchange is None and down.state == D_HEAD and not down.pending_len and not down.closed:
                self.wheel.disarm(down)
                self.wheel.arm(down, self.wheel.now + 3000)

    def close(self, double after=0.0):
        """The end of a drain: close idle connections now, abort the rest after `after` seconds."""
        cdef Downstream down
        self.draining = self.closing = True
        for down in list(self.connections):
            if down.exchange is None and not down.closed:
                down.shut(False)
        if after > 0 and self.connections:
            self.loop.call_later(after, self._abort_all)
        else:
            self._abort_all()

    def _abort_all(self):
        cdef Downstream down
        cdef Cluster cluster
        cdef Mirror mirror
        for down in list(self.connections):
            down.shut(True)
        for mirror in list(self.mirrors):
            mirror.stop()
        for cluster in list(self.clusters.values()):
            for endpoint in cluster.endpoints:
                for up in list((<Endpoint>endpoint).idle):
                    (<Upstream>up).shut(False)
        for task in list(self.tasks):
            task.cancel()
        self.resolver.close()
        self.log_flush()

    cdef int keep_mirror(self, Mirror mirror) except -1:
        self.mirrors.add(mirror)
        return 0

    cdef int drop_mirror(self, Mirror mirror) except -1:
        self.mirrors.discard(mirror)
        return 0

    @property
    def open_connections(self):
        return len(self.connections)

    cdef Witness request_witness(self):
        cdef Witness witness = self.idle_request_witness
        if witness is not None:
            self.idle_request_witness = None
            return witness
        return Witness(self.window, True)

    cdef Witness response_witness(self):
        cdef Witness witness = self.idle_response_witness
        if witness is not None:
            self.idle_response_witness = None
            return witness
        return Witness(self.window, False)

    # --- one gathered write to a client ----------------------------------------------------------------------------

    cdef void gather_reset(self) noexcept:
        self.n_pieces = 0
        self.gathered = 0
        self.size_piece = -1
        self.chunk_bytes = 0

    cdef int gather(self, Downstream down, const void *data, size_t n) except -1:
        if self.n_pieces >= MAX_IOV:
            self.gather_flush(down)
        self.pieces[self.n_pieces].iov_base = <void *>data
        self.pieces[self.n_pieces].iov_len = n
        self.n_pieces += 1
        self.gathered += n
        return 0

    cdef int gather_chunked(self, Downstream down, const uint8_t *data, size_t n) except -1:
        if self.n_pieces >= MAX_IOV:
            self.gather_flush(down)
        if self.size_piece < 0:
            self.size_piece = self.n_pieces
            self.n_pieces += 1
        self.chunk_bytes += n
        return self.gather(down, data, n) if self.n_pieces < MAX_IOV else self._gather_last(data, n)

    cdef int _gather_last(self, const uint8_t *data, size_t n) except -1:
        self.pieces[self.n_pieces].iov_base = <void *>data
        self.pieces[self.n_pieces].iov_len = n
        self.n_pieces += 1
        self.gathered += n
        return 0

    cdef void close_chunk(self) noexcept:
        """All body pieces so far become one chunk: fill in its size line, add the end of line."""
        cdef Out line
        if self.size_piece < 0:
            return
        line.data = self.size_line
        line.size = 0
        line.cap = sizeof(self.size_line)
        out_hex(&line, self.chunk_bytes)
        out_raw(&line, <const char *>b"\r\n", 2)
        self.pieces[self.size_piece].iov_base = self.size_line
        self.pieces[self.size_piece].iov_len = line.size
        self.pieces[self.n_pieces].iov_base = <void *><const char *>b"\r\n"
        self.pieces[self.n_pieces].iov_len = 2
        self.n_pieces += 1
        self.gathered += line.size + 2
        self.size_piece = -1
        self.chunk_bytes = 0

    cdef int gather_last_chunk(self, Downstream down) except -1:
        self.close_chunk()
        self.pieces[self.n_pieces].iov_base = <void *><const char *>b"0\r\n\r\n"
        self.pieces[self.n_pieces].iov_len = 5
        self.n_pieces += 1
        self.gathered += 5
        return 0

    cdef int gather_flush(self, Downstream down) except -1:
        cdef int n
        cdef size_t total
        self.close_chunk()
        n = self.n_pieces
        total = self.gathered
        self.gather_reset()
        if n == 0:
            return 0
        self.count_n(G_DOWNSTREAM_BYTES_SENT, total)
        return down.sendv(self.pieces, n, total)

    # --- clocks and logs -------------------------------------------------------------------------------------------

    cdef int64_t now_us(self) noexcept:
        cdef timespec ts
        clock_gettime(CLOCK_MONOTONIC, &ts)
        return <int64_t>ts.tv_sec * 1000000 + ts.tv_nsec // 1000

    cdef bytes date_line(self):
        cdef timespec ts
        clock_gettime(CLOCK_REALTIME, &ts)
        if ts.tv_sec != self.date_second:
            self.date_second = ts.tv_sec
            moment = time.gmtime(ts.tv_sec)
            self.date_cache = b"date: %b\r\n" % (
                f"{_DAYS[moment.tm_wday]}, {moment.tm_mday:02d} {_MONTHS[moment.tm_mon - 1]} {moment.tm_year:04d} "
                f"{moment.tm_hour:02d}:{moment.tm_min:02d}:{moment.tm_sec:02d} GMT"
            ).encode()
            self.server_cache = b"server: edgefast\r\n" + self.date_cache
        return self.date_cache

    cdef bytes server_and_date(self):
        self.date_line()
        return self.server_cache

    cdef int log_time(self, Out *out) except -1:
        cdef timespec ts
        clock_gettime(CLOCK_REALTIME, &ts)
        if ts.tv_sec != self.time_second:
            self.time_second = ts.tv_sec
            self.time_cache = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(ts.tv_sec)).encode()
        out_bytes(out, self.time_cache)
        cdef int ms = ts.tv_nsec // 1000000
        out.data[out.size] = <uint8_t>(48 + ms // 100)
        out.data[out.size + 1] = <uint8_t>(48 + ms // 10 % 10)
        out.data[out.size + 2] = <uint8_t>(48 + ms % 10)
        out.data[out.size + 3] = c"Z"
        out.size += 4
        return 0

    cdef int log_written(self) except -1:
        self.count(G_ACCESS_LOG_LINES)
        if self.log.size >= LOG_BATCH:
            self.log_flush()
        elif not self.log_scheduled:
            self.log_scheduled = True
            self.loop.call_later(LOG_FLUSH_MS / 1000.0, self._on_log_timer)
        return 0

    def _on_log_timer(self):
        self.log_scheduled = False
        self.log_flush()

    def log_flush(self):
        """Hand over what has been logged so far."""
        if self.log.size:
            batch = PyBytes_FromStringAndSize(<char *>self.log.data, self.log.size)
            self.log.size = 0
            self.access_log(batch)

    def dump(self):
        """What is applied, with live numbers."""
        cdef ListenerTable table
        cdef Cluster cluster
        return {
            "version": self.version,
            "connections": len(self.connections),
            "active": self.active,
            "listeners": [
                {
                    "name": table.name,
                    "port": table.spec.port if table.spec is not None else None,
                    "hostname": table.hostname.decode(),
                    "virtual_hosts": [
                        {"name": name, "rules": rules, "fragments": fragments}
                        for name, rules, fragments in table.virtual_hosts()
                    ],
                }
                for table in self.listeners.values()
            ],
            "clusters": [cluster.dump() for cluster in self.clusters.values()],
        }


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _check_cells():
    """The numbers in cells.pxi are the places in cells.py, and its head errors are the scan's."""
    expected = {
        G_CONNECTIONS_TOTAL: "connections_total",
        G_UPSTREAM_PROTOCOL_ERRORS: "upstream_protocol_errors",
        G_TUNNELS_ACTIVE: "tunnels_active",
        G_PATH_REFUSED: "path_refused",
        G_HEAD_REFUSED: "head_refused_" + HEAD_ERRORS[0],
    }
    rows = {C_ABORTED: "requests_aborted", C_RETRIES: "retries", C_BUCKETS: "duration_bucket_0"}
    names = tuple(ef_head_error_name(i).decode() for i in range(1, EF_E_COUNT))
    if any(GLOBALS[i] != name for i, name in expected.items()) or any(ROW[i] != name for i, name in rows.items()):
        raise ImportError("edgefast/core/cells.pxi does not fit cells.py")
    if names != HEAD_ERRORS:
        raise ImportError(f"edgefast/core/cells.py HEAD_ERRORS does not fit csrc/head.h: {names}")


_check_cells()
