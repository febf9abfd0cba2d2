# Protobuf: the Protocol Buffers wire_type format of authorization messages (check_request.pyx, check_response.pyx).
#
# In: untrusted bytes, numbers and bytes to write. Out: one field after the other, bytes. A length is checked before its content; groups,
# which no message here has, are invalid.
# Must never read past the end, or take a part of a field for all of it.
# Source: protobuf.dev/programming-guides/encoding.

cdef int64_t pb_varint(const uint8_t *data, size_t n, size_t at, uint64_t *value) noexcept:
    """Where it ends, or PB_*."""
    cdef int shift = 0
    cdef uint64_t found = 0
    while at < n:
        if shift == 63 and data[at] > 1:
            return PB_MALFORMED
        found |= <uint64_t>(data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            value[0] = found
            return <int64_t>at
        shift += 7
    return PB_UNFINISHED


cdef int64_t pb_next(const uint8_t *data, size_t n, size_t at, PbField *field) noexcept:
    """Read the field that begins there. Returns where the next one does, or PB_*."""
    cdef uint64_t tag
    cdef int64_t place = pb_varint(data, n, at, &tag)
    if place < 0:
        return place
    if tag >> 32 or tag < 8:
        return PB_MALFORMED
    field.number = <uint32_t>(tag >> 3)
    field.wire_type = <int>(tag & 7)
    field.data = NULL
    field.n = 0
    if field.wire_type == 0:
        return pb_varint(data, n, <size_t>place, &field.value)
    if field.wire_type == 1:
        field.n = 8
    elif field.wire_type == 5:
        field.n = 4
    elif field.wire_type == 2:
        place = pb_varint(data, n, <size_t>place, &tag)
        if place < 0:
            return place
        if tag > 0x7FFFFFFF:
            return PB_MALFORMED
        field.n = <size_t>tag
        field.data = data + place
    else:
        return PB_MALFORMED
    return place + <int64_t>field.n if field.n <= n - <size_t>place else PB_UNFINISHED


cdef size_t pb_size(uint64_t value) noexcept:
    """Bytes of a varint."""
    cdef size_t n = 1
    while value > 127:
        value >>= 7
        n += 1
    return n


cdef void pb_put(Out *out, uint64_t value) noexcept:
    """A varint; ten bytes are reserved."""
    while value > 127:
        out.data[out.size] = <uint8_t>(value & 127 | 128)
        out.size += 1
        value >>= 7
    out.data[out.size] = <uint8_t>value
    out.size += 1


cdef int pb_number(Out *out, int number, int64_t value) except -1:
    """A field of a number below 16; 0 is not written, as nobody would."""
    if value:
        out_reserve(out, 16)
        pb_put(out, <uint64_t>number << 3)
        pb_put(out, <uint64_t>value)
    return 0


cdef int pb_begin(Out *out, int number, size_t n) except -1:
    """A field below 16 whose `n` bytes follow; there is room for them."""
    out_reserve(out, 16 + n)
    pb_put(out, <uint64_t>number << 3 | 2)
    pb_put(out, n)
    return 0


cdef int pb_text(Out *out, int number, bytes text) except -1:
    """A field of a number below 16; an empty one is not written."""
    if PyBytes_GET_SIZE(text):
        pb_begin(out, number, PyBytes_GET_SIZE(text))
        out_bytes(out, text)
    return 0


cdef bytes pb_string(bytes text):
    """What readers take for text: they refuse a message whose text is not UTF-8. Bytes that are not become "?" (Envoy
    has "!"): of a body of a MiB that takes 13 ms at most, and anything written here ten times that."""
    if text.isascii():
        return text
    return text.decode("utf-8", "surrogateescape").encode("utf-8", "replace")
