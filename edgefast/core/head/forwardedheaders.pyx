# Forwarded headers: request headers about the client that some backends expect besides x-forwarded-for and x-forwarded-proto.
#
# In: a request whose client is known (exchange/clientaddress.pyx), the settings (EdgeProxy spec.headers). Out: lines of the backend's head.
# x-forwarded-host and x-forwarded-port of a trusted peer stay as they came. A filter that sets or removes one of the names wins.
# Must never: forward such a line of an untrusted client under the name of one that edgefast writes, also not with "_" in place of "-".

cdef class ForwardedHeaders:
    def __init__(self, spec, underscores):
        """spec: ir.ForwardedHeaders; underscores: names of clients may contain "_"."""
        names = {name.encode() for name in spec.names}
        self.real_ip = b"x-real-ip" in names
        self.host = b"x-forwarded-host" in names
        self.port = b"x-forwarded-port" in names
        self.scheme = b"x-forwarded-scheme" in names
        self.old_scheme = b"x-scheme" in names
        self.original_for = b"x-original-forwarded-for" in names
        self.original_host = b"x-original-forwarded-host" in names
        self.original_uri = b"x-original-uri" in names
        self.certificate = make_certificate_headers(spec)
        trailers = list(spec.names)
        if spec.client_cert:
            trailers.append(_XFCC)
            if spec.client_cert not in ("forward", "always"):
                names.add(_XFCC.encode())
        dropped = set(names)
        if underscores:
            for name in names:
                parts = name.split(b"-")
                for signs in product((b"-", b"_"), repeat=len(parts) - 1):
                    dropped.add(parts[0] + b"".join([sign + part for sign, part in zip(signs, parts[1:], strict=True)]))
        # Those of an untrusted peer are gone before (leave_out_forwarding).
        self.drops = HeaderOps(sorted(dropped - {b"x-forwarded-host", b"x-forwarded-port"}), b"", None)
        self.of_proxy = [HeaderNames(trailers)]
        self.overwrites = spec.overwrite_for
        self.keeps_ids = spec.request_id == "preserve"
        self.makes_ids = spec.request_id == "generate"

    cdef int keep_host(self, Exchange ex, const uint8_t *base, ef_head *head) except -1:
        """Before lines of an untrusted peer are left out."""
        if self.certificate is not None:
            self.certificate.take(ex, base, head)
        if self.original_host:
            ex.forwarded_host = join_values(base, head, EF_H_FORWARDING, b"x-forwarded-host", 0)
        return 0

    cdef bint keeps_id(self, bint internal) noexcept:
        """Whether the client's x-request-id stays; `internal`: it is an internal client."""
        return self.keeps_ids or (internal and not self.makes_ids)

    cdef int write(
        self, Exchange ex, Out *out, const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len, HeaderOps ops
    ) except -1:
        cdef bytes scheme = b"https" if ex.https else b"http"
        cdef bytes lines = b"", value
        cdef int port = ex.down.peer.port.number
        if self.real_ip:
            lines += b"x-real-ip: %b\r\n" % ex.client
        if self.host and join_values(base, head, EF_H_FORWARDING, b"x-forwarded-host", ex.settings.drop_flags) is None:
            lines += b"x-forwarded-host: %b\r\n" % base[head.authority_off:head.authority_off + head.authority_len]
        if self.port and join_values(base, head, EF_H_FORWARDING, b"x-forwarded-port", ex.settings.drop_flags) is None:
            if ex.https != ex.down.peer.tls:  # the client's port is that of the proxy before this one
                port = 443 if ex.https else 80
            lines += b"x-forwarded-port: %d\r\n" % port
        if self.scheme:
            lines += b"x-forwarded-scheme: %b\r\n" % scheme
        if self.old_scheme:
            lines += b"x-scheme: %b\r\n" % scheme
        if self.original_for:
            value = join_values(base, head, EF_H_X_FORWARDED_FOR, b"x-forwarded-for", 0)
            if value:
                lines += b"x-original-forwarded-for: %b\r\n" % value
        if self.original_host and ex.forwarded_host:
            lines += b"x-original-forwarded-host: %b\r\n" % ex.forwarded_host
        if self.original_uri:
            lines += b"x-original-uri: %b\r\n" % original_target(base, head, query, query_len)
        if self.certificate is not None:
            lines += self.certificate.lines(ex)
        lines = without(lines, ops)
        out_reserve(out, PyBytes_GET_SIZE(lines) + 512 + PyBytes_GET_SIZE(ex.settings.via))
        out_bytes(out, lines)
        return 0


cdef bytes join_values(const uint8_t *base, ef_head *head, unsigned id, bytes name, uint8_t but):
    """The values of all lines of a name, but those with one of these flags (EF_SPAN_*); None: there is no such line."""
    cdef const ef_span *span
    cdef bytes joined = None, value
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if (
            span.id == id and not span.flags & but and span.name_len == <size_t>PyBytes_GET_SIZE(name)
            and strncasecmp(<const char *>base + span.name_off, PyBytes_AS_STRING(name), span.name_len) == 0
        ):
            value = base[span.val_off:span.val_off + span.val_len]
            joined = value if joined is None else joined + b", " + value
    return joined


cdef bytes original_target(const uint8_t *base, ef_head *head, const uint8_t *query, size_t query_len):
    """The path as the client sent it, and the query without the credentials that policies have taken out."""
    cdef bytes path = b"/" if head.target_empty_path else base[head.target_off:head.target_off + head.path_len]
    return path if query == NULL else path + b"?" + query[:query_len]
