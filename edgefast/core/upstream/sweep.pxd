# How many of a cluster's answers fail, an interval at a time (BackendTrafficPolicy healthCheck.passive.failurePercentageThreshold).

cdef class Sweep(Timer):
    cdef:
        Cluster cluster
        Outlier how
        dict before         # Endpoint -> (answers, bad ones) of all workers when the interval began
