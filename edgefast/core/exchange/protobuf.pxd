# Protobuf: one field of a Protocol Buffers message, in the caller's bytes.

cdef enum:
    PB_MALFORMED = -1
    PB_UNFINISHED = -2      # more of it has to come


cdef struct PbField:
    uint32_t number
    int wire_type                # 0: `value`; 2: `data`; 1 and 5: neither, it is only skipped
    uint64_t value
    const uint8_t *data
    size_t n

cdef int64_t pb_next(const uint8_t *data, size_t n, size_t at, PbField *field) noexcept

cdef size_t pb_size(uint64_t value) noexcept

cdef void pb_put(Out *out, uint64_t value) noexcept

cdef int pb_number(Out *out, int number, int64_t value) except -1

cdef int pb_begin(Out *out, int number, size_t n) except -1

cdef int pb_text(Out *out, int number, bytes text) except -1

cdef bytes pb_string(bytes text)
