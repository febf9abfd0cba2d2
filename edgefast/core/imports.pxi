# What all rooms of the engine use of Python, C and the packages beside it.

cimport cython
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory, PyMemoryView_GET_BUFFER
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.errno cimport EADDRNOTAVAIL, EAGAIN, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, errno
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset, strcmp, strlen
from posix.strings cimport strncasecmp

import logging
import os
from mmap import mmap
import re
import time
from base64 import b64encode
from binascii import a2b_base64
from collections import OrderedDict, deque
from http import HTTPStatus
from hashlib import blake2b, sha1, sha256
from heapq import heapify, heappop, heappush, heapreplace
from ipaddress import ip_address, ip_network
from itertools import islice, product
from sys import getsizeof
from urllib.parse import unquote_to_bytes
from weakref import WeakValueDictionary

import msgspec
import re2
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser
from msgspec.structs import astuple
from orjson import dumps as json_encode

from edgefast import ir
from edgefast.core.cells import BACKEND, BACKEND_TLS_FAILURES, GAUGES, GLOBALS, GRPC_STATUSES, HANDSHAKE_FAILURES, HEAD_ERRORS, HTTP2_BREACHES, LIMIT, MIRROR_DROPS, POLICY, ROW, STREAM_REFUSED
from edgefast.core.policy.encoding import choose_encoding, make_encoder
from edgefast.auth.htpasswd import find_decoys, is_quick, verify
from edgefast.netaddr import why_reserved
from edgefast.local_address import is_local
from edgefast.core.upstream.resolver import Resolver
from edgefast.diagnostics.redact import is_credential
from edgefast.auth.jwt.claim_access import has_access
from edgefast.auth.jwt.outcome import Outcome as TokenOutcome
