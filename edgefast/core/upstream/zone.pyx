# Zone: selects the zone of a user's endpoint: the own zone, or each by its weight (ir.ZoneAware).
#
# In: the zone of this worker and the number of proxies of its fleet in each zone, from the agent; a rule, of a policy or of the cluster's
# Service; the unhealthy endpoints. Out: a run of endpoints for the usual choice, or all of them. Chances are recomputed when health,
# endpoints or the rule have changed since the last choice, never per request.
#
# Shares: e is a zone's part of the weight of all healthy endpoints, p its part of the ready proxies; the zone is this worker's.
# - force, and at least as many healthy endpoints in the zone as it requires: all requests stay
# - e >= p: all stay; the zone has capacity for requests of other zones besides
# - e < p: e / p of them stay, and the rest goes to each other zone by max(0, e - p) of that zone: its spare capacity
#
# Every endpoint therefore gets as much as any other, if proxies get equal traffic. For a zone without healthy endpoints e is 0. Without
# information about other proxies, p is 1. With weights each zone gets its weight, less when more than 2 in 7 of its endpoints are
# unhealthy. The healthy ones can take 1.4 times their own part.
# Must never: leave a request without an endpoint while any zone has a healthy one. If the drawn run has no untried endpoint, other runs
# with a share are tried, and then all.

cdef class Zones:
    def __init__(self, Engine engine):
        self.engine = engine
        self.own, self.proxies = "", {}
        self.rules = WeakValueDictionary()

    cdef ZoneRule rule_of(self, object spec):
        """Equal rules are one, so that what came of them is found again; None: there is none."""
        if spec is None:
            return None
        rule = self.rules.get(spec)
        if rule is None:
            rule = self.rules[spec] = ZoneRule(spec)
        return rule

    def settle(self, str own, dict proxies):
        """Say which zone the worker is in ("": it is not known), and how many proxies that are ready are in each."""
        cdef Cluster cluster
        if (own, proxies) == (self.own, self.proxies):
            return
        self.own, self.proxies = own, proxies
        for cluster in list(self.engine.tables.clusters.values()):
            cluster.rebuild()


cdef class ZoneRule:
    def __init__(self, spec):
        self.percent, self.min_endpoints, self.force = spec.percent, spec.min_endpoints, spec.force
        self.weights = dict(spec.weights) if spec.weights else None


cdef class ZoneRanges:
    def __init__(self, Engine engine, list zones):
        """zones: of each endpoint in their order, run by run."""
        cdef dict counts = {}
        cdef uint32_t i
        for name in zones:
            counts[name] = counts.get(name, 0) + 1
        self.names = list(counts)
        self.size = <uint32_t>len(self.names)
        self.begin = <uint32_t *>calloc(self.size + 1, sizeof(uint32_t))
        if self.begin == NULL:
            raise MemoryError
        for i in range(self.size):
            self.begin[i + 1] = self.begin[i] + <uint32_t>counts[self.names[i]]
        self.own = self.names.index(engine.zones.own) if engine.zones.own in counts and engine.zones.own else -1
        self.made = {}

    def __dealloc__(self):
        free(self.begin)

    cdef int forget(self) except -1:
        """Somebody's health has changed."""
        self.made.clear()
        self.rule = self.last = None
        return 0

    cdef int recall(self, Cluster cluster, ZoneRule rule, uint8_t health_mask) except -1:
        """Have the chances of a rule, made now or before."""
        cdef ZoneWeights chances = self.made.get((rule, health_mask))
        if chances is None:
            if len(self.made) >= ZONE_RULES:
                self.made.clear()
            chances = ZoneWeights.__new__(ZoneWeights, self.size)
            chances.make(cluster, self, rule, health_mask)
            self.made[rule, health_mask] = chances
        self.last, self.rule, self.health_mask = chances, rule, health_mask
        return 0


cdef class ZoneWeights:
    def __cinit__(self, uint32_t size):
        self.size = size
        self.only = -2
        self.upto = <double *>calloc(size + 1, sizeof(double))
        if self.upto == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.upto)

    cdef int make(self, Cluster cluster, ZoneRanges runs, ZoneRule rule, uint8_t health_mask) except -1:
        cdef uint32_t i, at, well, wells = 0, own_well = 0
        cdef double reached = 0
        cdef list weighs = [0] * self.size, counts = [0] * self.size
        for at in range(self.size):
            well = 0
            for i in range(runs.begin[at], runs.begin[at + 1]):
                if cluster.load[i].out & health_mask == 0:
                    well += 1
                    weighs[at] += cluster.load[i].weight
            counts[at] = well
            wells += well
            if <int>at == runs.own:
                own_well = well
        if wells == 0 or wells < rule.min_endpoints:
            return 0
        if rule.weights is not None:
            chances = [
                rule.weights.get(runs.names[at], 1) * min(1.0, 1.4 * counts[at] / (runs.begin[at + 1] - runs.begin[at])) for at in range(self.size)
            ]
        elif rule.force and own_well >= rule.force:
            self.only = runs.own
            return 0
        else:
            chances = shares_of(cluster.engine.zones, runs.names, weighs, runs.own)
            if runs.own >= 0 and chances[runs.own] >= 1:
                self.only = runs.own
                return 0
        for at in range(self.size):
            reached += chances[at]
            self.upto[at] = reached
        if reached > 0:
            self.only = -1
            for at in range(self.size):
                self.upto[at] /= reached
        return 0

    cdef int draw(self, uint64_t rnd) noexcept:
        """A run; -1: all of them."""
        cdef double point = <double>(rnd >> 11) * (1.0 / 9007199254740992.0)
        cdef uint32_t at
        if self.only != -1:
            return self.only if self.only >= 0 else -1
        for at in range(self.size - 1):
            if point < self.upto[at]:
                return <int>at
        return <int>self.size - 1


cdef list shares_of(Zones zones, list names, list weighs, int own):
    """How our requests are shared out, by the formula above; that of our own is 1 or more where all of them stay."""
    cdef dict proxies = dict(zones.proxies)
    proxies[zones.own] = max(proxies.get(zones.own, 0), 1)  # here I am, ready or not
    total, all_proxies = sum(weighs), sum(proxies.values())
    if total == 0:
        return [0] * len(names)
    needs = [proxies.get(name, 0) / all_proxies for name in names]
    room = [max(0.0, weighs[at] / total - needs[at]) for at in range(len(names))]
    stays = weighs[own] / total / needs[own] if own >= 0 else 0.0
    rest = sum(room)
    if own >= 0 and (stays >= 1 or rest <= 0):
        return [float(at == own) for at in range(len(names))]
    return [stays if at == own else (1 - stays) * room[at] / rest for at in range(len(names))]


cdef Endpoint choose_in_zones(Cluster cluster, ZoneRule said, uint64_t tried, uint8_t health_mask, Balance balance, uint64_t key):
    """An endpoint, of the zones that come first for this user. said: by its policies; None: they say nothing."""
    cdef ZoneRule rule = said if said is not None else cluster.zone_rule
    cdef ZoneRanges runs = cluster.runs
    cdef ZoneWeights chances
    cdef Engine engine = cluster.engine
    cdef Endpoint endpoint
    cdef int at
    cdef uint32_t left
    cdef uint64_t rnd
    cdef uint8_t known = health_mask & ~MASK_PASSED  # who is passed over in this choice alone changes no chances
    if rule is None or balance == BY_KEY or known == 0 or (not engine.zones.own and rule.weights is None):
        return cluster.pick(tried, health_mask, balance, key)
    if cluster.seen != ef_health_version(cluster.record.at):
        cluster.look()
    if runs.rule is not rule or runs.health_mask != known:
        runs.recall(cluster, rule, known)
    chances = runs.last
    if chances.only == -2 or (rule.percent < 100 and ef_random(engine.random) % 100 >= rule.percent):
        return cluster.pick(tried, health_mask, balance, key)
    rnd = ef_random(engine.random) if chances.only == -1 else 0
    at = chances.draw(rnd)
    endpoint = pick_in(cluster, runs.begin[at], runs.begin[at + 1], tried, health_mask, balance)
    if endpoint is None and chances.only == -1:  # another zone that gets any
        for left in range(runs.size - 1):
            at = (at + 1) % <int>runs.size
            if chances.upto[at] > (chances.upto[at - 1] if at else 0):
                endpoint = pick_in(cluster, runs.begin[at], runs.begin[at + 1], tried, health_mask, balance)
                if endpoint is not None:
                    break
    if endpoint is None:
        endpoint = cluster.pick(tried, health_mask, balance, key)
    return endpoint


cdef int note_zone(Cluster cluster, ZoneRule said, Balance balance, Endpoint endpoint) except -1:
    """Where a user's endpoint is, once it is chosen."""
    cdef ZoneRanges runs = cluster.runs
    if runs is None or endpoint is None or balance == BY_KEY or (said is None and cluster.zone_rule is None) or not cluster.engine.zones.own:
        return 0
    cluster.engine.count(G_ZONE_OWN if is_in(endpoint, runs) else G_ZONE_OTHER)
    return 0


cdef Endpoint choose_near(Cluster cluster, uint64_t tried):
    """For who has no policy: of a Service's own wish, by least load; None: there is no endpoint."""
    if cluster.size == 0:
        return None
    cdef Endpoint endpoint
    if cluster.runs is not None:
        endpoint = choose_in_zones(cluster, None, tried, MASK_EJECTED, BY_LOAD, 0)
        note_zone(cluster, None, BY_LOAD, endpoint)
        return endpoint
    return cluster.pick(tried, MASK_EJECTED, BY_LOAD, 0)


cdef inline bint is_in(Endpoint endpoint, ZoneRanges runs) noexcept:
    return runs.own >= 0 and runs.begin[runs.own] <= <uint32_t>endpoint.index < runs.begin[runs.own + 1]


cdef Endpoint pick_in(Cluster cluster, uint32_t begin, uint32_t end, uint64_t tried, uint8_t health_mask, Balance balance):
    """One of a run that is well and was not tried; None: it has none."""
    cdef ef_endpoint_load *load = cluster.load + begin
    cdef uint32_t n = end - begin
    cdef uint64_t *random = cluster.engine.random
    cdef int i
    tried = tried >> begin if begin < 64 else 0
    if balance == BY_TURN:
        i = ef_pick_turn(load, cluster.places() + begin, n, tried, health_mask)
    elif balance == BY_CHANCE:
        i = ef_pick_random(load, n, tried, health_mask, ef_random(random))
    else:
        i = ef_pick_endpoint(load, n, tried, health_mask, ef_random(random))
    if i < 0 or load[i].out & health_mask or (i < 64 and tried >> i & 1):
        return None
    return <Endpoint>PyList_GET_ITEM(cluster.endpoints, begin + <uint32_t>i)


cdef ZoneRanges order_by_zone(Engine engine, list found):
    """Put (address, port, weight, zone) of endpoints in order, zone by zone; None: they are all of one, and stay as they are."""
    cdef set zones = {item[3] for item in found}
    if len(zones) < 2:
        return None
    found.sort(key=lambda item: item[3])
    return ZoneRanges(engine, [item[3] for item in found])
