# Request head: writes the backend's request head from the spans of the client's (header rules: docs/reference/http1.md, spec 4).
#
# In: a routed request, its head and the operations of the rule. Out: HTTP/1.1 text in ex.head, one copy of what stays.

cdef int write_request_head(
    Exchange ex, const uint8_t *base, ef_head *head, const uint8_t *path, size_t path_len, const uint8_t *query, size_t query_len,
    size_t prefix_len, bytes rewritten
) except -1:
    """Into ex.head: request line, Host, the client's lines that stay, the rule's, ours; not those of framing and of the connection, nor the
    empty line at its end. `rewritten`: the path by the rule's pattern; None: it has none."""
    cdef Out *out = &ex.head
    cdef Backend backend = ex.backend
    cdef Peer peer = ex.down.peer
    cdef HeaderOps ops = backend.request_ops
    cdef ForwardedHeaders about = ex.settings.forwarded
    cdef const ef_span *request_id = NULL
    cdef const ef_span *upgrade = NULL
    cdef const ef_span *span
    cdef bytes replaced = rewritten, lines
    cdef uint16_t i
    cdef uint32_t drop = (
        <uint32_t>1 << EF_H_HOST | <uint32_t>1 << EF_H_EXPECT | <uint32_t>1 << EF_H_X_EDGE | <uint32_t>1 << EF_H_X_FORWARDED_FOR
        | <uint32_t>1 << EF_H_X_FORWARDED_PROTO | <uint32_t>1 << EF_H_X_REQUEST_ID
    )
    if ex.rule.response_rewrite is not None and ex.rule.response_rewrite.wants_host:
        ex.host = base[head.host_off:head.host_off + head.host_len].lower()
    for i in range(head.n_spans):
        span = &head.spans[i]
        if span.id == EF_H_X_REQUEST_ID:
            request_id = span
        elif span.id == EF_H_UPGRADE:
            upgrade = span
    if replaced is None and backend.path_kind and path[0] == c"/":  # "*" stays what it is
        replaced = replace_path(path[:path_len], prefix_len, backend.path_kind == 1, backend.path)
    if ex.rule.traffic is not None:
        ex.rule.traffic.read(ex, base, head, query, query_len)
    if backend.traffic is not None:
        backend.traffic.choose(ex, base, head, query, query_len)
    out.size = 0
    out_reserve(
        out,
        head.head_len + path_len + 1024 + (PyBytes_GET_SIZE(ops.append) if ops is not None else 0)
        + (PyBytes_GET_SIZE(replaced) if replaced is not None else 0)
        + (PyBytes_GET_SIZE(backend.host) if backend.host is not None else 0),
    )
    out_raw(out, base + head.method_off, head.method_len)
    out_raw(out, <const char *>b" ", 1)
    if replaced is not None:
        out_bytes(out, replaced)
    else:
        out_raw(out, path, path_len)
    if query != NULL:
        out_raw(out, <const char *>b"?", 1)
        out_raw(out, query, query_len)
    out_raw(out, <const char *>b" HTTP/1.1\r\nhost: ", 17)
    if backend.host is not None:
        out_bytes(out, backend.host)
    else:
        out_raw(out, base + head.authority_off, head.authority_len)
    out_raw(out, <const char *>b"\r\n", 2)
    write_spans(out, base, head, ex.settings.drop_flags, drop, ops, None if about is None else about.drops)
    if ex.received is None:
        out_bytes(out, without(peer.own_lines, ops))
        internal = peer.internal
    else:
        lines, internal = forwarded_lines(ex)
        out_reserve(out, PyBytes_GET_SIZE(lines) + 512 + PyBytes_GET_SIZE(ex.settings.via))
        out_bytes(out, without(lines, ops))
    if about is not None:
        about.write(ex, out, base, head, query, query_len, ops)
    take_request_id(ex, base, request_id, internal)
    if ops is None or not ops.own_id:
        out_raw(out, <const char *>b"x-request-id: ", 14)
        out_raw(out, ex.request_id, ex.request_id_len)
        out_raw(out, <const char *>b"\r\n", 2)
    out_bytes(out, without(ex.rule.timeout_line if ex.rule.traffic is None else ex.rule.traffic.timeout_line, ops))
    if ex.client_deadline:
        place_timeout(ex, out, ops)
    if ex.web is not None:
        out_reserve(out, PyBytes_GET_SIZE(ex.web.request_line) + 512)
        out_bytes(out, without(ex.web.request_line, ops))
    if ex.trace is not None:
        ex.engine.observer.write_trace(ex.trace, out, ops)
    out_reserve(out, 256 + PyBytes_GET_SIZE(ex.settings.via) + (PyBytes_GET_SIZE(ops.append) if ops is not None else 0))
    out_bytes(out, without(via_line(ex), ops))
    if ops is not None:
        out_bytes(out, ops.append)
    if ex.upgrade and upgrade != NULL:
        ex.asked = base[upgrade.val_off:upgrade.val_off + upgrade.val_len]
    return 0


cdef inline bytes via_line(Exchange ex):
    """With the version that the request came in (RFC 9110 7.6.3)."""
    if ex.down.is_http2:
        return ex.settings.via_2
    return ex.settings.via_0 if ex.down.is_http10 else ex.settings.via


cdef int take_request_id(Exchange ex, const uint8_t *base, const ef_span *sent, bint internal) except -1:
    """Its id, for all who are told of it: an internal client's own, or a new one."""
    if ex.request_id_len:
        return 0
    if ex.settings.forwarded is not None:
        internal = ex.settings.forwarded.keeps_id(internal)
    if internal and sent != NULL and 0 < sent.val_len <= sizeof(ex.request_id):
        ex.request_id_len = sent.val_len
        memcpy(ex.request_id, base + sent.val_off, sent.val_len)
    else:
        ex.request_id_len = 36
        write_uuid(ex.engine, ex.request_id)
    return 0


cdef tuple forwarded_lines(Exchange ex):
    """Forwarding lines for a request that came through other proxies, and whether it counts as internal: it never does, unless the
    list is empty. The client's address: trusted hops from the right, or the first address that is in no trusted network."""
    cdef Peer peer = ex.down.peer
    cdef uint8_t address[INET_SIZE]
    received, trusted = ex.received, ex.client
    internal = not received and inet_read_bytes(trusted, address) and inet_is_private(address)
    listed = received + b"," + peer.address if received else peer.address
    if ex.settings.forwarded is not None and ex.settings.forwarded.overwrites:
        listed = trusted
    lines = b"x-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n%b" % (
        listed,
        b"https" if ex.https else b"http",
        b"x-edge-internal: true\r\n" if internal else b"x-edge-external-address: %b\r\n" % trusted,
    )
    return lines, internal


cdef void write_uuid(Engine engine, uint8_t *to) noexcept:
    """A random UUID, version 4 (RFC 9562 5.4), 36 bytes of text."""
    cdef uint64_t a = ef_random(engine.random), b = ef_random(engine.random)
    cdef uint8_t digits[32]
    a = (a & <uint64_t>0xFFFFFFFFFFFF0FFF) | 0x4000
    b = (b & <uint64_t>0x3FFFFFFFFFFFFFFF) | <uint64_t>0x8000000000000000
    hex_digits(<uint32_t>(a >> 32), digits)
    hex_digits(<uint32_t>a, digits + 8)
    hex_digits(<uint32_t>(b >> 32), digits + 16)
    hex_digits(<uint32_t>b, digits + 24)
    memcpy(to, digits, 8)
    to[8] = to[13] = to[18] = to[23] = c"-"
    memcpy(to + 9, digits + 8, 4)
    memcpy(to + 14, digits + 12, 4)
    memcpy(to + 19, digits + 16, 4)
    memcpy(to + 24, digits + 20, 12)


cdef inline void hex_digits(uint32_t word, uint8_t *to) noexcept:
    """Eight lower-case digits, all at once: each nibble becomes a byte, and those above 9 go on from "a"."""
    cdef uint64_t x = word
    cdef int i
    x = (x << 16 | x) & <uint64_t>0x0000FFFF0000FFFF
    x = (x << 8 | x) & <uint64_t>0x00FF00FF00FF00FF
    x = (x << 4 | x) & <uint64_t>0x0F0F0F0F0F0F0F0F
    x += <uint64_t>0x3030303030303030 + ((x + <uint64_t>0x0606060606060606) >> 4 & <uint64_t>0x0101010101010101) * 39
    for i in range(8):
        to[i] = <uint8_t>(x >> (56 - 8 * i))
