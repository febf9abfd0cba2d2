# Routed: the parts of a request that the steps to a rule and from there need.

cdef struct Routed:
    const uint8_t *base         # what the offsets of `head` count from
    ef_head *head
    const uint8_t *path         # normalized: what the rule's match saw
    size_t path_len
    const uint8_t *query        # NULL: none
    size_t query_len
    uint16_t hidden             # spans of `head` behind its n_spans: lines that proofs and authorisation services set and are shown, and nobody else
    size_t given                # bytes of `base` that are the client's: lines behind them its listener's filters gave it; 0: all are
    size_t prefix_len           # bytes of `path` that a prefix match took
