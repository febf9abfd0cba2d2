# gRPC-Web: calls of browsers become gRPC, and their answers gRPC-Web (EdgeProxy spec.grpc.web, docs/guides/grpc.md).
#
# In: heads, bodies and trailers between a client's stream and a backend's.
# Out: the same with another content type; text in Base64 (csrc/base64.h); the trailers as a frame at the end of the body, which a browser
# can read. Messages have the same framing in both, so nothing is buffered beyond one read.
# Source: github.com/grpc/grpc doc/PROTOCOL-WEB.md.

cdef uint32_t HASH_CONTENT_TYPE = ef_name_hash(<const uint8_t *>b"content-type", 12)
cdef uint32_t HASH_GRPC_MESSAGE = ef_name_hash(<const uint8_t *>b"grpc-message", 12)
cdef uint32_t HASH_GRPC_DETAILS = ef_name_hash(<const uint8_t *>b"grpc-status-details-bin", 23)

cdef enum:
    WEB_CODEC = 64  # bytes of "+proto" and the like, as an answer repeats them


cdef bytes web_frame(bytes lines):
    """Trailers as the last frame of a body: bit 0x80, their length, names in lower case."""
    cdef list parts = []
    for line in lines.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon:
            parts.append(b"%b:%b\r\n" % (name.lower(), value))
    text = b"".join(parts)
    return b"\x80" + len(text).to_bytes(4, "big") + text


cdef class GrpcWeb:
    def __dealloc__(self):
        out_free(&self.out)

    # --- the request -----------------------------------------------------------------------------------------------

    cdef int learn(self, const uint8_t *base, ef_head *head) except -1:
        """What is asked for."""
        cdef ef_span *span
        cdef bytes behind = b""
        cdef uint16_t i
        self.text = head.grpc == EF_GRPC_WEB_TEXT
        for i in range(head.n_spans):
            span = &head.spans[i]
            if is_named(base, span, HASH_CONTENT_TYPE, "content-type", 12):
                behind = base[span.val_off:span.val_off + span.val_len][25 if self.text else 20:]
        codec = behind.partition(b";")[0].rstrip()
        if len(codec) > WEB_CODEC:
            codec = b""
        self.request_line = b"content-type: application/grpc%b\r\n" % behind
        self.answer_line = b"content-type: application/grpc-web%b%b\r\n" % (b"-text" if self.text else b"", codec)
        return 0

    cdef int begin_request(self, const uint8_t *base, ef_head *head) except -1:
        """Lines that are not the backend's; request_line comes in their place."""
        cdef ef_span *span
        cdef uint16_t i
        for i in range(head.n_spans):
            span = &head.spans[i]
            if is_named(base, span, HASH_CONTENT_TYPE, "content-type", 12) or (self.text and span.id == EF_H_CONTENT_LENGTH):
                span.flags |= EF_SPAN_HOP
        return 0

    cdef int request_body(self, Exchange ex, iovec *iov, int n, int64_t left) except -1:
        """Text of the client; what it says goes on at once."""
        cdef Out plain
        cdef iovec piece
        cdef int64_t got
        cdef int i
        memset(&plain, 0, sizeof(plain))
        try:
            for i in range(n):
                out_reserve(&plain, EF_BASE64_BYTES(iov[i].iov_len))
                got = ef_base64_decode(&self.group, <const uint8_t *>iov[i].iov_base, iov[i].iov_len, plain.data + plain.size)
                if got < 0:
                    return ex.malformed()
                plain.size += <size_t>got
            piece.iov_base = plain.data
            piece.iov_len = plain.size
            return ex.body.take(ex, &piece, 1 if plain.size else 0, plain.size, 0 if left == 0 else -1)
        finally:
            out_free(&plain)

    cdef bint whole(self) noexcept:
        """The request may end here."""
        return not self.text or ef_base64_whole(&self.group)

    # --- its answer ------------------------------------------------------------------------------------------------

    cdef int begin_answer(self, const uint8_t *base, ef_head *head) except -1:
        """The backend's head; what is not gRPC goes on as it is. So does every status but gRPC's own 200: some of the others end at their head,
        and what came behind it would be the next answer's (RFC 9112 6.3). A status of gRPC that is all there is comes as a frame, too: of other
        fields a browser sees those alone that CORS exposes."""
        cdef ef_span *span
        cdef bint alone = is_whole(head)
        cdef uint16_t i
        cdef list lines = []
        self.trailers_sent = False
        self.translates = head.grpc == EF_GRPC and head.response_status == 200
        if not self.translates:
            return 0
        for i in range(head.n_spans):
            span = &head.spans[i]
            if span.id == EF_H_CONTENT_LENGTH or is_named(base, span, HASH_CONTENT_TYPE, "content-type", 12):
                span.flags |= EF_SPAN_HOP
            elif alone and (
                is_named(base, span, HASH_GRPC_STATUS, "grpc-status", 11) or is_named(base, span, HASH_GRPC_MESSAGE, "grpc-message", 12)
                or is_named(base, span, HASH_GRPC_DETAILS, "grpc-status-details-bin", 23)
            ):
                span.flags |= EF_SPAN_HOP
                lines.append(base[span.name_off:span.line_end])
        head.body = EF_BODY_EOF  # of no length; how it is framed is not known here
        head.content_length = 0
        if lines:
            self.trailers_sent = True
            frame = web_frame(b"".join(lines))
            return self.put(<const uint8_t *>PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame))
        return 0

    cdef int answer_body(self, Inbound down, const uint8_t *data, size_t n) except -1:
        return self.put(data, n) if self.translates and self.text else down.response_body(data, n)

    cdef int answer_trailers(self, const uint8_t *lines, size_t n) except -1:
        """The last frame; none behind one that the head became: "content-length: 0" ends no stream of HTTP/2."""
        if self.trailers_sent:
            return 0
        cdef bytes frame = web_frame(lines[:n])
        return self.put(<const uint8_t *>PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame))

    cdef int put(self, const uint8_t *data, size_t n) except -1:
        """Into what is handed over next."""
        out_reserve(&self.out, EF_BASE64_CHARS(n))
        if self.text:
            ef_base64_encode(data, n, self.out.data + self.out.size)
            self.out.size += EF_BASE64_CHARS(n)
        else:
            out_raw(&self.out, data, n)
        return 0

    cdef int hand_over(self, Inbound down) except -1:
        """Its client's stream gets what is ready; it has to stay until that is flushed."""
        return down.response_body(self.out.data, self.out.size) if self.out.size else 0

    cdef void flushed(self) noexcept:
        if self.out.cap:
            out_free(&self.out)

    cdef tuple own_answer(self, bytes own, bytes lines):
        """Lines and body of an answer of the proxy's own; `own` is how gRPC has its head (grpc_lines)."""
        frame = web_frame(own.partition(b"\r\n")[2])
        return self.answer_line + lines, b64encode(frame) if self.text else frame
