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


cdef int learn_client(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """Whose request it is, where other proxies may have spoken for the client; else it stays the peer's."""
    cdef bytes value
    cdef uint16_t i
    cdef bint listed = False, told = False
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_FOR:
            listed = True
        elif head.spans[i].id == EF_H_FORWARDING:
            told = True
    if told and ex.settings.trusted_hops == 0 and ex.settings.n_trusted == 0:
        leave_out_forwarding(head)
    if not listed and ex.settings.trusted_hops == 0 and ex.settings.n_trusted == 0:
        return 0
    ex.received = b""
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_FOR and head.spans[i].val_len:
            value = base[head.spans[i].val_off:head.spans[i].val_off + head.spans[i].val_len]
            ex.received = ex.received + b"," + value if ex.received else value
    ex.client = client_address(ex.settings, ex.down.peer, ex.received)
    if told and not believes(ex.settings, ex.down.peer, ex.received):
        leave_out_forwarding(head)
    return 0


cdef void leave_out_forwarding(ef_head *head) noexcept:
    """What nobody who is trusted has said is not there: not for matches and limits, and not for the backend."""
    cdef uint16_t i, kept = 0
    for i in range(head.n_spans):
        if head.spans[i].id != EF_H_FORWARDING:
            if kept != i:
                head.spans[kept] = head.spans[i]
            kept += 1
    head.n_spans = kept


cdef bint believes(HttpSettings settings, bytes peer, bytes received):
    """Whether what the peer says of other clients counts: it is trusted, and with hops there are as many as there should be."""
    if settings.n_trusted and not is_trusted(settings, peer):
        return False
    return settings.trusted_hops == 0 or len(forwarded_entries(received)) >= <Py_ssize_t>settings.trusted_hops


cdef list forwarded_entries(bytes received):
    return [entry.strip() for entry in received.split(b",")] if received else []


cdef bytes client_address(HttpSettings settings, bytes peer, bytes received):
    """The address to believe, given x-forwarded-for as received (joined by commas)."""
    cdef list entries = forwarded_entries(received)
    if settings.trusted_hops:
        if not believes(settings, peer, received):  # both are set: hops count for these peers only
            return peer
        return inet_canonical(entries[len(entries) - settings.trusted_hops]) or peer
    address = peer
    while entries and is_trusted(settings, address):
        candidate = inet_canonical(entries.pop())
        if candidate is None:
            break
        address = candidate
    return address


cdef bint is_trusted(HttpSettings settings, bytes text) noexcept:
    cdef uint8_t address[INET_SIZE]
    cdef int i
    if not inet_read_bytes(text, address):
        return False
    for i in range(settings.n_trusted):
        if inet_in(&settings.trusted[i], address):
            return True
    return False
