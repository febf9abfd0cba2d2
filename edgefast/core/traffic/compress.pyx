# Compress: encodes answers of backends without an encoding (ir.Compression; encoding.py has the encoders).
#
# In: the request's Accept-Encoding, the head and the bytes of an answer.
# Out: the same, encoded, at most a small read (READ_SMALL) per turn; an answer without a length is forwarded as it comes. The answer gets
# Content-Encoding, Vary and a weak ETag; a 304 gets the same fields as the client's stored answer. A worker encodes PRESSES answers at a
# time, which bounds memory; it forwards others unchanged.
# Must never: encode a partial answer (206), one with no-transform, or one with an encoding; end an answer that its backend has not ended.

cdef uint32_t HASH_ACCEPT_ENCODING = ef_name_hash(<const uint8_t *>b"accept-encoding", 15)
cdef uint32_t HASH_CONTENT_ENCODING = ef_name_hash(<const uint8_t *>b"content-encoding", 16)
cdef uint32_t HASH_CONTENT_RANGE = ef_name_hash(<const uint8_t *>b"content-range", 13)
cdef uint32_t HASH_CACHE_CONTROL = ef_name_hash(<const uint8_t *>b"cache-control", 13)
cdef uint32_t HASH_IF_NONE_MATCH = ef_name_hash(<const uint8_t *>b"if-none-match", 13)
cdef uint32_t HASH_ETAG = ef_name_hash(<const uint8_t *>b"etag", 4)
cdef uint32_t HASH_VARY = ef_name_hash(<const uint8_t *>b"vary", 4)
cdef frozenset _OF_BYTES = frozenset((b"accept-ranges", b"content-digest", b"digest", b"content-md5"))  # of what is not sent
cdef frozenset _PLAIN_TYPES = frozenset((
    b"application/json", b"application/javascript", b"application/x-javascript", b"application/ecmascript", b"application/xml",
    b"application/xhtml+xml", b"application/wasm", b"application/graphql", b"application/x-ndjson", b"application/yaml",
    b"application/vnd.ms-fontobject", b"application/x-font-ttf", b"font/ttf", b"font/otf", b"font/collection", b"image/svg+xml",
    b"image/bmp", b"image/x-icon", b"image/vnd.microsoft.icon",
))


cdef bint is_plain_type(bytes kind):
    """Encoding makes it smaller: text, and what is written as text; fonts and pictures that are as they are."""
    kind = kind.partition(b";")[0].strip(b" \t").lower()
    return kind.startswith(b"text/") or kind in _PLAIN_TYPES or kind.endswith(b"+json") or kind.endswith(b"+xml")


cdef int learn_encodings(Exchange ex, const uint8_t *base, const ef_head *head) except -1:
    """The Accept-Encoding and If-None-Match that the client sent. Several lines are one list (RFC 9110 5.3); a list that is too long is ignored."""
    ex.accepts = list_of(base, head, HASH_ACCEPT_ENCODING, b"accept-encoding", ACCEPT_ENCODING)
    ex.validators = list_of(base, head, HASH_IF_NONE_MATCH, b"if-none-match", VALIDATORS)
    return 0


cdef bytes list_of(const uint8_t *base, const ef_head *head, uint32_t hashed, bytes name, size_t most):
    """All lines of a field, joined; None: the head has no such line, or they are longer than `most` bytes."""
    cdef const ef_span *span
    cdef bytes found = None, value
    cdef size_t size = 0
    cdef uint16_t i
    for i in range(head.n_spans):
        span = &head.spans[i]
        if is_named(base, <ef_span *>span, hashed, PyBytes_AS_STRING(name), <uint32_t>PyBytes_GET_SIZE(name)):
            size += <size_t>span.val_len + 1
            if size > most:
                return None
            value = base[span.val_off:span.val_off + span.val_len]
            found = value if found is None else found + b"," + value
    return found


cdef bint was_encoded(Exchange ex, tuple encodings, bytes etag):
    """The client's stored answer with this strong ETag was encoded: its ETag is weak there. Without If-None-Match, Accept-Encoding
    decides."""
    if ex.validators is not None and etag in ex.validators:
        return b"W/" + etag in ex.validators
    return ex.accepts is not None and bool(choose_encoding(ex.accepts.decode("latin-1"), encodings))


cdef bint may_encode(Exchange ex) noexcept:
    """It takes ten times as long as to pass on what is read."""
    return ex.accepts is not None and (ex.retry.state != TRY_ANSWERED or (ex.compressor is not None and ex.compressor.encoder is not None))


cdef class Compression:
    def __init__(self, spec):
        """spec: ir.Compression."""
        self.encodings = tuple(spec.encodings)
        self.min_size = spec.min_size
        self.lines = {name: b"content-encoding: %b\r\n" % name.encode() for name in self.encodings}

    cdef ResponseCompressor begin(self, Exchange ex, const uint8_t *base, ef_head *head):
        """Of an answer whose head is here; None: it goes on as it is."""
        cdef ef_span *span
        cdef ef_span *etag = NULL
        cdef bytes kind = None, vary = b"", value
        cdef list gone = []
        cdef ResponseCompressor compressor
        cdef uint16_t i
        cdef bint unchanged = head.response_status == 304
        if (
            (head.body == EF_BODY_NONE and ex.method != EF_M_HEAD and not unchanged) or ex.grpc or ex.up.tunnel
            or head.response_status < 200 or head.response_status == 204 or head.response_status == 205
            or head.response_status == 206
            or (head.body == EF_BODY_LENGTH and head.content_length < self.min_size and not unchanged)
        ):
            return None
        for i in range(head.n_spans):
            span = &head.spans[i]
            if is_named(base, span, HASH_CONTENT_TYPE, "content-type", 12):
                kind = base[span.val_off:span.val_off + span.val_len]
            elif is_named(base, span, HASH_CONTENT_ENCODING, "content-encoding", 16):
                if base[span.val_off:span.val_off + span.val_len].lower() != b"identity":
                    return None
                gone.append(i)
            elif is_named(base, span, HASH_CONTENT_RANGE, "content-range", 13):
                return None
            elif is_named(base, span, HASH_CACHE_CONTROL, "cache-control", 13):
                if b"no-transform" in base[span.val_off:span.val_off + span.val_len].lower():
                    return None
            elif is_named(base, span, HASH_VARY, "vary", 4):
                vary += base[span.val_off:span.val_off + span.val_len].lower() + b","
            elif is_named(base, span, HASH_ETAG, "etag", 4):
                etag = span
                gone.append(i)
            elif span.id == EF_H_CONTENT_LENGTH or base[span.name_off:span.name_off + span.name_len].lower() in _OF_BYTES:
                gone.append(i)
        if not is_plain_type(kind) if kind is not None else not unchanged:  # a 304 has no content type (RFC 9110 15.4.5)
            return None
        compressor = ResponseCompressor.__new__(ResponseCompressor)
        compressor.lines = b"" if b"accept-encoding" in vary or b"*" in vary else b"vary: Accept-Encoding\r\n"
        if unchanged:
            if etag != NULL:
                value = base[etag.val_off:etag.val_off + etag.val_len]
                if not value.startswith(b"W/") and was_encoded(ex, self.encodings, value):
                    compressor.lines += b"etag: W/%b\r\n" % value
                    etag.flags |= EF_SPAN_HOP
            return compressor
        if ex.method == EF_M_HEAD:  # it says of what its answer depends, and has nothing to encode
            return compressor
        name = choose_encoding(ex.accepts.decode("latin-1"), self.encodings) if ex.accepts is not None else ""
        if not name or ex.engine.compressing >= COMPRESSORS:
            return compressor
        compressor.encoder = make_encoder(name)
        ex.engine.compressing += 1
        ex.engine.count(G_COMPRESSED)
        compressor.lines += self.lines[name]
        if etag != NULL:
            value = base[etag.val_off:etag.val_off + etag.val_len]
            compressor.lines += b"etag: %b%b\r\n" % (b"" if value.startswith(b"W/") else b"W/", value)
        for at in gone:
            head.spans[at].flags |= EF_SPAN_HOP
        compressor.streams = head.body != EF_BODY_LENGTH
        head.body = EF_BODY_EOF  # of no length; how it is framed is not known here
        head.content_length = 0
        return compressor


cdef class ResponseCompressor:
    def __dealloc__(self):
        out_free(&self.out)

    cdef int put(self, Exchange ex, const uint8_t *data, size_t n) except -1:
        """A piece of the answer."""
        cdef size_t at = 0, size
        ex.engine.count_n(G_COMPRESSED_IN, n)
        self.dirty = True
        while at < n:
            size = COMPRESS_SLICE if n - at > COMPRESS_SLICE else n - at
            self.add(ex, self.encoder.put(data[at:at + size]))
            at += size
        return 0

    cdef int add(self, Exchange ex, bytes data) except -1:
        cdef size_t n = PyBytes_GET_SIZE(data)
        if n:
            out_reserve(&self.out, n)
            out_raw(&self.out, PyBytes_AS_STRING(data), n)
            ex.bytes_out += n
            ex.engine.count_n(G_COMPRESSED_OUT, n)
        return 0

    cdef int hand_over(self, Exchange ex, bint ended) except -1:
        """Its client's stream gets what is ready; it has to stay until that is flushed."""
        if ended:
            self.add(ex, self.encoder.finish())
        elif self.streams and self.dirty:
            self.dirty = False
            self.add(ex, self.encoder.flush())
        return ex.down.response_body(self.out.data, self.out.size) if self.out.size else 0

    cdef int end(self, Exchange ex) except -1:
        """It is over, however."""
        if self.encoder is not None:
            self.encoder.close()
            self.encoder = None
            ex.engine.compressing -= 1
        return 0


cdef int hand_over(Exchange ex, bint ended) except -1:
    """What is ready of an answer that is made anew on its way: gRPC-Web, or another encoding. It stays until it is flushed."""
    if ex.web is not None:
        return ex.web.hand_over(ex.down)
    if ex.compressor is not None and ex.compressor.encoder is not None:
        return ex.compressor.hand_over(ex, ended)
    return 0


cdef int handed_over(Exchange ex) except -1:
    """It is flushed."""
    if ex.web is not None:
        ex.web.flushed()
    elif ex.compressor is not None and ex.compressor.out.cap:
        out_free(&ex.compressor.out)
    return 0
