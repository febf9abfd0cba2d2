# Preamble: PROXY protocol: the client of a connection, as a load balancer reports it.
#
# In: the first bytes of a connection. Out: the length of the preamble, and the address and port it gives.
# Source: PROXY protocol specification 2.1 and 2.2. It reads nothing beyond the preamble, and uses nothing of an incomplete one.

cdef class PreambleSenders:
    """Trusted senders of a preamble: addresses of load balancers, as seen on the socket."""
    def __cinit__(self, cidrs):
        self.ranges = inet_ranges(cidrs)
        self.n = <int>len(cidrs)

    def __dealloc__(self):
        free(self.ranges)

    cdef bint has(self, const NetAddress *peer) noexcept:
        cdef int i
        if peer.kind != ADDRESS_INET:
            return False
        for i in range(self.n):
            if inet_in(&self.ranges[i], peer.host):
                return True
        return False

    cdef bint has_peer(self, Connection connection) except -1:
        cdef NetAddress peer
        connection.learn_end(False, &peer)
        return self.has(&peer)


cdef bint is_preamble_refused(object length, int mode, bint trusted) except -1:
    """Whether the connection is closed. mode: 1 optional, 2 required. A preamble of an untrusted sender is refused, even a valid one."""
    if length == PREAMBLE_ABSENT:
        return mode == 2
    return length == PREAMBLE_BAD or not trusted and (mode == 2 or length != PREAMBLE_MORE)


V2_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


cdef tuple parse_preamble(bytes data):
    """(length, address, port): length > 0 consumed, or a PREAMBLE_*; address None when the sender speaks for itself (LOCAL, UNKNOWN)."""
    if data.startswith(V2_SIGNATURE[:len(data)]):
        return parse_v2(data)
    if b"PROXY ".startswith(data[:6]):
        return parse_v1(data)
    return PREAMBLE_ABSENT, None, 0


cdef tuple parse_v1(bytes data):
    end = data.find(b"\r\n", 0, PROXY_LINE)
    if end < 0:
        return (PREAMBLE_BAD if len(data) >= PROXY_LINE or b"\n" in data[:PROXY_LINE] else PREAMBLE_MORE), None, 0
    fields = data[:end].split(b" ")
    if len(fields) >= 2 and fields[1] == b"UNKNOWN":
        return end + 2, None, 0
    if len(fields) != 6 or fields[1] not in (b"TCP4", b"TCP6"):
        return PREAMBLE_BAD, None, 0
    address = inet_canonical(fields[2])
    if address is None or inet_canonical(fields[3]) is None or (b":" in fields[2]) != (fields[1] == b"TCP6"):
        return PREAMBLE_BAD, None, 0
    ports = [int(field) for field in fields[4:6] if field.isdigit() and len(field) <= 5]
    if len(ports) != 2 or max(ports) > 65535:
        return PREAMBLE_BAD, None, 0
    return end + 2, address, ports[0]


cdef tuple parse_v2(bytes data):
    cdef uint8_t address[INET_SIZE]
    if len(data) < 16:
        return PREAMBLE_MORE, None, 0
    length = 16 + int.from_bytes(data[14:16], "big")
    if data[12] >> 4 != 2 or length > PROXY_V2_MAX:
        return PREAMBLE_BAD, None, 0
    if len(data) < length:
        return PREAMBLE_MORE, None, 0
    command = data[12] & 15
    if command == 0:
        return length, None, 0
    if command != 1:
        return PREAMBLE_BAD, None, 0
    if data[13] == 0x11 and length >= 28:
        inet_map(address)
        memcpy(address + 12, PyBytes_AS_STRING(data) + 16, 4)
        return length, inet_text(address), int.from_bytes(data[24:26], "big")
    if data[13] == 0x21 and length >= 52:
        return length, inet_text(<const uint8_t *>PyBytes_AS_STRING(data) + 16), int.from_bytes(data[48:50], "big")
    if data[13] >> 4 in (0, 3):  # unspecified, unix: there is no address to believe
        return length, None, 0
    return PREAMBLE_BAD, None, 0
