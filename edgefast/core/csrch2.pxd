# What Cython sees of the HTTP/2 part of csrc/. The headers are the manual; the names here are theirs.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from edgefast.core.csrc cimport ef_head, ef_head_limits


cdef extern from "h2_guard.h" nogil:
    enum:
        EF_H2_ACKS
        EF_H2_SETTINGS


cdef extern from "limits.h" nogil:
    enum:
        EF_H2_STREAMS
        EF_H2_HELD
        EF_H2_HELD_AFTER
        EF_H2_SHARE


cdef extern from "h2_text.h" nogil:
    enum:
        EF_H2_CLOSE
        EF_H2_E_HEAD
        EF_H2_E_VALUE
    ctypedef enum ef_h2_kind "enum ef_h2_kind":
        EF_H2_REQUEST
        EF_H2_RESPONSE
        EF_H2_TRAILERS

    ctypedef struct ef_h2_text:
        uint8_t *buf
        uint32_t room
        uint32_t len
        uint32_t held
        int32_t error
        int32_t status
        uint8_t is_tunnel

    ctypedef struct ef_h2_block:
        const uint8_t *key
        unsigned method
        int ends

    void ef_h2_text_begin(ef_h2_text *text, ef_h2_kind kind, int is_tls, const ef_head_limits *limits, uint8_t *buf)
    int ef_h2_text_field(ef_h2_text *text, const ef_head_limits *limits, const uint8_t *name, size_t name_len, const uint8_t *value,
                         size_t value_len)
    int ef_h2_text_end(ef_h2_text *text, const ef_head_limits *limits, const ef_h2_block *block, ef_head *head)
    const char *ef_h2_error_text(int error)


cdef extern from "h2_lines.h" nogil:
    ctypedef struct ef_h2_pair:
        uint8_t *name
        uint8_t *value
        size_t name_len
        size_t value_len
        uint8_t flags

    int ef_h2_lines_response(uint8_t *text, size_t len, int is_tunnel, ef_h2_pair *pairs, size_t room)
    int ef_h2_lines_request(uint8_t *text, size_t len, int is_tls, int is_tunnel, ef_h2_pair *pairs, size_t room)
    int ef_h2_lines_trailers(uint8_t *text, size_t len, ef_h2_pair *pairs, size_t room)


cdef extern from "h2_guard.h" nogil:
    enum:
        EF_H2_CALM
        EF_H2_B_HEAD
        EF_H2_B_STALL
        EF_H2_B_MEMORY
        EF_H2_B_COUNT
        EF_H2_PREFACE

    ctypedef struct ef_h2_guard:
        uint8_t error

    void ef_h2_guard_begin(ef_h2_guard *guard, uint32_t head_limit, int64_t now_ms)
    void ef_h2_guard_begin_backend(ef_h2_guard *guard, uint32_t head_limit, int64_t now_ms)
    int ef_h2_guard_feed(ef_h2_guard *guard, const uint8_t *data, size_t len, int64_t now_ms)
    int ef_h2_guard_feed_some(ef_h2_guard *guard, const uint8_t *data, size_t *len, unsigned most, int64_t now_ms)
    int ef_h2_guard_stream(ef_h2_guard *guard, int64_t now_ms)
    int ef_h2_guard_reset(ef_h2_guard *guard, int64_t now_ms)
    int ef_h2_guard_refuse(ef_h2_guard *guard, int64_t now_ms)
    void ef_h2_guard_sent(ef_h2_guard *guard, unsigned type, unsigned flags, size_t length, int64_t now_ms)
    const char *ef_h2_breach_name(int breach)
