# Upgrade: which 101 responses begin a tunnel (RFC 9110 7.8).
#
# In: the requested protocol, the head of a 101. Out: whether the backend switches to that protocol.

cdef list protocols_of(bytes value):
    """Names in an Upgrade line, which are compared without case (RFC 9110 7.8)."""
    return [name for name in [part.strip(b" \t").lower() for part in value.split(b",")] if name]


cdef bint switches_as_asked(bytes asked, const uint8_t *base, ef_head *head) except -1:
    """A 101 begins a tunnel only in HTTP/1.1 (RFC 9110 15.2: 1.0 has no 1xx), and only to what the client asked for: all that it
    names, and it has to name something (7.8). A backend that switches to what nobody asked for speaks past its client."""
    cdef uint16_t i
    cdef list named = []
    if asked is None or head.version_minor == 0:
        return False
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_UPGRADE:
            named += protocols_of(base[head.spans[i].val_off:head.spans[i].val_off + head.spans[i].val_len])
    return bool(named) and set(named) <= set(protocols_of(asked))
