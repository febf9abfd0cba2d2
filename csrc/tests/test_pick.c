/* test_pick.c - shares come out as the weights say, loads even out, ejected and tried endpoints are passed over. */
#include "../pick.h"

#include <string.h>

#include "check.h"

/* Most tests know one reason only. */
#define ef_pick_endpoint(load, n, tried, rnd)    ef_pick_endpoint(load, n, tried, 1, rnd)
#define ef_pick_hashed(load, ids, n, tried, key) ef_pick_hashed(load, ids, n, tried, 1, key)
#define ef_pick_turn(load, turns, n, tried)      ef_pick_turn(load, turns, n, tried, 1)
#define ef_pick_random(load, n, tried, rnd)      ef_pick_random(load, n, tried, 1, rnd)

static void test_wrr_shares(void) {
    const uint32_t weight[3] = {70, 30, 0};
    int64_t current[3] = {0};
    int count[3] = {0};
    for (int i = 0; i < 500; i++) {
        const int pick = ef_pick_wrr(current, weight, 3);
        if (CHECK(pick >= 0 && pick < 3)) count[pick]++;
        for (int k = 0; k < 3; k++) { /* smooth: never a whole request away from the exact share */
            const int off = count[k] * 100 - (i + 1) * (int)weight[k];
            CHECK(off > -100 && off < 100);
        }
    }
    CHECK(count[0] == 350 && count[1] == 150 && count[2] == 0);
    CHECK(current[0] == 0 && current[1] == 0 && current[2] == 0);
}

static void test_wrr_edges(void) {
    const uint32_t none[2] = {0, 0}, one[2] = {0, 5}, huge[2] = {UINT32_MAX, UINT32_MAX};
    int64_t current[2] = {0};
    CHECK_EQUAL(ef_pick_wrr(current, none, 2), -1);
    CHECK_EQUAL(ef_pick_wrr(current, none, 0), -1);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(ef_pick_wrr(current, one, 2), 1);
    memset(current, 0, sizeof current);
    for (int i = 0; i < 1000; i++)
        CHECK_EQUAL(ef_pick_wrr(current, huge, 2), i % 2);
}

static void test_wrr_interleaves(void) {
    const uint32_t weight[3] = {5, 1, 1}; /* the known sequence of the algorithm */
    const int want[7] = {0, 0, 1, 0, 2, 0, 0};
    int64_t current[3] = {0};
    for (int i = 0; i < 21; i++)
        CHECK_EQUAL(ef_pick_wrr(current, weight, 3), want[i % 7]);
}

static void set(ef_endpoint_load *load, uint32_t n) {
    memset(load, 0, sizeof *load * n);
    for (uint32_t i = 0; i < n; i++)
        load[i].weight = 1;
}

static void test_endpoint_few(void) {
    ef_endpoint_load load[2];
    set(load, 2);
    CHECK_EQUAL(ef_pick_endpoint(load, 0, 0, 1), -1);
    load[0].out = 1;
    CHECK_EQUAL(ef_pick_endpoint(load, 1, 1, 1), 0); /* there is no other */
    uint64_t state[2] = {3, 4};
    for (int i = 0; i < 200; i++) {
        const uint64_t rnd = ef_random(state);
        CHECK_EQUAL(ef_pick_endpoint(load, 2, 0, rnd), 1);
        CHECK_EQUAL(ef_pick_endpoint(load, 2, 2, rnd), 1); /* tried, but the other is known to be bad */
    }
    load[1].out = 1;
    unsigned both = 0;
    for (int i = 0; i < 200; i++) {
        const uint64_t rnd = ef_random(state);
        both |= 1u << ef_pick_endpoint(load, 2, 0, rnd); /* panic: all are in again */
        CHECK_EQUAL(ef_pick_endpoint(load, 2, 1, rnd), 1);
        CHECK(ef_pick_endpoint(load, 2, 3, rnd) >= 0);
    }
    CHECK_EQUAL(both, 3);
}

/* Every eligible endpoint is chosen about equally often, none other is ever. */
static void test_endpoint_fair(uint32_t n, uint64_t tried) {
    enum { MAX = 200, EACH = 400 };
    ef_endpoint_load load[MAX];
    unsigned count[MAX] = {0}, eligible = 0;
    uint64_t state[2] = {5, n};
    set(load, n);
    for (uint32_t i = 0; i < n; i++) {
        load[i].out = i % 3 == 1;
        eligible += !load[i].out && (i >= 64 || !(tried >> i & 1));
    }
    for (unsigned i = 0; i < eligible * EACH; i++)
        count[ef_pick_endpoint(load, n, tried, ef_random(state))]++;
    for (uint32_t i = 0; i < n; i++) {
        if (load[i].out || (i < 64 && tried >> i & 1))
            CHECK_EQUAL(count[i], 0);
        else
            CHECK(count[i] > EACH * 3 / 4 && count[i] < EACH * 5 / 4);
    }
}

static void test_endpoint_load(void) {
    enum { N = 10 };
    ef_endpoint_load load[N];
    uint64_t state[2] = {9, 9};
    set(load, N);
    for (uint32_t i = 5; i < N; i++)
        load[i].weight = 3;
    for (int i = 0; i < 20000; i++)
        load[ef_pick_endpoint(load, N, 0, ef_random(state))].active++;
    for (int i = 0; i < 5; i++)
        CHECK(load[i].active > 900 && load[i].active < 1100);
    for (int i = 5; i < N; i++)
        CHECK(load[i].active > 2850 && load[i].active < 3150);
    load[3].weight = 0; /* comes last, always */
    for (int i = 0; i < 1000; i++)
        CHECK(ef_pick_endpoint(load, N, 0, ef_random(state)) != 3);
}

/* --- by a key ---------------------------------------------------------------------------------------------------- */

enum { SET = 100, KEYS = 100000 };

static void name_all(uint64_t *ids, uint32_t n) {
    uint64_t state[2] = {77, 78};
    for (uint32_t i = 0; i < n; i++)
        ids[i] = ef_random(state);
}

static void test_hashed_few(void) {
    ef_endpoint_load load[3];
    const uint64_t ids[3] = {5, 6, 7};
    set(load, 3);
    CHECK_EQUAL(ef_pick_hashed(load, ids, 0, 0, 1), -1);
    load[0].out = 1;
    CHECK_EQUAL(ef_pick_hashed(load, ids, 1, 1, 1), 0); /* there is no other */
    for (uint64_t key = 0; key < 200; key++) {
        CHECK(ef_pick_hashed(load, ids, 3, 0, key) != 0);
        CHECK_EQUAL(ef_pick_hashed(load, ids, 3, 2, key), 2); /* tried: the next one that is not ejected */
        CHECK(ef_pick_hashed(load, ids, 3, 6, key) != 0);     /* rather one of them again */
        CHECK_EQUAL(ef_pick_hashed(load, ids, 3, 6, key), ef_pick_hashed(load, ids, 3, 0, key));
    }
    load[1].out = load[2].out = 1;
    for (uint64_t key = 0; key < 200; key++)
        CHECK(ef_pick_hashed(load, ids, 3, 1, key) != 0); /* panic: all are in again, but the tried one */
}

static void test_hashed_shares(void) {
    ef_endpoint_load load[SET];
    uint64_t ids[SET];
    unsigned count[SET] = {0};
    name_all(ids, SET);
    set(load, SET);
    for (uint64_t key = 0; key < KEYS; key++)
        count[ef_pick_hashed(load, ids, SET, 0, key)]++;
    for (int i = 0; i < SET; i++)
        CHECK(count[i] > 850 && count[i] < 1150);
    for (int i = 0; i < SET; i++) {
        load[i].weight = i < 50 ? 1 : 3;
        count[i] = 0;
    }
    load[7].weight = 0;
    for (uint64_t key = 0; key < KEYS; key++)
        count[ef_pick_hashed(load, ids, SET, 0, key)]++;
    for (int i = 0; i < SET; i++) {
        const unsigned due = load[i].weight * KEYS / (49 + 150);
        CHECK(count[i] >= due * 3 / 4 && count[i] <= due * 5 / 4);
    }
}

/* Who goes takes its own keys along and no others, in whatever order the others stand; one that is ejected, or tried, as if it went. */
static void test_hashed_moves(int uneven) {
    ef_endpoint_load load[SET], fewer[SET];
    uint64_t ids[SET], rest[SET];
    unsigned moved = 0;
    name_all(ids, SET);
    set(load, SET);
    for (uint32_t i = 0; uneven && i < SET; i++)
        load[i].weight = 1 + i % 5;
    const uint32_t gone = 40;
    for (uint32_t i = 0, k = SET - 1; i < SET; i++) { /* turned around, without it */
        if (i == gone) continue;
        rest[--k] = ids[i];
        fewer[k] = load[i];
    }
    for (uint64_t key = 0; key < 20000; key++) {
        const int before = ef_pick_hashed(load, ids, SET, 0, key);
        const int after = ef_pick_hashed(fewer, rest, SET - 1, 0, key);
        load[gone].out = 1;
        CHECK_EQUAL(ids[ef_pick_hashed(load, ids, SET, 0, key)], rest[after]);
        load[gone].out = 0;
        CHECK_EQUAL(ids[ef_pick_hashed(load, ids, SET, (uint64_t)1 << gone, key)], rest[after]);
        if (before == (int)gone)
            moved++;
        else
            CHECK_EQUAL(ids[before], rest[after]);
    }
    CHECK(moved > 50);
}

/* --- in turn, and by chance -------------------------------------------------------------------------------------- */

static void test_turns_few(void) {
    ef_endpoint_load load[3];
    int64_t turns[3] = {0};
    set(load, 3);
    CHECK_EQUAL(ef_pick_turn(load, turns, 0, 0), -1);
    load[0].out = 1;
    CHECK_EQUAL(ef_pick_turn(load, turns, 1, 1), 0); /* there is no other */
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(ef_pick_turn(load, turns, 3, 2), 2); /* tried: the next one that is not ejected */
        CHECK(ef_pick_turn(load, turns, 3, 6) != 0);     /* rather one of them again */
    }
    load[1].out = load[2].out = 1;
    for (int i = 0; i < 20; i++)
        CHECK(ef_pick_turn(load, turns, 3, 1) != 0); /* panic: all are in again, but the tried one */
    set(load, 3);
    load[0].weight = load[1].weight = 0;
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(ef_pick_turn(load, turns, 3, 0), 2);
        CHECK(ef_pick_turn(load, turns, 3, 4) < 2); /* those without weight come last, but they come */
    }
}

/* Wherever they begin: each has had its share at every moment, but for a request or two, and of equals each one a round. */
static void test_turns_shares(void) {
    enum { N = 70, ROUNDS = 20 };
    ef_endpoint_load load[N];
    int64_t turns[N];
    unsigned firsts = 0;
    for (uint64_t seed = 1; seed < 40; seed++) {
        uint64_t state[2] = {seed, 7};
        unsigned count[N] = {0};
        int64_t total = 0;
        set(load, N);
        for (uint32_t i = 0; i < N; i++) {
            if (seed & 1) load[i].weight = 1 + i % 7;
            total += load[i].weight;
        }
        ef_pick_begin_turns(load, turns, N, state);
        for (int64_t at = 1; at <= total * ROUNDS; at++) {
            const int pick = ef_pick_turn(load, turns, N, 0);
            if (at == 1) firsts |= pick < 32 ? 1u << pick : 0;
            count[pick]++;
            for (uint32_t i = 0; i < N; i++) {
                const int64_t off = (int64_t)count[i] * total - at * load[i].weight;
                CHECK(off > -2 * total && off < 2 * total);
            }
            if (!(seed & 1) && at % N == 0)
                for (uint32_t i = 0; i < N; i++)
                    CHECK_EQUAL(count[i], at / N);
        }
    }
    CHECK((firsts & (firsts - 1)) != 0); /* not all begin with the same */
}

/* One that was away gets its share when it is back, and no more. */
static void test_turns_return(void) {
    enum { N = 5 };
    ef_endpoint_load load[N];
    int64_t turns[N] = {0};
    unsigned count[N] = {0};
    set(load, N);
    load[2].out = 1;
    for (int i = 0; i < 4000; i++)
        count[ef_pick_turn(load, turns, N, 0)]++;
    for (uint32_t i = 0; i < N; i++)
        CHECK_EQUAL(count[i], i == 2 ? 0 : 1000);
    load[2].out = 0;
    memset(count, 0, sizeof count);
    for (int i = 0; i < 10; i++)
        count[ef_pick_turn(load, turns, N, 0)]++;
    for (uint32_t i = 0; i < N; i++)
        CHECK(count[i] >= 1 && count[i] <= 3);
}

static void test_by_chance(void) {
    enum { N = 100, EACH = 1000 };
    ef_endpoint_load load[N];
    unsigned count[N] = {0}, total = 0;
    uint64_t state[2] = {11, 12};
    set(load, N);
    CHECK_EQUAL(ef_pick_random(load, 0, 0, 5), -1);
    const uint64_t tried = 0x10;
    for (uint32_t i = 0; i < N; i++) {
        load[i].weight = i % 4;
        load[i].out = i % 10 == 3;
        total += i == 4 || load[i].out ? 0 : load[i].weight;
    }
    for (unsigned i = 0; i < total * EACH; i++)
        count[ef_pick_random(load, N, tried, ef_random(state))]++;
    for (uint32_t i = 0; i < N; i++) {
        const unsigned due = i == 4 || load[i].out ? 0 : load[i].weight * EACH;
        CHECK(count[i] >= due * 4 / 5 && count[i] <= due * 6 / 5);
    }
    set(load, N);
    for (uint32_t i = 0; i < N; i++) { /* no weight at all: all are equal */
        load[i].weight = 0;
        count[i] = 0;
    }
    for (int i = 0; i < N * EACH; i++)
        count[ef_pick_random(load, N, 0, ef_random(state))]++;
    for (int i = 0; i < N; i++)
        CHECK(count[i] > EACH * 4 / 5 && count[i] < EACH * 6 / 5);
    load[0].out = load[1].out = 1;
    CHECK_EQUAL(ef_pick_random(load, 1, 1, 9), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(ef_pick_random(load, 2, 1, ef_random(state)), 1); /* panic: the untried one */
}

static void test_random(void) {
    uint64_t state[2] = {1, 0}, ones[64] = {0};
    for (int i = 0; i < 10000; i++) {
        const uint64_t r = ef_random(state);
        for (int k = 0; k < 64; k++)
            ones[k] += r >> k & 1;
    }
    for (int k = 0; k < 64; k++)
        CHECK(ones[k] > 4700 && ones[k] < 5300);
}

/* Whoever does not heed a reason takes an endpoint that is out for it. */
static void test_reasons(void) {
    ef_endpoint_load load[3] = {{.weight = 1, .out = 2}, {.weight = 1, .out = 4}, {.weight = 1}};
    const uint64_t ids[3] = {5, 6, 7};
    const struct {
        uint8_t heed;
        unsigned may;
    } cases[] = {{0, 7}, {1, 7}, {2, 6}, {4, 5}, {6, 4}, {7, 4}};
    uint64_t state[2] = {1, 2};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t turns[3] = {0};
        unsigned met[4] = {0};
        for (int i = 0; i < 300; i++) {
            met[0] |= 1u << (ef_pick_endpoint)(load, 3, 0, cases[c].heed, ef_random(state));
            met[1] |= 1u << (ef_pick_hashed)(load, ids, 3, 0, cases[c].heed, ef_random(state));
            met[2] |= 1u << (ef_pick_turn)(load, turns, 3, 0, cases[c].heed);
            met[3] |= 1u << (ef_pick_random)(load, 3, 0, cases[c].heed, ef_random(state));
        }
        for (int k = 0; k < 4; k++)
            CHECK_EQUAL(met[k], cases[c].may);
    }
}

int main(void) {
    test_reasons();
    test_wrr_shares();
    test_wrr_edges();
    test_wrr_interleaves();
    test_endpoint_few();
    test_endpoint_fair(7, 0);
    test_endpoint_fair(150, 0x5555555555555555u);
    test_endpoint_load();
    test_hashed_few();
    test_hashed_shares();
    test_hashed_moves(0);
    test_hashed_moves(1);
    test_turns_few();
    test_turns_shares();
    test_turns_return();
    test_by_chance();
    test_random();
    return FINISH();
}
