# What Cython sees of the part of csrc/ that is about gRPC. The headers are the manual; the names here are theirs.

from libc.stdint cimport int64_t, uint8_t


cdef extern from "grpc.h" nogil:
    enum:
        EF_GRPC
        EF_GRPC_WEB_TEXT

    int64_t ef_grpc_timeout(const uint8_t *value, size_t len)
    int ef_grpc_status(const uint8_t *value, size_t len)


cdef extern from "base64.h" nogil:
    ctypedef struct ef_base64:
        pass

    size_t EF_BASE64_BYTES(size_t n)
    size_t EF_BASE64_CHARS(size_t n)
    int64_t ef_base64_decode(ef_base64 *state, const uint8_t *text, size_t len, uint8_t *out)
    int ef_base64_whole(const ef_base64 *state)
    void ef_base64_encode(const uint8_t *data, size_t len, uint8_t *out)
