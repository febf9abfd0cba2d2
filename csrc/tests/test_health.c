/* test_health.c - records of clusters and endpoints: who holds them, what is counted in them, who is ejected; a process that is killed. */

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "health_segment.h"

static void test_bounds(void) {
    static _Alignas(64) uint8_t mem[8192];
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, 0, 1), -1);
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, 1, 0), -1);
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, 1, EF_HEALTH_SEATS + 1), -1);
    CHECK_EQUAL(ef_health_init(mem, sizeof mem, EF_HEALTH_RECORDS + 1, 1), -1);
    CHECK_EQUAL(ef_health_init(mem, ef_health_size(4, 2) - 1, 4, 2), -1);
    CHECK_EQUAL(ef_health_check(mem, sizeof mem), -1);
    CHECK_EQUAL(ef_health_init(mem, ef_health_size(4, 2), 4, 2), 0);
    CHECK_EQUAL(ef_health_check(mem, ef_health_size(4, 2) - 1), -1);
    CHECK_EQUAL(ef_health_check(mem, ef_health_size(4, 2)), 0);
    CHECK_EQUAL(ef_health_seats((ef_health *)(void *)mem), 2);
    CHECK(ef_health_hold((ef_health *)(void *)mem, 0, 0) == NULL);
    CHECK(ef_health_hold((ef_health *)(void *)mem, 1, 2) == NULL); /* no such seat */
    CHECK_EQUAL(ef_health_forget((ef_health *)(void *)mem, 2), -1);
    CHECK(ef_health_hold((ef_health *)(void *)mem, 1, 1) != NULL);
}

static void test_holders(void) {
    ef_health *s = make_health(8);
    ef_health_record *one = ef_health_hold(s, 7, 0);
    CHECK(one != NULL && one == ef_health_hold(s, 7, 1) && one == ef_health_hold(s, 7, 3));
    CHECK(ef_health_hold(s, 8, 0) != one);
    CHECK_EQUAL(ef_health_used(s), 2);
    one->shares[0].count[EF_SHARE_REQUESTS] = 5;
    one->failures[EF_FAILURE_LOCAL] = 3;
    ef_health_release(s, one, 0);
    ef_health_release(s, one, 0); /* who does not hold it leaves nothing */
    CHECK_EQUAL(ef_share_sum(one, SEATS, EF_SHARE_REQUESTS), 0);
    CHECK_EQUAL(one->failures[EF_FAILURE_LOCAL], 3); /* others hold it still */
    CHECK_EQUAL(ef_health_forget(s, 1), 0);
    CHECK_EQUAL(ef_health_used(s), 2);
    ef_health_release(s, one, 3);
    CHECK_EQUAL(ef_health_used(s), 1);
    one = ef_health_hold(s, 7, 2);
    CHECK(one != NULL && one->failures[EF_FAILURE_LOCAL] == 0);
    drop_health(s, 8);
}

/* Keys come and go; every one is found as long as it is held, and only then. */
static void test_index(void) {
    enum { KEYS = 96, ROOM = 64 };
    ef_health *s = make_health(ROOM);
    ef_health_record *held[KEYS] = {0};
    uint64_t random = 88172645463325252u;
    uint32_t used = 0, refused = 0;
    for (int step = 0; step < 20000; step++) {
        const uint64_t key = next(&random) % KEYS;
        const uint64_t name = (key % 5) + (key << 32 | 1); /* many have one home */
        if (held[key] != NULL) {
            CHECK(ef_health_hold(s, name, 0) == held[key]);
            ef_health_release(s, held[key], 0);
            held[key] = NULL;
            used--;
        } else {
            held[key] = ef_health_hold(s, name, 0);
            CHECK((held[key] == NULL) == (used == ROOM));
            if (held[key] != NULL) {
                CHECK_EQUAL(held[key]->key, name);
                held[key]->ejections = 1; /* a new one must have none of it */
                used++;
            } else {
                refused++;
            }
        }
        CHECK_EQUAL(ef_health_used(s), used);
    }
    CHECK(refused > 0);
    drop_health(s, ROOM);
}

/* A process that is killed with the lock leaves it, and a half made record, to the next one. */
static void test_killed_with_lock(void) {
    ef_health *s = make_health(8);
    ef_health_record *kept = ef_health_hold(s, 3, 0);
    for (int i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            ef_health_record *half = ef_health_hold(s, 5 + (uint64_t)i, 1);
            half->shares[1].count[EF_SHARE_HELD] = 0; /* as if it was killed in the middle */
            pthread_mutex_t *lock = (pthread_mutex_t *)(void *)((uint8_t *)s + 8 * sizeof(uint32_t));
            pthread_mutex_lock(lock);
            kill(getpid(), SIGKILL);
        }
        CHECK(child > 0 && waitpid(child, NULL, 0) == child);
        CHECK_EQUAL(ef_health_forget(s, 1), 0);
        CHECK_EQUAL(ef_health_used(s), 1);
        CHECK(ef_health_hold(s, 3, 0) == kept);
    }
    for (uint64_t key = 10; key < 17; key++) /* nothing is lost */
        CHECK(ef_health_hold(s, key, 0) != NULL);
    CHECK(ef_health_hold(s, 17, 0) == NULL);
    drop_health(s, 8);
}

static void test_ejections(void) {
    ef_health *s = make_health(16);
    ef_health_record *endpoints[ENDPOINTS], *cluster = hold_all(s, 0, endpoints);
    ef_ejection how = {.now_ms = 1000, .base_ms = 100, .max_ms = 250, .most = 2};
    const uint32_t version = ef_health_version(cluster);
    CHECK_EQUAL(ef_health_fail(endpoints[3], EF_FAILURE_LOCAL), 1);
    CHECK_EQUAL(ef_health_fail(endpoints[3], EF_FAILURE_LOCAL), 2);
    ef_health_succeed(endpoints[3], EF_FAILURE_LOCAL);
    CHECK_EQUAL(ef_health_fail(endpoints[3], EF_FAILURE_LOCAL), 1);
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK(ef_health_version(cluster) != version);
    CHECK_EQUAL(endpoints[3]->failures[EF_FAILURE_LOCAL], 0);
    CHECK(ef_health_is_out(endpoints[3], 1099) && !ef_health_is_out(endpoints[3], 1100));
    CHECK(!ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how)); /* it is out already */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 4, &how));
    CHECK(!ef_health_eject(cluster, endpoints, ENDPOINTS, 5, &how)); /* two are out */
    how.now_ms = 1100; /* both are back; the second time is twice as long, the third the longest there is */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK(ef_health_is_out(endpoints[3], 1299) && !ef_health_is_out(endpoints[3], 1300));
    how.now_ms = 1300;
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK(ef_health_is_out(endpoints[3], 1549) && !ef_health_is_out(endpoints[3], 1550));
    how.now_ms = 1300 + 2 * how.max_ms + 1; /* forgiven */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 3, &how));
    CHECK_EQUAL(endpoints[3]->ejections, 1);
    how.now_ms = 10001;
    how.sweep_ms = 1000; /* nobody looks before the next sweep */
    CHECK(ef_health_eject(cluster, endpoints, ENDPOINTS, 0, &how));
    CHECK(ef_health_is_out(endpoints[0], 10999) && !ef_health_is_out(endpoints[0], 11000));
    how.most = 0;
    CHECK(!ef_health_eject(cluster, endpoints, ENDPOINTS, 1, &how));
    drop_health(s, 16);
}

int main(void) {
    test_bounds();
    test_holders();
    test_index();
    test_killed_with_lock();
    test_ejections();
    return FINISH();
}
