# Which zone's endpoints a user gets (ir.ZoneAware), and where a cluster's are.

cdef class Zones:
    cdef:
        Engine engine
        str own         # that this worker is in; "": it is not known
        dict proxies    # zone -> proxies of the fleet that are ready there


cdef class ZoneRule:
    cdef:
        uint32_t percent        # of choices that it is for
        uint32_t min_endpoints  # well ones, of all zones
        uint32_t force          # well ones, in our zone; 0: no more stays than is its share
        dict weights            # zone -> how much it gets; None: ours comes first


# Endpoints of a cluster lie zone by zone: each has a run of them.
cdef class ZoneRuns:
    cdef:
        uint32_t size           # runs
        uint32_t *begin         # of each its first endpoint, and of the last one its end
        double *chance          # of each: that a choice falls on it or one before it
        list names              # of each
        int own                 # ours; -1: it has none
        # What `chance` was made for, and what came of it.
        ZoneRule rule           # None: for nobody yet, or endpoints are others
        uint8_t heed
        int only                # the one that has all; -1: by chance; -2: endpoints of all runs are alike

    cdef int settle(self, Cluster cluster, ZoneRule rule, uint8_t heed) except -1
    cdef int draw(self, uint64_t rnd) noexcept
