# Inbound: the interface of an exchange to its client. A codec implements it, and alone knows framing and connection.
#
# The codec calls Exchange: begin, request_body, request_trailers, request_end, flush (no more for now), on_down_writable, client_gone. It
# calls allow_body when the client waits for permission to send its body. Of a tunnel it calls tunnel_closed (the client has ended it) and
# tunnel_half_closed (it still reads). The exchange answers with `answer` or with response_head ... response_end, once; or with `abort`; and
# ends with `done`. A session with many streams sends the output of all of them once, at the end of the turn. HTTP/1 is its own only stream;
# none of a Session's events reach the exchanges of other streams.

cdef bytes type_line(bytes lines):
    """What the body of an own answer is, where these lines do not say it."""
    return b"" if lines.startswith(b"content-type:") else b"content-type: text/plain\r\n"


cdef bytes first_lines(Engine engine, Exchange ex):
    """Server and Date of an own answer, unless the rule's filters change them. `ex` None: the message never became a request."""
    cdef bytes lines = engine.clock.server_and_date()
    return lines if ex is None or ex.own_ops is None else lines_but(lines, ex.own_ops.names)


cdef class Inbound(Session):
    cdef int send_continue(self) except -1:
        """The client may send its body (100), if it waits for that."""
        raise NotImplementedError

    cdef int pause(self) except -1:
        """No more of the body for now."""
        raise NotImplementedError

    cdef int resume(self) except -1:
        raise NotImplementedError

    cdef bint paused(self) noexcept:
        """It is we who keep the body waiting."""
        raise NotImplementedError

    cdef int answer(self, int status, bytes lines, bytes body, bint is_head) except -1:
        """The proxy's own answer, whole. A body is text, unless the first line says what it is; an empty one is `content-length: 0`, for 429
        one of unknown length (spec 7)."""
        raise NotImplementedError

    cdef int response_info(self, const uint8_t *base, ef_head *head) except -1:
        """An interim response goes on as it is, without hop-by-hop lines."""
        raise NotImplementedError

    cdef int response_head(self, const uint8_t *base, ef_head *head) except -1:
        """The backend's head, with what the rule makes of it (head/responsehead.pyx)."""
        raise NotImplementedError

    cdef int response_body(self, const uint8_t *data, size_t n) except -1:
        """Body bytes without framing; they must stay readable until response_flush or response_end."""
        raise NotImplementedError

    cdef int response_flush(self) except -1:
        """That is all for now."""
        raise NotImplementedError

    cdef int response_trailers(self, const uint8_t *lines, size_t n) except -1:
        """Fields behind the body, "name: value" lines, where the client can have them. response_end follows at once."""
        raise NotImplementedError

    cdef int response_end(self) except -1:
        raise NotImplementedError

    cdef bint takes_end(self, bint trailers) noexcept:
        """An end, with trailers or without, can come at once, whatever of the body is out: its length was not told."""
        raise NotImplementedError

    cdef bint has_room(self) noexcept:
        """A large piece of the response can be sent at once."""
        raise NotImplementedError

    cdef size_t untaken(self) noexcept:
        """Bytes of the response that its client has not acknowledged, as far as they can be told."""
        raise NotImplementedError

    cdef int refuse_more(self) except -1:
        """No request after this one from here: what the client sends is not to be trusted, or it is to come anew."""
        raise NotImplementedError

    cdef int abort(self, Cut why) except -1:
        """The response cannot be completed: say so in a way that cannot be taken for its end."""
        raise NotImplementedError

    cdef int done(self, Exchange ex) except -1:
        """The exchange has ended."""
        raise NotImplementedError

    cdef int learn_ends(self) except -1:
        """Fill in peer.local and peer.remote."""
        raise NotImplementedError
