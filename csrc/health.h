/* health.h - how clusters and their endpoints fare, in memory that all workers of a proxy and their agent share.
 *
 *   +--------+--------------+--------------------------------------------------------------------------+
 *   | header | index[2 n]   | records[n]: head, a cache line | shares[seats], a cache line for each worker |
 *   +--------+--------------+--------------------------------------------------------------------------+
 *
 * A record is a cluster's or an endpoint's; whose it is says its key, which is the same in all processes. Who has anything to do with it
 * holds it (a word of its share says so), and it is free when nobody does: so its size is that of what is served now. Finding and holding one
 * takes the segment's lock, which is taken when tables change and never by a request; it is robust: who is killed while it has the lock
 * leaves it to the next one, which makes the index anew from the records.
 *
 * Shares. What is counted (connections, requests, ...) has a number for each worker, which that worker alone writes, and plainly: nobody
 * waits for a cache line of another one, and what a dead worker held is gone when its share is cleared. The sum of all is looked at only
 * by who has a bound: it adds its own first and takes it back when the sum is too large (ef_share_take), so the bound is never exceeded,
 * whoever counts at the same time. Answers are counted without end: who wants to know how many there were subtracts.
 *
 * Ejections. Failures in a row are counted for all workers together. An endpoint is out until a time (CLOCK_MONOTONIC, which all processes
 * of a machine share); whoever sets it bumps its cluster's version, one word that every worker looks at when it chooses.
 */
#ifndef EF_HEALTH_H
#define EF_HEALTH_H
#include <stddef.h>
#include <stdint.h>
#define EF_HEALTH_MAGIC    0x31484645u
#define EF_HEALTH_SEATS    1024u
#define EF_HEALTH_RECORDS  (1u << 16)
#define EF_HEALTH_LOCK_MS  100u /* that the lock is waited for; whoever had it so long is stopped */
#define EF_HEALTH_FAILURES 5u

/* What is counted: places in a share. */
enum {
    EF_SHARE_CONNECTIONS,
    EF_SHARE_PENDING,
    EF_SHARE_REQUESTS,
    EF_SHARE_RETRIES,
    EF_SHARE_LEAVING, /* connections that are left to other workers, and have requests still */
    EF_SHARE_ANSWERS, /* of an endpoint, since it is known: answers, those of 5xx, and connects and connections that failed */
    EF_SHARE_BAD,
    EF_SHARE_LOST,
    EF_SHARE_HELD = 15,
    EF_SHARE_WORDS
};
/* Kinds of failures in a row: places in `failures`. Connects and connections; answers of 502, 503 and 504; all of 5xx; both together. */
enum { EF_FAILURE_LOCAL, EF_FAILURE_GATEWAY, EF_FAILURE_SERVER, EF_FAILURE_ANY_GATEWAY, EF_FAILURE_ANY_SERVER };

typedef struct ef_share {
    uint32_t count[EF_SHARE_WORDS];
} ef_share;
typedef struct ef_health_record {
    uint64_t key;        /* 0: free */
    uint64_t until_ms;   /* out until then */
    uint64_t ejected_ms; /* when it was ejected last; of a check: when it was found well again */
    uint32_t ejections;  /* so often; old ones are forgiven */
    uint32_t
        version; /* of a cluster: another one when any of its endpoints is in or out; of a free one: the next free one */
    uint32_t failures[EF_HEALTH_FAILURES];
    uint32_t holders; /* seats */
    uint32_t wanted;  /* of a cluster: connections that other workers have still to leave (ef_health_want) */
    uint32_t taking;  /* the seat, plus one, whose turn it is to take near the bound; 0: nobody's */
    ef_share shares[];
} ef_health_record;
typedef struct ef_health ef_health;
typedef struct ef_ejection {
    uint64_t now_ms, base_ms, max_ms; /* out for base times how often it was, at most max */
    uint64_t sweep_ms;                /* until the next multiple of this; 0: to the millisecond */
    uint32_t most;                    /* endpoints of its cluster that may be out */
} ef_ejection;

size_t ef_health_size(uint32_t records, uint32_t seats);
/* Make a segment in zeroed memory, aligned to 64 bytes; what is not used is not touched. 0, or -1: too short, or numbers out of range. */
int ef_health_init(void *mem, size_t len, uint32_t records, uint32_t seats);
int ef_health_check(const void *mem, size_t len); /* 0 when it is a segment, else -1 */
size_t ef_health_extent(const ef_health *s);      /* ef_health_size of it: what is behind it is not its own */
uint32_t ef_health_seats(const ef_health *s);
uint32_t ef_health_used(const ef_health *s); /* records that somebody holds */
/* Find or make the record of a key (not 0) and hold it from a seat. NULL: full, or the lock was not to be had. */
ef_health_record *ef_health_hold(ef_health *s, uint64_t key, uint32_t seat);
void ef_health_release(ef_health *s, ef_health_record *record, uint32_t seat);
/* Whoever had this seat is gone. 0, or -1: the lock was not to be had. */
int ef_health_forget(ef_health *s, uint32_t seat);

/* Which seat asks endpoints how they are: the first that wants to, until it resigns or is forgotten. 1: it is this one; 0: another one. */
int ef_health_claim(ef_health *s, uint32_t seat);
void ef_health_resign(ef_health *s, uint32_t seat);
/* What was found out of an endpoint, for whoever looks at its cluster's version: a state in `until_ms`. */
void ef_health_put(ef_health_record *cluster, ef_health_record *endpoint, uint64_t state);

/* So many users wait for a connection of a cluster's, and all of them belong to others: so many are to be left, by all of these together. */
void ef_health_want(ef_health_record *cluster, uint32_t many);
/* One is about to be left. 1; 0: no more are wanted. */
int ef_health_leave(ef_health_record *cluster);

/* What all seats have of it. */
uint64_t ef_share_sum(const ef_health_record *record, uint32_t seats, uint32_t what);
/* One more for this seat, if no more than `most` are there then; 1, or 0: there is none left. Of those who come for the last one at once one
 * has it: near the bound they come one after another, unless who has the turn is stopped for longer than others look for it. */
int ef_share_take(ef_health_record *record, uint32_t seats, uint32_t seat, uint32_t what, uint32_t most);

static inline int ef_health_is_out(const ef_health_record *endpoint, uint64_t now_ms) {
    return __atomic_load_n(&endpoint->until_ms, __ATOMIC_RELAXED) > now_ms;
}
static inline uint32_t ef_health_version(const ef_health_record *cluster) {
    return __atomic_load_n(&cluster->version, __ATOMIC_ACQUIRE);
}
/* One more failure in a row; how many there are. */
static inline uint32_t ef_health_fail(ef_health_record *endpoint, uint32_t kind) {
    return __atomic_add_fetch(&endpoint->failures[kind], 1, __ATOMIC_RELAXED);
}
/* The row has ended. A cache line that all workers read is not written without need. */
static inline void ef_health_succeed(ef_health_record *endpoint, uint32_t kind) {
    if (__atomic_load_n(&endpoint->failures[kind], __ATOMIC_RELAXED))
        __atomic_store_n(&endpoint->failures[kind], 0, __ATOMIC_RELAXED);
}
/* Eject one of a cluster's n endpoints: `endpoints[at]`. 1; 0: it is out already, or as many are as may be. Its rows begin anew. */
int ef_health_eject(ef_health_record *cluster, ef_health_record *const *endpoints, uint32_t n, uint32_t at,
                    const ef_ejection *how);
#endif
