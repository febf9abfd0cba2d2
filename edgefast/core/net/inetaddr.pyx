# Inet address: one form for each address of a socket, a PROXY protocol block, or an x-forwarded-for list.
#
# In: untrusted text or bytes. Out: 16 bytes to compare, and the one text for headers, logs and counters. An IPv4-mapped address is its IPv4
# address in every source form. All code of the engine that compares, writes or counts an address uses this module only; its twin for Python
# is edgefast/netaddr.py.
# Must never: take a scope id, a port or a name for part of an address.

cdef bint inet_read(const uint8_t *text, size_t n, uint8_t *out) noexcept:
    """Text to 16 bytes; False when it is no address. RFC 4291 2.2 and four decimal numbers without leading zeros, nothing else."""
    cdef char copy[INET_TEXT]
    if n == 0 or n >= sizeof(copy) or memchr(text, 0, n) != NULL:
        return False
    memcpy(copy, text, n)
    copy[n] = 0
    if memchr(text, c":", n) != NULL:
        return inet_pton(AF_INET6, copy, out) == 1
    if inet_pton(AF_INET, copy, out + 12) != 1:
        return False
    inet_map(out)
    return True


cdef inline void inet_map(uint8_t *out) noexcept:
    """The first twelve bytes of an IPv4 address."""
    memset(out, 0, 10)
    out[10] = out[11] = 255


cdef bint inet_read_bytes(bytes text, uint8_t *out) noexcept:
    return inet_read(<const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), out)


cdef bytes inet_text(const uint8_t *address):
    """The one spelling of an address: RFC 5952, all of it in hexadecimal."""
    cdef char text[INET_TEXT]
    cdef int zeros = 0, i
    cdef Out out
    if inet_is_v4(address):  # the library's way to these leads through sprintf, for each connection
        out.data = <uint8_t *>text
        out.size = 0
        for i in range(12, 16):
            if i > 12:
                out_raw(&out, <const char *>b".", 1)
            out_number(&out, address[i])
        return text[:out.size]
    while zeros < 14 and address[zeros] == 0:
        zeros += 1
    if zeros == 12 or zeros == 13:  # IPv4-compatible, which is no IPv4 address (RFC 4291 2.5.5.1): the library would spell it so
        snprintf(text, sizeof(text), "::%x:%x", address[12] << 8 | address[13], address[14] << 8 | address[15])
    else:
        inet_ntop(AF_INET6, address, text, sizeof(text))
    return <bytes>text


cdef bytes inet_canonical(bytes text):
    """The one spelling of an address; None when the text is none."""
    cdef uint8_t address[INET_SIZE]
    return inet_text(address) if inet_read_bytes(text, address) else None


cdef bint inet_is_v4(const uint8_t *address) noexcept:
    cdef int i
    for i in range(10):
        if address[i]:
            return False
    return address[10] == 255 and address[11] == 255


cdef bint inet_is_private(const uint8_t *address) noexcept:
    """RFC 1918, loopback, IPv6 unique local and loopback."""
    cdef int i
    if inet_is_v4(address):
        return (
            address[12] == 10 or address[12] == 127 or (address[12] == 172 and address[13] >> 4 == 1)
            or (address[12] == 192 and address[13] == 168)
        )
    if address[0] >> 1 == 0xFC >> 1:
        return True
    for i in range(15):
        if address[i]:
            return False
    return address[15] == 1


cdef int inet_range(str cidr, InetRange *out) except -1:
    """Read a range such as 10.0.0.0/8; one of IPv4-mapped addresses is of IPv4. The configuration has checked it."""
    network = ip_network(cidr, strict=False)
    memcpy(out.address + INET_SIZE - len(network.network_address.packed), PyBytes_AS_STRING(network.network_address.packed),
           len(network.network_address.packed))
    if network.version == 4:
        inet_map(out.address)
    out.bits = network.prefixlen + (96 if network.version == 4 else 0)
    out.v4 = out.bits >= 96 and inet_is_v4(out.address)
    return 0


cdef InetRange *inet_ranges(object cidrs) except NULL:
    """An array of ranges for the caller to free; one element more than there are, so that none has room, too."""
    cdef InetRange *ranges = <InetRange *>calloc(len(cidrs) + 1, sizeof(InetRange))
    cdef int i
    if ranges == NULL:
        raise MemoryError
    try:
        for i in range(len(cidrs)):
            inet_range(cidrs[i], &ranges[i])
    except BaseException:
        free(ranges)
        raise
    return ranges


cdef bint inet_in(const InetRange *range_, const uint8_t *address) noexcept:
    cdef int whole = range_.bits // 8, rest = range_.bits % 8
    if range_.v4 != inet_is_v4(address):
        return False
    if memcmp(range_.address, address, whole) != 0:
        return False
    return rest == 0 or (range_.address[whole] ^ address[whole]) >> (8 - rest) == 0


cdef bytes inet_with_port(const uint8_t *address, bytes port):
    """"10.0.0.1:80" or "[::1]:80"."""
    return (b"%b:%b" if inet_is_v4(address) else b"[%b]:%b") % (inet_text(address), port)


cdef bytes address_of(Connection connection, bint local):
    """"10.0.0.1:80" or "[::1]:80" of a connection that is open: ours, or the other side's; b"" of a unix socket."""
    cdef NetAddress end
    connection.learn_end(local, &end)
    return inet_with_port(end.host, b"%d" % end.port) if end.kind == ADDRESS_INET else b""


def canonical_address(bytes text):
    """The one spelling of an address, None when the text is none (for tests against the twin)."""
    return inet_canonical(text)


def address_in(bytes text, str cidr):
    """Whether an address lies in a range."""
    cdef uint8_t address[INET_SIZE]
    cdef InetRange one
    inet_range(cidr, &one)
    return inet_read_bytes(text, address) and inet_in(&one, address)


def is_private_address(bytes text):
    """Whether an address is of a private network."""
    cdef uint8_t address[INET_SIZE]
    return inet_read_bytes(text, address) and inet_is_private(address)
