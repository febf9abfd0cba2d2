# Address: converts addresses between the kernel's form, the engine's, and text.
#
# In: a sockaddr, or text and a port of the configuration. Out: a NetAddress (16 bytes for each family), or a SocketName to connect to.
# Must never resolve a name: the resolver does.

cdef void address_read(const sockaddr_storage *name, NetAddress *out) noexcept:
    """A kernel's address; ADDRESS_NONE for families that we do not speak."""
    memset(out, 0, sizeof(NetAddress))
    if name.ss_family == AF_INET:
        out.kind = ADDRESS_INET
        out.host[10] = out.host[11] = 255
        memcpy(out.host + 12, &(<const sockaddr_in *>name).sin_addr, 4)
        out.port = ntohs((<const sockaddr_in *>name).sin_port)
    elif name.ss_family == AF_INET6:
        out.kind = ADDRESS_INET
        memcpy(out.host, &(<const sockaddr_in6 *>name).sin6_addr, 16)
        out.port = ntohs((<const sockaddr_in6 *>name).sin6_port)
    elif name.ss_family == AF_UNIX:
        out.kind = ADDRESS_UNIX


cdef int socket_name(bytes host, int port, SocketName *out) except -1:
    """Text to what connect(2) takes; port -1: `host` is the path of a unix socket. ValueError for anything else."""
    memset(out, 0, sizeof(SocketName))
    if port < 0:
        if not 0 < PyBytes_GET_SIZE(host) < <Py_ssize_t>sizeof((<sockaddr_un *>NULL).sun_path) or b"\0" in host:
            raise ValueError(f"not a path of a unix socket: {host!r}")
        out.address.ss_family = AF_UNIX
        memcpy((<sockaddr_un *>&out.address).sun_path, PyBytes_AS_STRING(host), PyBytes_GET_SIZE(host))
        out.length = <socklen_t>(sizeof(unsigned short) + PyBytes_GET_SIZE(host) + 1)
    elif inet_pton(AF_INET, PyBytes_AS_STRING(host), &(<sockaddr_in *>&out.address).sin_addr) == 1:
        out.address.ss_family = AF_INET
        (<sockaddr_in *>&out.address).sin_port = htons(<uint16_t>port)
        out.length = sizeof(sockaddr_in)
    elif inet_pton(AF_INET6, PyBytes_AS_STRING(host), &(<sockaddr_in6 *>&out.address).sin6_addr) == 1:
        out.address.ss_family = AF_INET6
        (<sockaddr_in6 *>&out.address).sin6_port = htons(<uint16_t>port)
        out.length = sizeof(sockaddr_in6)
    else:
        raise ValueError(f"not an address: {host!r}")
    return 0


# Own ports: a backend there would let a tenant read the admin interface, or create a request loop. Only a connection to such a port number
# costs more than a set lookup: one query of the kernel's routes (edgefast/local_address.py).

cdef object own_ports(tcp, udp):
    return frozenset([*tcp, *[port | OWN_UDP for port in udp]]) or None


cdef bint leads_here(object ports, const SocketName *to, bint udp) except -1:
    """True: it would reach a port of this proxy, at whichever address of this machine."""
    cdef NetAddress there
    address_read(&to.address, &there)
    if there.kind != ADDRESS_INET or (there.port | OWN_UDP if udp else there.port) not in ports:
        return False
    return is_local(ip_address(PyBytes_FromStringAndSize(<char *>there.host, sizeof(there.host))))
