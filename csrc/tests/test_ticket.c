/* test_ticket.c - which key a ticket is made with and read with, and what becomes of the ring when its writer dies.
 *
 * The HMAC here is a toy that depends on every byte of key and data; that the derivation is HKDF-Expand with the real one is
 * held by tests/csrc/test_ticket_derivation.py.
 */
#include "../ticket.h"

#include <pthread.h>
#include <string.h>

#include "../siphash.h"
#include "check.h"
#include "guard.h"

static int toy(const uint8_t *key, const uint8_t *data, size_t len, uint8_t *out) {
    for (unsigned i = 0; i < 4; i++) {
        uint64_t word = ef_siphash13(key + (i & 1) * 16, data, len) ^ ef_siphash13(key + 16 - (i & 1) * 16, key, 32);
        word = word * 0x9E3779B97F4A7C15u + i;
        memcpy(out + 8 * i, &word, 8);
    }
    return 0;
}

static int broken(const uint8_t *key, const uint8_t *data, size_t len, uint8_t *out) {
    (void)key, (void)data, (void)len;
    memset(out, 7, 32);
    return -1;
}

static const uint8_t rule_a[EF_TICKET_RULE] = {1}, rule_b[EF_TICKET_RULE] = {2};

static ef_ticket_ring *make(void) {
    static _Alignas(64) uint8_t zeros[4096];
    ef_ticket_ring *ring = (ef_ticket_ring *)(uintptr_t)guard_end(zeros, ef_ticket_size());
    CHECK_EQUAL(ef_ticket_check(ring, ef_ticket_size()), -1);
    CHECK_EQUAL(ef_ticket_init(ring, ef_ticket_size() - 1), -1);
    CHECK_EQUAL(ef_ticket_init(ring, ef_ticket_size()), 0);
    CHECK_EQUAL(ef_ticket_check(ring, ef_ticket_size()), 0);
    CHECK_EQUAL(ef_ticket_check(ring, ef_ticket_size() - 1), -1);
    return ring;
}

static ef_ticket_secret secret(uint8_t number, uint64_t begins, uint64_t ends, uint64_t forgotten) {
    ef_ticket_secret one = {.begins = begins, .ends = ends, .forgotten = forgotten};
    memset(one.secret, number, sizeof one.secret);
    return one;
}

static int same(const ef_ticket_key *a, const ef_ticket_key *b) { return memcmp(a, b, sizeof *a) == 0; }

static int holds(const void *mem, size_t len, uint8_t byte) {
    const uint8_t *at = mem;
    for (size_t i = 0; i + EF_TICKET_SECRET <= len; i++) {
        size_t n = 0;
        while (n < EF_TICKET_SECRET && at[i + n] == byte)
            n++;
        if (n == EF_TICKET_SECRET) return 1;
    }
    return 0;
}

static void test_times(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_rule rule;
    ef_ticket_key first, second, found;
    ef_ticket_rule_init(&rule, rule_a, toy);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 5, &first), 0); /* nothing was written yet */
    const ef_ticket_secret both[] = {secret(1, 10, 20, 40), secret(2, 20, 30, 50)};
    CHECK_EQUAL(ef_ticket_write(ring, both, 2), 0);
    CHECK_EQUAL(ef_ticket_generation(ring), 1);

    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 9, &first), 0); /* before it begins */
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 10, &first), 1);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 19, &found), 1);
    CHECK(same(&first, &found));
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 20, &second), 1); /* from current to next by time alone */
    CHECK(!same(&first, &second));
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 30, &found), 0); /* no next one: no tickets */

    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, guard_start(second.name, 16), 10, &found),
                EF_TICKET_USE); /* ahead */
    CHECK(same(&second, &found));
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, first.name, 19, &found), EF_TICKET_USE);
    CHECK(same(&first, &found));
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, first.name, 20, &found), EF_TICKET_RENEW);
    CHECK(same(&first, &found));
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, first.name, 39, &found),
                EF_TICKET_USE); /* nothing to renew it with */
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, first.name, 40, &found), EF_TICKET_UNKNOWN);
    for (unsigned i = 0; i < 128; i++) {
        uint8_t name[EF_TICKET_NAME];
        memcpy(name, first.name, sizeof name);
        name[i / 8] ^= (uint8_t)(1u << i % 8);
        CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, name, 15, &found), EF_TICKET_UNKNOWN);
    }
}

static void test_overlap(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_rule rule;
    ef_ticket_key old, fresh, found;
    ef_ticket_rule_init(&rule, rule_a, toy);
    const ef_ticket_secret one[] = {secret(1, 0, 100, 200)};
    CHECK_EQUAL(ef_ticket_write(ring, one, 1), 0);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 50, &old), 1);
    const ef_ticket_secret both[] = {secret(2, 40, 100, 200), secret(1, 0, 100, 200)};
    CHECK_EQUAL(ef_ticket_write(ring, both, 2), 0);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 50, &fresh), 1); /* the one that began last */
    CHECK(!same(&old, &fresh));
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, old.name, 50, &found), EF_TICKET_RENEW);
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, old.name, 30, &found), EF_TICKET_USE);
}

static void test_rules(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_rule a, b, again;
    ef_ticket_key of_a, of_b, found;
    ef_ticket_rule_init(&a, guard_start(rule_a, sizeof rule_a), toy);
    ring = make();
    ef_ticket_rule_init(&b, rule_b, toy);
    ef_ticket_rule_init(&again, rule_a, toy);
    const ef_ticket_secret one[] = {secret(1, 0, 100, 200)};
    CHECK_EQUAL(ef_ticket_write(ring, one, 1), 0);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &a, 1, &of_a), 1);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &b, 1, &of_b), 1);
    CHECK(memcmp(of_a.name, of_b.name, sizeof of_a.name) != 0);
    CHECK(memcmp(of_a.aes, of_b.aes, sizeof of_a.aes) != 0);
    CHECK(memcmp(of_a.hmac, of_b.hmac, sizeof of_a.hmac) != 0);
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &b, of_a.name, 1, &found), EF_TICKET_UNKNOWN);
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &a, of_b.name, 1, &found), EF_TICKET_UNKNOWN);
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &again, of_a.name, 1, &found), EF_TICKET_USE); /* of another worker */
    CHECK(same(&of_a, &found));
    ef_ticket_rule_wipe(&a);
    for (size_t i = 0; i < sizeof a; i++)
        CHECK(((const uint8_t *)&a)[i] == 0);
}

static void test_without_hmac(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_rule rule;
    ef_ticket_key found;
    const ef_ticket_secret one[] = {secret(1, 0, 100, 200)};
    CHECK_EQUAL(ef_ticket_write(ring, one, 1), 0);
    ef_ticket_rule_init(&rule, rule_a, broken);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &found), 0);
    rule.hmac = toy; /* it can again: nothing of the failure was kept */
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &found), 1);
}

static void test_retired_are_gone(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_rule rule;
    ef_ticket_key old, found;
    ef_ticket_rule_init(&rule, rule_a, toy);
    const ef_ticket_secret first[] = {secret(1, 0, 100, 200), secret(2, 0, 100, 200)};
    const ef_ticket_secret second[] = {secret(3, 0, 100, 200)};
    CHECK_EQUAL(ef_ticket_write(ring, first, 2), 0);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &old), 1);
    CHECK(holds(ring, ef_ticket_size(), 1) && holds(ring, ef_ticket_size(), 2));
    CHECK_EQUAL(ef_ticket_write(ring, second, 1), 0);
    CHECK(holds(ring, ef_ticket_size(), 3));
    CHECK(!holds(ring, ef_ticket_size(), 1) && !holds(ring, ef_ticket_size(), 2));
    CHECK_EQUAL(ef_ticket_decrypt_key(ring, &rule, old.name, 1, &found), EF_TICKET_UNKNOWN);
    CHECK_EQUAL(ef_ticket_write(ring, NULL, 0), 0);
    CHECK(!holds(ring, ef_ticket_size(), 3));
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &found), 0);
}

static void test_refused(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_secret many[EF_TICKET_SECRETS + 1], out[EF_TICKET_SECRETS];
    CHECK_EQUAL(ef_ticket_read(ring, out), 0);
    for (unsigned i = 0; i <= EF_TICKET_SECRETS; i++)
        many[i] = secret((uint8_t)(i + 1), i, i + 1, i + 2);
    CHECK_EQUAL(ef_ticket_write(ring, many, EF_TICKET_SECRETS + 1), -1);
    CHECK_EQUAL(ef_ticket_generation(ring), 0);
    CHECK_EQUAL(ef_ticket_write(ring, many, EF_TICKET_SECRETS), 0);
    CHECK_EQUAL(ef_ticket_read(ring, out), EF_TICKET_SECRETS);
    CHECK(memcmp(out, many, sizeof out) == 0);
    const ef_ticket_secret wrong[] = {secret(1, 2, 1, 3), secret(1, 1, 3, 2)};
    CHECK_EQUAL(ef_ticket_write(ring, wrong, 1), -1);
    CHECK_EQUAL(ef_ticket_write(ring, wrong + 1, 1), -1);
    CHECK_EQUAL(ef_ticket_generation(ring), 1);
}

/* A writer that died in the middle has written nothing but parts of the bank that nobody reads. */
static void test_death(void) {
    ef_ticket_ring *ring = make();
    ef_ticket_rule rule;
    ef_ticket_key before, after;
    ef_ticket_rule_init(&rule, rule_a, toy);
    const ef_ticket_secret first[] = {secret(1, 0, 100, 200)}, second[] = {secret(2, 0, 100, 200)};
    CHECK_EQUAL(ef_ticket_write(ring, first, 1), 0);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &before), 1);
    uint8_t *bytes = (uint8_t *)ring; /* generation 1 is in bank 1, so bank 0 is the one of the next write */
    memset(bytes + 64, 0xa5, (ef_ticket_size() - 64) / 2);
    ef_ticket_rule_init(&rule, rule_a, toy);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &after), 1);
    CHECK(same(&before, &after));
    CHECK_EQUAL(ef_ticket_write(ring, second, 1), 0);
    CHECK_EQUAL(ef_ticket_encrypt_key(ring, &rule, 1, &after), 1);
    CHECK(!same(&before, &after));
}

/* Readers beside a writer: a copy is one write's, whole. */
typedef struct race {
    ef_ticket_ring *ring;
    int over;
    uint64_t copies, torn;
} race;

static void *read_on(void *arg) {
    race *r = arg;
    ef_ticket_secret out[EF_TICKET_SECRETS];
    while (!__atomic_load_n(&r->over, __ATOMIC_ACQUIRE) || r->copies == 0) {
        const int count = ef_ticket_read(r->ring, out);
        if (count < 0) continue; /* changed four times meanwhile */
        int torn = count != 3;
        for (int i = 0; i < count; i++) {
            torn |= out[i].begins != out[0].begins;
            for (unsigned j = 0; j < EF_TICKET_SECRET; j++)
                torn |= out[i].secret[j] != (uint8_t)out[0].begins;
        }
        r->copies++;
        r->torn += (unsigned)torn;
    }
    return NULL;
}

static void test_readers_beside_a_writer(void) {
    race races[2] = {{.ring = make()}, {0}};
    races[1].ring = races[0].ring;
    pthread_t threads[2];
    for (uint64_t n = 1; n <= 20000; n++) {
        const ef_ticket_secret one = secret((uint8_t)n, n, n, n), all[] = {one, one, one};
        CHECK_EQUAL(ef_ticket_write(races[0].ring, all, 3), 0);
        for (unsigned i = 0; n == 1 && i < 2; i++)
            CHECK_EQUAL(pthread_create(&threads[i], NULL, read_on, &races[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        __atomic_store_n(&races[i].over, 1, __ATOMIC_RELEASE);
        pthread_join(threads[i], NULL);
        CHECK(races[i].copies > 0);
        CHECK_EQUAL(races[i].torn, 0);
    }
}

int main(void) {
    test_times();
    test_overlap();
    test_rules();
    test_without_hmac();
    test_retired_are_gone();
    test_refused();
    test_death();
    test_readers_beside_a_writer();
    return FINISH();
}
