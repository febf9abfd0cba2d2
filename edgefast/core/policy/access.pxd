# Access: authorization rules about visible parts of a request.

# Addresses from..to, both included. IPv4 has its four bytes in `low`; IPv6 has halves, so that two comparisons order them.
cdef struct AccessSpan:
    uint64_t from_high, from_low
    uint64_t to_high, to_low


# One header of a rule.
cdef class AccessHeader:
    cdef:
        bytes name              # lower case
        HeaderNames spellings   # what a backend may take for it
        frozenset values

    cdef bint holds(self, bint allow, const ef_request *request) except -1


# ir.AccessRule, ready to use.
cdef class AccessTest:
    cdef:
        bint allow
        bint asks_address, asks_method
        bint asks_request       # a condition that no connection has
        bint asks_tls           # one about its server name or client certificate
        frozenset server_names  # None: any
        list suffixes           # b".example.com" of wildcards among them
        frozenset dns, uris     # names of a client certificate; None: any, or none
        AccessSpan *v4          # sorted, apart from each other
        AccessSpan *v6
        int n_v4, n_v6
        uint64_t methods        # a bit for each enum ef_method
        list headers            # of AccessHeader; None: it has none
        list paths              # (kind, path, the same with its escapes read, compiled RE2 or None); None: it has none
        object token            # ir.AccessToken; None: it asks for none
        bytes log               # b'"name"', or its number

    cdef bint holds(self, const uint8_t *address, Peer peer, const ef_request *request, list readings, RuleAuthFlow flow) except -1
    cdef bint holds_for_connection(self, const uint8_t *address, bytes sni, ClientCertificate certificate) except -1
    cdef bint has_server_name(self, bytes sni) except -1
    cdef bint has_certificate(self, ClientCertificate certificate) except -1
    cdef bint has_token(self, RuleAuthFlow flow) except -1
    cdef bint has_address(self, const uint8_t *address) noexcept
    cdef bint has_path(self, const ef_request *request, list readings) except -1


cdef class Access:
    cdef:
        Engine engine
        list rules              # of AccessTest
        HeaderNames names       # that rules ask for; None: none
        bint asks_address       # some rule does
        bint denies_paths       # some rule does
        bint asks_token         # some rule does
        bint asks_request       # some rule does
        bint asks_certificate   # some rule does
        bint allow              # what is decided where no rule holds
        AccessTest decided      # by whom it was the last time; None: no rule held

    cdef bint admits_connection(self, const uint8_t *address, bytes sni, ClientCertificate certificate) except -1
    cdef bint admits(self, bytes client, Peer peer, const ef_request *request, RuleAuthFlow flow) except -1
