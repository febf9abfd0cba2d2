# Inet address: 16 bytes; an IPv4 address is its mapped IPv6 address (RFC 4291 2.5.5.2), so that each host has one form.

cdef enum:
    INET_SIZE = 16  # bytes of an address
    INET_CLIENT = 8  # bytes of an IPv6 address that tell one client from another: all of a /64 are one's own to choose
    INET_TEXT = 46  # bytes of the longest text with its NUL: INET6_ADDRSTRLEN


# An address range; IPv4 as ::ffff:0:0/96.
cdef struct InetRange:
    uint8_t address[16]
    int bits
    bint v4             # of IPv4 addresses: a wider range that surrounds them has none in it

cdef bytes address_of(Connection connection, bint local)

cdef bint inet_read(const uint8_t *text, size_t n, uint8_t *out) noexcept

cdef bint inet_is_v4(const uint8_t *address) noexcept

cdef int inet_range(str cidr, InetRange *out) except -1

cdef bytes inet_text(const uint8_t *address)

cdef bint inet_read_bytes(bytes text, uint8_t *out) noexcept
