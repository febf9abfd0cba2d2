# Client address: the client of a request, from x-forwarded-for as received, the peer, and the trusted networks.
#
# In: a request head's forwarding lines, the peer, the trusted networks and hops. Out: the address for headers, limits and logs.
# Source: EdgeProxy spec.clientAddress. Must never: trust an address outside of these settings.

cdef int learn_client(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """Whose request it is, where other proxies may have spoken for the client; else it stays the peer's."""
    cdef uint16_t i
    cdef list entries
    cdef bint listed = False, forwarded = False, spoken = False, believed
    if ex.settings.forwarded is not None:
        ex.settings.forwarded.keep_host(ex, base, head)
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_FOR:
            listed = True
        elif head.spans[i].id == EF_H_FORWARDING:
            forwarded = True
        elif head.spans[i].id == EF_H_X_FORWARDED_PROTO:
            spoken = True
    if forwarded and ex.settings.trusted_hops == 0 and ex.settings.n_trusted == 0:
        leave_out_forwarding(head)
    if not listed and ex.settings.trusted_hops == 0 and ex.settings.n_trusted == 0:
        return 0
    ex.received = join_forwarded(base, head)
    entries = split_forwarded(ex.received)
    believed = believes(ex.settings, ex.down.peer.address, len(entries))
    if forwarded and not believed:
        leave_out_forwarding(head)
    if spoken and believed and ex.settings.n_trusted:  # a hop count covers addresses only; it does not prove that a proxy sets the scheme
        ex.https = forwarded_https(base, head, ex.https)
    ex.client = client_address(ex.settings, ex.down.peer.address, entries, believed)
    return 0


cdef bytes join_forwarded(const uint8_t *base, ef_head *head):
    """x-forwarded-for as received, all lines joined."""
    cdef bytes joined = b"", value
    cdef uint16_t i
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_FOR and head.spans[i].val_len:
            value = base[head.spans[i].val_off:head.spans[i].val_off + head.spans[i].val_len]
            joined = joined + b"," + value if joined else value
    return joined


cdef list split_forwarded(bytes joined):
    return [entry.strip() for entry in joined.split(b",")] if joined else []


cdef bint forwarded_https(const uint8_t *base, ef_head *head, bint own) noexcept:
    """X-Forwarded-Proto of a trusted proxy. A list, several lines, and values other than http and https are ignored: `own` stays."""
    cdef const ef_span *said = NULL
    cdef uint16_t i
    for i in range(head.n_spans):
        if head.spans[i].id == EF_H_X_FORWARDED_PROTO:
            if said != NULL:
                return own
            said = &head.spans[i]
    if said == NULL:
        return own
    if said.val_len == 5 and strncasecmp(<const char *>base + said.val_off, "https", 5) == 0:
        return True
    if said.val_len == 4 and strncasecmp(<const char *>base + said.val_off, "http", 4) == 0:
        return False
    return own


cdef bint asks_https(Exchange ex, const uint8_t *base, ef_head *head) except -1:
    """The same before learn_client."""
    cdef HttpSettings settings = ex.settings
    if settings.n_trusted == 0:
        return ex.https
    if not believes(settings, ex.down.peer.address, len(split_forwarded(join_forwarded(base, head)))):
        return ex.https
    return forwarded_https(base, head, ex.https)


cdef void leave_out_forwarding(ef_head *head) noexcept:
    """What nobody who is trusted has said is not there: not for matches and limits, and not for the backend."""
    cdef uint16_t i, kept = 0
    for i in range(head.n_spans):
        if head.spans[i].id != EF_H_FORWARDING:
            if kept != i:
                head.spans[kept] = head.spans[i]
            kept += 1
    head.n_spans = kept


cdef bint believes(HttpSettings settings, bytes peer, Py_ssize_t entries) noexcept:
    """Whether what the peer says of other clients counts: it is trusted, and with hops there are as many as there should be."""
    if settings.n_trusted and not is_trusted(settings, peer):
        return False
    return settings.trusted_hops == 0 or entries >= <Py_ssize_t>settings.trusted_hops


cdef bytes client_address(HttpSettings settings, bytes peer, list entries, bint believed):
    """The address to believe, given the entries of x-forwarded-for as received, which it uses up."""
    if not believed:  # with hops and networks, hops count for these peers only
        return peer
    if settings.trusted_hops:
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
