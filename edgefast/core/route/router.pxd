# Router: from (port, Host, request) to a rule.

# A virtual host with the rules that were resolved so far. Blobs lie in the arena. What a request to a host of
# one rule reads is side by side, two lines with a name of usual length: in a large table each line of memory that is not in a cache costs
# more than the work done on it.
cdef struct Host:
    PyObject **rules        # of the root blob: Rule or NULL, by rule number; NULL array until the first hit, or with one rule
    PyObject ***parts       # as `rules`, of each fragment; NULL when there are none
    uint32_t *n_part_rules  # of each fragment
    ef_vhost vhost
    PyObject *rule          # the only rule of the root blob, when it has but one
    ef_single_path single            # of the root, when it is one path
    uint32_t n_rules        # of the root; counted here as those above are, because a Host may outlive its blobs
    uint32_t name_len
    # behind it: name_len bytes of hostname, lower case


cdef class ListenerTable:
    cdef:
        readonly str name
        object spec             # ir.Listener; None until it has come
        bytes hostname          # lower case; b"*" for any; b"*.suffix" kept with its star
        HttpSettings settings
        ClientCheck client_check    # of certificates; None: the handshake decides, or there is no rule
        ListenerFilters filters # None: there are none
        ef_map hosts            # hash of hostname -> Host *
        bint has_wildcards, has_any
        bint log_off
        double log_sampling
        int log_min_status
        int64_t log_min_ms
        LogFormat log_program  # None: the default line
        bint traces
        double trace_share      # of the requests that bring no decision

    cdef Host *find(self, const uint8_t *host, size_t n) noexcept
    cdef int put(self, bytes hostname, Host *host) except -1
    cdef int remove(self, bytes hostname) except -1
    cdef void clear(self) noexcept


cdef class PortTable:
    cdef:
        object __weakref__
        Engine engine
        readonly int number
        readonly tuple key      # (number, addresses)
        HttpSettings settings
        list listeners
        ListenerTable only      # the one listener of a port that takes every host
        dict exact              # bytes -> ListenerTable
        dict wildcards          # b".suffix" -> ListenerTable
        ListenerTable any
        bint proxy_protocol
        object shake            # what its last listeners of TLS ask of clients
        uint32_t open           # connections that have a place (h1/connection_limit.pyx)
        ConnectionShare places  # by client; None: places have not run out
        LongStreams streams     # its long-lived streams; None: no stream is open
        bint log_off            # no listener of the port writes an access log
        bint log_wants_request, log_wants_answer, log_wants_address, log_wants_upstream  # what some listener's lines need besides
        bint traces             # some listener does
        ListenerTable log_first # writes the lines of messages that reach no listener; None: the default line
        uint64_t near_hash      # of the Host that is being brought near; 0 none
        Host *near_host         # what was found for it; valid during the call that routes the request

    cdef void approach(self, const uint8_t *host, size_t n) noexcept
    cdef void approach_host(self) noexcept
    cdef void approach_table(self) noexcept
    cdef ListenerTable find(self, const uint8_t *host, size_t n)
    cdef Rule match(self, ListenerTable listener, const uint8_t *host, size_t n, const ef_request *request, ef_hit *hit)
    cdef Rule match_host(self, ListenerTable listener, Host *host, const ef_request *request, ef_hit *hit)
    cdef int resolve(self, ListenerTable listener, PyObject **place, const ef_hit *hit) except -1
    cdef bint regexes_hold(self, const ef_request *request, const ef_hit *hit) except -1
    cdef bint cookie_holds(self, const ef_request *request, const ef_regex_pred *pred) except -1
