# Tables: the applied resources by name.

cdef class Tables:
    cdef:
        Engine engine
        const uint8_t *arena
        size_t arena_size
        object view             # keeps the mapping
        str version
        dict listeners          # name -> ListenerTable
        object ports            # (number, addresses) -> PortTable, of those that an acceptor or a connection has
        dict by_port            # (number, addresses) -> its listeners
        dict clusters           # name -> Cluster, only those in use
        object retired          # name -> Cluster that was removed while somebody held it
        dict roots              # name -> (offset, length) of virtual hosts that are cut into fragments
        ef_map cluster_places   # hash of name -> place (offset << 24 | length)
        ef_map fragment_places
        dict regexes            # pattern -> compiled; (pattern,) -> compiled for bytes
        dict timeout_lines      # ms -> line
        dict plain_backends     # name of a cluster -> Backend without filters, for all rules that send to it
        dict policies           # name -> Policy, of those that the table has
        object absent           # name -> Policy that it has not, while somebody holds it
        uint64_t policy_epoch   # how often any of them has changed
        int checks              # how many of them say what endpoints are asked
        dict treated            # cluster's name -> ir.Cluster.treatments, of those that have any
        dict treatments         # one object of each that many clusters have
        uint64_t treated_epoch  # how often that has changed

    cdef int stop_idle(self) except -1
    cdef Cluster cluster(self, str name)
    cdef Cluster living(self, str name)
    cdef Policy policy(self, str name)
    cdef PortTable port(self, tuple key)
    cdef int arrange_port(self, PortTable port) except -1
    cdef Rule resolve_rule(self, const ef_hit *hit, HttpSettings settings)
    cdef bytes timeout_line(self, int64_t ms)
    cdef object regex(self, bytes pattern)
    cdef object byte_regex(self, bytes pattern)
    cdef const uint8_t *at(self, uint64_t offset, uint64_t length) except NULL
    cdef Host *make_host(self, str name, uint64_t offset, uint64_t length, dict staged, Host *before) except NULL

cdef bint has_check(traffic) noexcept
