# Who the client is: PROXY protocol preambles, trusted proxies, private addresses.
#
# In: the first bytes of a connection, x-forwarded-for as received, the peer. Out: the address that headers, limits and logs believe.
# Sources: PROXY protocol specification 2.1 and 2.2; EdgeProxy spec.clientAddress. Nothing here trusts what it was not told to.

cdef enum:
    PREAMBLE_MORE = 0
    PREAMBLE_BAD = -1
    PREAMBLE_ABSENT = -2

cdef bytes V2_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


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
    if len(fields) != 6 or fields[1] not in (b"TCP4", b"TCP6") or b"%" in data[:end]:  # a scope id may hold any byte
        return PREAMBLE_BAD, None, 0
    try:
        address = ip_address(fields[2].decode("ascii"))
        ip_address(fields[3].decode("ascii"))
        ports = [int(field) for field in fields[4:6] if field.isdigit() and len(field) <= 5]
    except ValueError:
        return PREAMBLE_BAD, None, 0
    if address.version != (4 if fields[1] == b"TCP4" else 6) or len(ports) != 2 or max(ports) > 65535:
        return PREAMBLE_BAD, None, 0
    return end + 2, str(address).encode(), ports[0]


cdef tuple parse_v2(bytes data):
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
        return length, str(ip_address(data[16:20])).encode(), int.from_bytes(data[24:26], "big")
    if data[13] == 0x21 and length >= 52:
        return length, str(ip_address(data[16:32])).encode(), int.from_bytes(data[48:50], "big")
    if data[13] >> 4 in (0, 3):  # unspecified, unix: there is no address to believe
        return length, None, 0
    return PREAMBLE_BAD, None, 0


cdef bytes peer_of(int fd):
    """The text of the address at the other end of a socket; loopback for a unix socket. One system call, no Python socket."""
    cdef sockaddr_storage address
    cdef socklen_t length = sizeof(address)
    cdef char text[64]
    text[0] = 0
    if getpeername(fd, <sockaddr *>&address, &length) == 0:
        if address.ss_family == AF_INET:
            inet_ntop(AF_INET, &(<sockaddr_in *>&address).sin_addr, text, sizeof(text))
        elif address.ss_family == AF_INET6:
            inet_ntop(AF_INET6, &(<sockaddr_in6 *>&address).sin6_addr, text, sizeof(text))
    return <bytes>text if text[0] else b"127.0.0.1"


cdef bint is_private(bytes text):
    """RFC 1918, loopback, IPv6 unique local and loopback."""
    cdef const char *p = PyBytes_AS_STRING(text)
    if text.startswith((b"10.", b"127.", b"192.168.", b"fc", b"fd")) or text == b"::1":
        return True
    if text.startswith(b"172."):
        second = text[4:].split(b".", 1)[0]
        return second.isdigit() and 16 <= int(second) <= 31
    return False


cdef int learn_client(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """Whose request it is, where other proxies may have spoken for the client; else it stays the peer's."""
    cdef bytes value
    cdef uint16_t i
    cdef bint listed = False
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_FOR:
            listed = True
            break
    if not listed and ex.settings.trusted_hops == 0 and not ex.settings.trusted_networks:
        return 0
    ex.received = b""
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_FOR and head.spans[i].val_len:
            value = base[head.spans[i].val_off:head.spans[i].val_off + head.spans[i].val_len]
            ex.received = ex.received + b"," + value if ex.received else value
    ex.client = client_address(ex.settings, ex.down.peer, ex.received)
    return 0


cdef bytes client_address(HttpSettings settings, bytes peer, bytes received):
    """The address to believe, given x-forwarded-for as received (joined by commas)."""
    entries = [entry.strip() for entry in received.split(b",")] if received else []
    if settings.trusted_hops:
        if settings.trusted_networks and not in_networks(settings.trusted_networks, peer):
            return peer  # both are set: hops count for these peers only
        if len(entries) < settings.trusted_hops:
            return peer
        named = entries[len(entries) - settings.trusted_hops]
        return named if parse_ip(named) is not None else peer
    address = peer
    if settings.trusted_networks:
        while entries and in_networks(settings.trusted_networks, address):
            candidate = entries.pop()
            if parse_ip(candidate) is None:
                break
            address = candidate
    return address


cdef object parse_ip(bytes text):
    if b"%" in text:  # a scope id may hold any byte
        return None
    try:
        return ip_address(text.decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return None


cdef bint in_networks(list networks, bytes text):
    address = parse_ip(text)
    return address is not None and any([address.version == n.version and address in n for n in networks])
