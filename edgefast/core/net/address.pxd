# Address: the address of a socket without a Python object.

cdef enum:
    OWN_UDP = 1 << 16


cdef enum AddressKind:
    ADDRESS_NONE = 0    # not known: the peer is gone
    ADDRESS_INET = 1    # host and port
    ADDRESS_UNIX = 2    # a socket in the file system, or one without name


cdef struct NetAddress:
    uint8_t host[16]    # IPv4 as its mapped IPv6 address (RFC 4291 2.5.5.2)
    uint16_t port       # host byte order
    uint8_t kind        # AddressKind


# What connect(2) takes.
cdef struct SocketName:
    sockaddr_storage address
    socklen_t length

cdef void address_read(const sockaddr_storage *name, NetAddress *out) noexcept

cdef bint leads_here(object ports, const SocketName *to, bint udp) except -1

cdef int socket_name(bytes host, int port, SocketName *out) except -1

cdef object own_ports(tcp, udp)
