# From (port, Host, request) to a rule.

# A virtual host with the rules that were resolved so far. Blobs lie in the arena.
cdef struct Host:
    ef_vhost vhost
    PyObject **rules        # of the root blob: Rule or NULL, by rule number; NULL array until the first hit
    PyObject ***parts       # the same for each fragment; NULL when there are none
    uint32_t n_rules        # of the root; what follows is counted here, because a Host may outlive its blobs
    uint32_t *n_part_rules  # of each fragment


cdef class ListenerTable:
    cdef:
        readonly str name
        object spec             # ir.Listener; None until it has come
        bytes hostname          # lower case; b"*" for any; b"*.suffix" kept with its star
        HttpSettings settings
        ef_map hosts            # hash of hostname -> Host *
        bint has_wildcards, has_any
        bint log_off
        double log_sampling
        int log_min_status
        int64_t log_min_ms

    cdef Host *find(self, const uint8_t *host, size_t n) noexcept
    cdef int put(self, bytes hostname, Host *host) except -1
    cdef int remove(self, bytes hostname) except -1
    cdef void clear(self) noexcept


cdef class PortTable:
    cdef:
        Engine engine
        readonly int number
        HttpSettings settings
        list listeners
        ListenerTable only      # the one listener of a port that takes every host
        dict exact              # bytes -> ListenerTable
        dict wildcards          # b".suffix" -> ListenerTable
        ListenerTable any
        bint proxy_protocol
        bint log_off            # no listener of the port writes an access log

    cdef ListenerTable find(self, const uint8_t *host, size_t n)
    cdef Rule match(self, ListenerTable listener, const uint8_t *host, size_t n, const ef_request *request, ef_hit *hit)
    cdef Rule match_host(self, ListenerTable listener, Host *host, const ef_request *request, ef_hit *hit)
    cdef bint regexes_hold(self, const ef_request *request, const ef_hit *hit) except -1
