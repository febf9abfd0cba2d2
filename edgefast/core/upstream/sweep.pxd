# Sweep: the failure percentage of a cluster per interval (BackendTrafficPolicy healthCheck.passive.failurePercentageThreshold).

cdef class Sweep(Timer):
    cdef:
        Cluster cluster
        Outlier how
        dict before         # Endpoint -> (answers, bad ones) of all workers when the interval began
