# Check: health checks of endpoints, and their results (ir.HealthCheck).

cdef enum:
    MASK_EJECTED = 1        # bits of ef_endpoint_load.out: by the answers of requests ...
    MASK_CHECK = 2          # ... and by checks, the first of a cluster's; the others' follow
    MASK_PASSED = 128       # passed over in one choice (choice.pyx); no endpoint has it else: who heeds it alone heeds nothing
    CHECKS_MOST = 6         # of a cluster at once, as ir.CHECKS_MOST; more are not made

# States of an endpoint by a check, in its record.
cdef enum Wellness:
    UNKNOWN = 0     # it has come since, and was not asked yet: it gets requests when all others are out, too
    WELL = 1
    ILL = 2
    TRUSTED = 3     # it was there when the check began, and was not asked yet: as without any check


cdef class EndpointCheck:
    cdef:
        object spec         # ir.HealthCheck
        object __weakref__
        bytes digest        # what records are told apart by, the same in all workers


cdef class EndpointChecks:
    cdef:
        object known        # spec -> EndpointCheck, of those that anybody has

    cdef EndpointCheck of(self, object spec)

cdef HealthRecord checked_record(Health health, Cluster cluster, Endpoint endpoint, EndpointCheck check)

cdef uint8_t effective_mask(Cluster cluster, EndpointCheck check, uint32_t panic) except 0
