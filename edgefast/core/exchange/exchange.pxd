# One request in flight, and copies of it for mirrors. Knows nothing of HTTP/1: codecs read heads and write them.

# Reason flags of an exchange (access log, csrc-free; docs/guides/operations.md lists them).
cdef enum Flag:
    F_NO_ROUTE = 1
    F_NO_ENDPOINT = 2
    F_OVERFLOW = 4
    F_CONNECT = 8
    F_RESET = 16
    F_PROTOCOL = 32
    F_TIMEOUT = 64
    F_CLIENT_GONE = 128
    F_RETRIED = 256
    F_INVALID = 512         # the rule or backend is refused by configuration
    F_REDIRECT = 1024
    F_CORS = 2048
    F_MISDIRECTED = 4096
    F_TOO_LARGE = 8192
    F_IDLE = 16384
    F_LIMITED = 32768
    F_LIMIT_ERROR = 65536   # the store of rate limits failed: passed or refused by policy
    F_SLOW_READER = 131072  # its client read too slowly while others waited for the connection
    F_DENIED = 262144       # a policy does not let it in
    F_AUTH_ERROR = 524288   # a service that was to judge it failed: passed or refused by policy
    F_DELAYED = 1048576     # a policy made it wait
    F_FAULT = 2097152       # a policy refused it on purpose
    F_COUNT = 22


# The fields are in three blocks: parts, references, plain fields. A reused exchange keeps the parts and resets them; all references become
# None and all plain fields 0 (freelist.pyx).
@cython.final
cdef class Exchange(UpstreamUser):
    cdef:
        # parts
        Body body
        RetryState retry
        # references; those that most requests have come first
        Inbound down
        Rule rule
        Backend backend
        ListenerTable listener
        bytes client            # the address to believe (EdgeProxy clientAddress)
        bytes up_protocol       # of the last attempt
        AuthFlow auth           # authentication, services or a delay hold the request; None: nothing does
        LimitDecision decision  # of the rule's limits; None when none counts the request
        Trace trace             # None: not traced here
        LogCapture kept         # what the log needs besides `raw`; None: nothing
        bytes received          # x-forwarded-for as it came, joined; None when it is of no concern
        bytes forwarded_host    # x-forwarded-host as it came, joined; None when it is of no concern (head/forwardedheaders.pyx)
        bytes forwarded_cert    # x-forwarded-client-cert as it came, joined; None when it is of no concern (head/certificateheaders.pyx)
        bytes asked             # the protocols of Upgrade as the backend gets them; None: no upgrade
        list sets               # HeaderNames that whoever judges it may set, and no client; None: none
        bytes filter_lines      # lines that its listener's filters gave it; None: there are no such filters, or they said nothing
        AuthResponse auth_result  # what those said of it that let it pass, beside its lines; None: nothing
        Policy refuser          # the unit that refused it; None: none did
        bytes refuser_rule      # of an authorization, as JSON; None: none
        object token            # Outcome of the signed token that its client has shown (edgefast/auth/jwt); None: none that is good
        str token_unit          # of whose providers
        bytes user              # who its client has proven to be, as JSON; None: nobody
        bytes cors_lines
        HeaderOps own_ops       # changes of the rule's filters to the proxy's own answers; None: none
        GrpcWeb web             # it came as gRPC-Web, and so goes its answer; None: it did not
        ResponseCompressor compressor  # what encodes its answer, or says that it might; None: nothing does
        LimitedResponse bandwidth  # the bandwidth limit of its response; None: no limit
        bytes accepts           # Accept-Encoding of its client, where a policy asks for it; None: there is none
        bytes validators        # If-None-Match of its client, likewise
        bytes host              # of the request, lower case, where rewrites of its response name it (head/responserewrite.pyx)
        bytes rewritten         # lines of its backend's response in place of those that were marked; None: there are none
        bytes new_cookies       # lines with its client's new cookies (policy/hashpolicy.pyx, sessionpolicy.pyx); None: it gets none
        NamedSession session    # what it says of its session; None: its rule has none
        Override override       # what is answered when the backend's answer has been read; None: that one
        tuple error_request     # what error services are shown of it: header lines, target, path, query, authority; None: none is asked
        AnswerShare slow        # its answer waits for its client; None: it does not
        BodyShare joined_share  # whose end it waits for; None: none
        # plain fields
        Out head                # the request head as the backend gets it
        Out raw                 # the client's head, for the access log
        int64_t started         # us
        int64_t upstream_us     # us from the head of the last attempt to the response head
        int64_t route_deadline, idle_deadline, ask_at   # ms; 0 none
        int64_t since           # ms; when it was shown to filters of its listener, whose time is the request's; 0: it was not
        int64_t request_timeout # ms; -1 unset (the default bounds the response head), 0 none
        int64_t idle_timeout    # ms
        int64_t send_timeout    # ms; 0 none
        int64_t retry_timeout   # ms from its first attempt, after which no other one begins; 0 none
        int64_t send_deadline   # ms; the backend is to have taken something by then; 0: nothing waits for it
        size_t send_left        # bytes that it had not taken when it was looked at last
        int64_t client_deadline # ms; when its client gives up (grpc-timeout); 0: it does not say
        uint64_t bytes_out
        uint32_t flags
        int failure             # UpFailure of the last connection that was not made
        int status
        int http_status         # gRPC: the status of HTTP that says the same of how it ended; 0: not known yet
        int grpc_status         # of the answer; -1: not known yet
        size_t timeout_at       # where grpc-timeout has its digits in `head`; 0: it has none
        unsigned method
        bint grpc_answer        # its answer is, and may end with a status at any time
        bint upgrade            # asked for
        bint takes_trailers     # the client said so (TE)
        bint tunnel             # the backend has agreed
        bint finished
        bint forwarded          # counts in what the cluster's budget is a part of
        bint https              # the client's scheme is https: the connection's, or that of a trusted proxy (x-forwarded-proto)
        bint overridden         # its answer is one in place of another
        bint faulted            # a fault has had its chance
        bint secret_query       # a credential is in it
        int64_t reads_until     # ms; what the client has taken is enough until then (answerRate)
        int64_t slow_at         # ms; since then its client is what its answer waits for
        size_t slow_left        # bytes that it had not taken then
        size_t untaken          # bytes that it had not taken when it was looked at last
        bint lasts              # it is a long-lived stream (longstreams.pyx)
        int64_t long_at         # ms; an answer that lasts until then is one; 0: it is not looked at
        uint32_t method_len, target_off, target_len, authority_off, authority_len, agent_off, agent_len
        uint8_t request_id[64]
        uint32_t request_id_len

    # the request
    cdef int begin(self, const uint8_t *base, ef_head *head) except -1
    cdef int route(self, Routed *at, ef_request *request) except -1
    cdef int admit(self, Routed *at, const ef_request *request) except -1
    cdef int forward(self, Routed *at) except -1
    cdef int refuse_body(self) except -1
    # what its client sends and takes
    cdef int request_body(self, iovec *iov, int n, size_t total, int64_t left) except -1
    cdef int request_trailers(self, const uint8_t *lines, size_t n) except -1
    cdef int request_end(self) except -1
    cdef int flush(self) except -1
    cdef int malformed(self) except -1
    cdef int allow_body(self) except -1
    cdef int on_down_writable(self) except -1
    cdef int client_gone(self) except -1
    cdef int tunnel_closed(self) except -1
    cdef int tunnel_half_closed(self) except -1
    # its backend
    cdef int write(self, iovec *iov, int n, size_t total, bint end) except -1
    cdef bint forwards_bulk(self) noexcept
    cdef int drop_upstream(self, Cut why) except -1
    cdef int rearm(self) except -1
    cdef int on_timeout(self, uint32_t flag) except -1
    cdef int bound_answer(self) except -1
    # places that others need
    cdef int read_on(self) except -1
    cdef int cut_answer(self) except -1
    cdef int leave_share(self) except -1
    cdef int64_t inactive_since(self) noexcept
    cdef int preempt(self) except -1
    # ends
    cdef int answer(self, int status, bytes lines, uint32_t flag) except -1
    cdef int fail(self, int status, uint32_t flag) except -1
    cdef int respond(self, int status, bytes lines, bytes reason) except -1
    cdef int abort(self, uint32_t flag) except -1
    cdef int finish(self) except -1


# Why a copy is dropped (cells.MIRROR_DROPS).
cdef enum MirrorDrop:
    MIRROR_UNREACHABLE = 0  # no connection
    MIRROR_BEHIND = 1       # it would hold more than mirrorBuffer
    MIRROR_FULL = 2         # all copies of the worker would hold more than MIRROR_MEMORY
    MIRROR_TIMEOUT = 3
    MIRROR_LOST = 4         # the mirror closed, reset, or sent no valid answer
    MIRROR_CROWDED = 5      # its cluster's connections for bodies are all held
    MIRROR_REQUEST = 6      # the request ended before its body did, or the worker stops


cdef class Mirror(UpstreamUser):
    cdef:
        Cluster cluster
        Out head
        Out body                # what the mirror's connection has not been given yet
        Out trailers
        size_t held             # bytes in `body`, and bytes that the connection has not sent
        size_t borrowed         # of these, what counts in engine.copied
        bint unsized
        uint64_t announced
        bint takes_trailers
        bint ended              # all of the request is here
        bint head_sent
        bint end_sent           # ... and the connection has been given all of it
        bint over
        unsigned method
        bytes source            # origin() of its exchange

    cdef int open(self, Exchange ex, Cluster cluster) except -1
    cdef int rearm(self) except -1
    cdef int request_body(self, iovec *iov, int n, size_t total) except -1
    cdef int request_trailers(self, Out *lines) except -1
    cdef int request_end(self) except -1
    cdef int stop(self) except -1
    cdef int write(self, iovec *iov, int n, size_t total) except -1
    cdef int write_kept(self) except -1
    cdef bint hold(self, size_t total) except -1
    cdef void holds(self, size_t held) noexcept
    cdef int drop(self, MirrorDrop why) except -1
    cdef int report(self, MirrorDrop why) except -1
    cdef int close(self) except -1

cdef Exchange make_exchange(Inbound down)
