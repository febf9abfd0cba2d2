# CheckRequest: the check of a request for a gRPC authorization service.
#
# In: a waiting request (AuthFlow), whether its body is included.
# Out: a message of gRPC without the bytes of the body: they are its end, and stay where they are. Text that is not UTF-8 is converted
# (pb_string): readers would refuse the message and learn nothing of the request.
# Source: envoy/service/auth/v3/attribute_context.proto; as in Envoy, headers are those for the backend, of one name in one value.

cdef bytes CHECK_PATH = b"/envoy.service.auth.v3.Authorization/Check"


cdef dict shown_headers(RuleAuthFlow flow, AuthService service):
    """Name in lower case -> value. Those of the client that the service is shown, what services before said of it, and, unless names are
    listed, what the proxy says of the request itself."""
    cdef Exchange ex = flow.ex
    cdef Routed *at = &flow.at
    cdef ef_head *head = at.head
    cdef HeaderNames names = service.sends
    cdef AuthCache cache = units_of(ex.engine).auth_cache
    cdef Out *out = &cache.question
    cdef size_t place = 0, after
    cdef ef_span span
    cdef dict found = {}
    cdef bytes own = ex.down.peer.own_lines if ex.received is None else <bytes>forwarded_lines(ex)[0]
    if service.shows_all:
        found[b":authority"] = at.base[head.authority_off:head.authority_off + head.authority_len]
        found[b":method"] = at.base[head.method_off:head.method_off + head.method_len]
        found[b":path"] = shown_path(at)
        found[b":scheme"] = b"https" if ex.https else b"http"
    out.size = 0
    out_reserve(out, head.head_len + PyBytes_GET_SIZE(flow.lines))
    put_body(out, flow, names)
    while place < out.size:
        after = ef_trailer_next(out.data, out.size, place, &span)
        if after == 0:
            break
        name = out.data[span.name_off:span.name_off + span.name_len].lower()
        value = out.data[span.val_off:span.val_off + span.val_len]
        if name in found:
            value = found[name] + (b"; " if name == b"cookie" else b",") + value
        found[name] = value
        place = after
    for line in (own + certificate_lines(ex) + b"x-request-id: %b\r\n" % ex.request_id[:ex.request_id_len]).splitlines():
        name, _, value = line.partition(b": ")
        if service.shows_all or name in service.named:
            found[name] = value
    return found


cdef bytes shown_path(Routed *at):
    cdef bytes path = at.path[:at.path_len]
    return path if at.query == NULL else path + b"?" + at.query[:at.query_len]


cdef int put_peer(Out *out, int number, bytes address, int64_t port) except -1:
    """A Peer with a SocketAddress; none without an address."""
    cdef size_t n = PyBytes_GET_SIZE(address), inside
    if n == 0:
        return 0
    inside = 1 + pb_size(n) + n + (1 + pb_size(<uint64_t>port) if port > 0 else 0)  # bounded by INET_TEXT: lengths are one byte
    pb_begin(out, number, inside + 4)
    pb_begin(out, 1, inside + 2)
    pb_begin(out, 1, inside)
    pb_text(out, 2, address)
    return pb_number(out, 3, port)


cdef tuple host_and_port(bytes text):
    """Of "10.0.0.1:80" and "[::1]:80"."""
    host, _, port = text.rpartition(b":")
    return host.strip(b"[]"), int(port) if port.isdigit() else 0


cdef int put_peers(Out *out, Exchange ex) except -1:
    """Both ends of the client's connection."""
    cdef Peer peer = ex.down.peer
    if peer.local is None:
        ex.down.learn_ends()
    _, port = host_and_port(peer.remote or b"")
    put_peer(out, 1, peer.address, peer.address_port if peer.address_port >= 0 else port)
    host, port = host_and_port(peer.local or b"")
    return put_peer(out, 2, host, port)


cdef int write_check(Out *out, RuleAuthFlow flow, AuthService service, bint shows) except -1:
    """Into `out`, which is emptied first: the message's head of gRPC and all of it, less the bytes of the body."""
    cdef Exchange ex = flow.ex
    cdef ef_head *head = flow.at.head
    cdef Out http
    cdef size_t body = ex.body.kept.size if shows else 0, start, n, inner
    cdef int64_t now = unix_us() - (ex.engine.reactor.now_us() - ex.started)
    cdef bint is_text = True
    memset(&http, 0, sizeof(http))
    try:
        pb_text(&http, 1, ex.request_id[:ex.request_id_len])
        pb_text(&http, 2, flow.at.base[head.method_off:head.method_off + head.method_len])
        for name, value in shown_headers(flow, service).items():
            key, text = pb_string(name), pb_string(value)
            n = len(key) + len(text) + 2 + pb_size(len(key)) + pb_size(len(text))
            pb_begin(&http, 3, n)
            pb_begin(&http, 1, len(key))
            out_bytes(&http, key)
            pb_begin(&http, 2, len(text))
            out_bytes(&http, text)
        pb_text(&http, 4, pb_string(shown_path(&flow.at)))
        pb_text(&http, 5, pb_string(flow.at.base[head.authority_off:head.authority_off + head.authority_len]))
        pb_text(&http, 6, b"https" if ex.https else b"http")
        pb_number(&http, 9, body if shows else -1 if ex.body.unsized else <int64_t>ex.body.announced)
        pb_text(&http, 10, ex.down.protocol)
        if body:
            text = ex.body.kept.data[:body]
            try:
                text.decode()
            except UnicodeDecodeError:
                is_text = False
                pb_text(&http, 11, pb_string(text))
            pb_begin(&http, 11 if is_text else 12, 0)  # its length follows
            http.size -= 1
            pb_put(&http, body)
        out.size = 0
        out_reserve(out, 512 + http.size)
        out.size = 5
        # what is around it: of these the lengths come first
        n = http.size + body
        inner = 1 + pb_size(n) + n  # Request.http
        start = out.size
        pb_number(out, 1, now // 1000000)
        pb_number(out, 2, now % 1000000 * 1000)
        text = out.data[start:out.size]  # a Timestamp
        inner += 2 + len(text)
        out.size = start
        put_peers(out, ex)
        peers = out.data[start:out.size]
        out.size = start
        pb_begin(out, 1, len(peers) + 1 + pb_size(inner) + inner)
        out_bytes(out, peers)
        pb_begin(out, 4, inner)
        pb_text(out, 1, text)
        pb_begin(out, 2, n)
        out_raw(out, http.data, http.size)
        n = out.size - 5 + body
        out.data[0] = 0
        out.data[1], out.data[2] = <uint8_t>(n >> 24), <uint8_t>(n >> 16 & 255)
        out.data[3], out.data[4] = <uint8_t>(n >> 8 & 255), <uint8_t>(n & 255)
    finally:
        out_free(&http)
    return 0


cdef int put_about(Out *out, Exchange ex) except -1:
    """What else a service of gRPC is shown of a request, for the digest of its question; its time, its id and ports of clients are different
    each time."""
    cdef bytes text
    if ex.down.peer.local is None:
        ex.down.learn_ends()
    text = b"%b %b %d\r\n" % (ex.down.protocol, ex.down.peer.local or b"", -1 if ex.body.unsized else <int64_t>ex.body.announced)
    out_reserve(out, PyBytes_GET_SIZE(text))
    out_bytes(out, text)
    return 0
