# Proxy header: the PROXY protocol towards backends, before a client's first byte.
#
# In: a TCP proxy. Out: the header of version 1 or 2 (PROXY protocol specification 2.1, 2.2). Addresses of two families are both written as
# IPv6 ones. Version 2 has the server name of the client (PP2_TYPE_AUTHORITY). It also has the protocol inside of TLS (PP2_TYPE_ALPN) if it
# is unambiguous. Never more than STREAM_PROXY_MOST bytes.

cdef enum:
    PP2_TYPE_ALPN = 1
    PP2_TYPE_AUTHORITY = 2
    PP2_STREAM = 1


cdef size_t write_proxy_header(TcpProxy tcp_proxy, uint8_t *to) except 0:
    cdef NetAddress local
    cdef bytes text
    tcp_proxy.down.connection.learn_end(True, &local)
    if tcp_proxy.share.proxy_protocol == 1:
        text = proxy_v1(&tcp_proxy.client, &local)
        memcpy(to, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        return PyBytes_GET_SIZE(text)
    return proxy_v2(to, &tcp_proxy.client, &local, tcp_proxy.sni, tcp_proxy.alpn)


cdef bytes proxy_v1(const NetAddress *client, const NetAddress *local):
    if client.kind != ADDRESS_INET or local.kind != ADDRESS_INET:
        return b"PROXY UNKNOWN\r\n"
    if inet_is_v4(client.host) and inet_is_v4(local.host):
        return b"PROXY TCP4 %b %b %d %d\r\n" % (inet_text(client.host), inet_text(local.host), client.port, local.port)
    return b"PROXY TCP6 %b %b %d %d\r\n" % (inet6_text(client.host), inet6_text(local.host), client.port, local.port)


cdef bytes inet6_text(const uint8_t *host):
    """As IPv6, an IPv4 address as its mapped one."""
    return b"::ffff:" + inet_text(host) if inet_is_v4(host) else inet_text(host)


cdef inline void put_u16(uint8_t *to, unsigned value) noexcept:
    to[0] = <uint8_t>(value >> 8)
    to[1] = <uint8_t>value


cdef size_t put_tlv(uint8_t *to, uint8_t kind, bytes value) noexcept:
    cdef size_t n
    if value is None:
        return 0
    n = PyBytes_GET_SIZE(value)
    if n > 255:
        return 0
    to[0] = kind
    put_u16(to + 1, <unsigned>n)
    memcpy(to + 3, PyBytes_AS_STRING(value), n)
    return n + 3


cdef size_t proxy_v2(uint8_t *to, const NetAddress *client, const NetAddress *local, bytes sni, bytes alpn) noexcept:
    cdef size_t size = 16
    memcpy(to, PyBytes_AS_STRING(V2_SIGNATURE), 12)
    to[12] = 0x21
    if client.kind != ADDRESS_INET or local.kind != ADDRESS_INET:
        to[13] = 0
    elif inet_is_v4(client.host) and inet_is_v4(local.host):
        to[13] = <uint8_t>(0x10 | PP2_STREAM)
        memcpy(to + 16, client.host + 12, 4)
        memcpy(to + 20, local.host + 12, 4)
        put_u16(to + 24, client.port)
        put_u16(to + 26, local.port)
        size = 28
    else:
        to[13] = <uint8_t>(0x20 | PP2_STREAM)
        memcpy(to + 16, client.host, 16)
        memcpy(to + 32, local.host, 16)
        put_u16(to + 48, client.port)
        put_u16(to + 50, local.port)
        size = 52
    size += put_tlv(to + size, PP2_TYPE_ALPN, alpn)
    size += put_tlv(to + size, PP2_TYPE_AUTHORITY, sni)
    put_u16(to + 14, <unsigned>(size - 16))
    return size
