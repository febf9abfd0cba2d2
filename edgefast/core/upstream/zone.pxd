# Zone: the zone of a user's endpoint (ir.ZoneAware), and the zones of a cluster's endpoints.

cdef class Zones:
    cdef:
        Engine engine
        str own         # that this worker is in; "": it is not known
        dict proxies    # zone -> proxies of the fleet that are ready there
        object rules    # ir.ZoneAware -> ZoneRule, of those that anybody has

    cdef ZoneRule rule_of(self, object spec)


cdef class ZoneRule:
    cdef:
        uint32_t percent        # of choices that it is for
        uint32_t min_endpoints  # well ones, of all zones
        uint32_t force          # well ones, in our zone; 0: no more stays than is its share
        object __weakref__
        dict weights            # zone -> how much it gets; None: ours comes first


cdef enum:
    ZONE_RULES = 32     # of a cluster, whose chances are kept


# How choices by a rule fall on a cluster's zones, as it is now.
cdef class ZoneWeights:
    cdef:
        uint32_t size
        double *upto            # of each zone: that a choice falls on it or one before it
        int only                # the one that has all; -1: by chance; -2: endpoints of all zones are alike

    cdef int make(self, Cluster cluster, ZoneRanges runs, ZoneRule rule, uint8_t health_mask) except -1
    cdef int draw(self, uint64_t rnd) noexcept


# Endpoints of a cluster lie zone by zone: each has a run of them.
cdef class ZoneRanges:
    cdef:
        uint32_t size           # runs
        uint32_t *begin         # of each its first endpoint, and of the last one its end
        list names              # of each
        int own                 # ours; -1: it has none
        dict made               # (ZoneRule, bits) -> ZoneWeights, since anybody's health has changed
        # The last ones of them, and what they are of.
        ZoneWeights last
        ZoneRule rule           # None: none yet
        uint8_t health_mask

    cdef int forget(self) except -1
    cdef int recall(self, Cluster cluster, ZoneRule rule, uint8_t health_mask) except -1

cdef Endpoint choose_near(Cluster cluster, uint64_t tried)
