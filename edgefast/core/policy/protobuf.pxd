# Protobuf: one field of a Protocol Buffers message, in the caller's bytes.

cdef struct PbField:
    uint32_t number
    int wire                # 0: `value`; 2: `data`; 1 and 5: neither, it is only skipped
    uint64_t value
    const uint8_t *data
    size_t n
