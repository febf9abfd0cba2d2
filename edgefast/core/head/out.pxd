# A growing buffer of bytes.

cdef struct Out:
    uint8_t *data
    size_t size, cap


cdef int out_grow(Out *out, size_t more) except -1
cdef void out_free(Out *out) noexcept


cdef inline int out_reserve(Out *out, size_t more) except -1:
    return out_grow(out, more) if out.size + more > out.cap else 0


cdef inline void out_raw(Out *out, const void *data, size_t n) noexcept:
    memcpy(out.data + out.size, data, n)
    out.size += n


cdef inline void out_bytes(Out *out, bytes data) noexcept:
    out_raw(out, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef inline void out_number(Out *out, uint64_t value) noexcept:
    cdef uint8_t digits[20]
    cdef int n = 20
    while True:
        n -= 1
        digits[n] = <uint8_t>(48 + value % 10)
        value //= 10
        if value == 0:
            break
    out_raw(out, digits + n, 20 - n)


cdef inline void out_hex(Out *out, uint64_t value) noexcept:
    cdef uint8_t digits[16]
    cdef int n = 16
    while True:
        n -= 1
        digits[n] = b"0123456789abcdef"[value & 15]
        value >>= 4
        if value == 0:
            break
    out_raw(out, digits + n, 16 - n)


cdef inline void write_hex(uint8_t *to, const uint8_t *data, int n) noexcept:
    cdef int i
    for i in range(n):
        to[2 * i] = b"0123456789abcdef"[data[i] >> 4]
        to[2 * i + 1] = b"0123456789abcdef"[data[i] & 15]


cdef inline void put_hex(Out *out, const uint8_t *data, int n) noexcept:
    write_hex(<uint8_t *>out.data + out.size, data, n)
    out.size += 2 * n
