/* test_stat.c - rows by label, the overflow row, rows that are given away, a successor that goes on, and the bounds of latency
 * buckets. */
#include "../stat.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "guard.h"

static ef_stat *segment(uint32_t rows) { /* ends at a guard page */
    uint8_t *room = guard_room();
    const size_t size = ef_stat_size(rows);
    uint8_t *at = room + GUARD_ROOM - size;
    CHECK(size % 64 == 0);
    CHECK_EQUAL(ef_stat_init(at, size, rows), 0);
    CHECK_EQUAL(ef_stat_check(at, size), 0);
    return (ef_stat *)(void *)at;
}

static ef_stat_row *get(ef_stat *s, const char *label) {
    return ef_stat_hold(s, (const uint8_t *)label, strlen(label));
}

static void test_rows(void) {
    ef_stat *s = segment(20);
    ef_stat_row *web = get(s, "default/web\t0"), *api = get(s, "default/api\t0");
    CHECK(web == s->rows + 1 && api == s->rows + 2);
    CHECK(get(s, "default/web\t0") == web);
    CHECK_EQUAL(s->used_rows, 3);
    CHECK(strcmp((char *)web->label, "default/web\t0") == 0);
    ef_stat_add(&web->cells[3], 5);
    ef_stat_sub(&web->cells[3], 2);
    CHECK_EQUAL(web->cells[3], 3);
    CHECK_EQUAL(api->cells[3], 0);
    CHECK_EQUAL(s->rows[0].label[0], 0);
    CHECK_EQUAL(web->cells[EF_STAT_HOLDERS], 2);
    CHECK_EQUAL(api->cells[EF_STAT_HOLDERS], 1);
}

static int forget(ef_stat *s, const char *label) { return ef_stat_forget(s, (const uint8_t *)label, strlen(label)); }

static void test_successor(void) {
    ef_stat *s = segment(20);
    ef_stat_add(&get(s, "a")->cells[0], 2);
    ef_stat_add(&get(s, "b")->cells[0], 5);
    memset((uint8_t *)(s->rows + s->max_rows), 0, 256); /* a predecessor died before it wrote its index */
    CHECK(get(s, "a") == s->rows + 3);                  /* a second row of that label: readers add up */
    ef_stat_add(&s->rows[3].cells[0], 4);
    s->rows[2].label[0] = 0; /* and in the middle of giving a row away */
    ef_stat_adopt(s);
    CHECK_EQUAL(s->rows[1].cells[0], 6);
    CHECK_EQUAL(s->rows[1].cells[EF_STAT_HOLDERS], 0);
    CHECK_EQUAL(s->free_rows, 2);
    CHECK_EQUAL(s->rows[3].label[0], 0);
    CHECK(get(s, "a") == s->rows + 1);
    ef_stat_row *row = get(s, "c");
    CHECK(row == s->rows + 2 || row == s->rows + 3);
    CHECK_EQUAL(row->cells[0], 0);
    CHECK_EQUAL(ef_stat_check(s, ef_stat_size(20)), 0);
}

static void test_forget(void) {
    ef_stat *s = segment(3);
    ef_stat_row *a = get(s, "a"), *b = get(s, "b");
    ef_stat_add(&a->cells[0], 7);
    CHECK(get(s, "c") == s->rows);
    CHECK_EQUAL(forget(s, "a"), 0); /* held */
    ef_stat_release(a);
    CHECK_EQUAL(forget(s, "a"), 1);
    CHECK_EQUAL(forget(s, "a"), 0);
    CHECK_EQUAL(forget(s, ""), 0);
    CHECK_EQUAL(a->label[0], 0);
    CHECK(get(s, "c") == a);
    CHECK_EQUAL(a->cells[0], 0);
    CHECK_EQUAL(s->used_rows, 3);
    CHECK_EQUAL(s->free_rows, 0);
    CHECK(get(s, "d") == s->rows);
    ef_stat_release(s->rows); /* the overflow row is nobody's */
    CHECK_EQUAL(s->rows[0].cells[EF_STAT_HOLDERS], 0);
    CHECK(get(s, "b") == b);
    CHECK_EQUAL(b->cells[EF_STAT_HOLDERS], 2);
}

static void test_churn(void) { /* names that come and go find their own row, always */
    ef_stat *s = segment(50);
    char label[32];
    unsigned random = 1;
    ef_stat_row *held[200] = {0};
    int n = 0;
    for (int step = 0; step < 20000; step++) {
        random = random * 1103515245u + 12345u;
        const unsigned i = (random >> 16) % 200;
        snprintf(label, sizeof label, "route %u", i);
        if (held[i] != NULL) {
            CHECK(strcmp((char *)held[i]->label, label) == 0);
            ef_stat_release(held[i]);
            CHECK_EQUAL(forget(s, label), 1);
            held[i] = NULL;
            n--;
        } else {
            ef_stat_row *row = get(s, label);
            if (n < 49) {
                CHECK(row != s->rows && strcmp((char *)row->label, label) == 0);
                held[i] = row;
                n++;
            } else {
                CHECK(row == s->rows);
            }
        }
    }
    CHECK_EQUAL(s->used_rows - s->free_rows, (uint64_t)n + 1);
    CHECK_EQUAL(ef_stat_check(s, ef_stat_size(50)), 0);
}

static void test_overflow(void) {
    ef_stat *s = segment(20);
    char label[32];
    for (int i = 0; i < 50; i++) {
        snprintf(label, sizeof label, "row %d", i);
        ef_stat_row *row = get(s, label);
        CHECK(i < 19 ? row == s->rows + 1 + i : row == s->rows);
    }
    CHECK_EQUAL(s->used_rows, 20);
    CHECK(get(s, "row 7") == s->rows + 8);
    s = segment(1);
    CHECK(get(s, "x") == s->rows);
}

static void test_long_labels(void) {
    ef_stat *s = segment(20);
    char label[400];
    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = 0;
    ef_stat_row *row = get(s, label);
    CHECK_EQUAL(strlen((char *)row->label), EF_STAT_LABEL - 9);
    CHECK(row->label[166] == '~');
    CHECK(get(s, label) == row);
    label[398] = 'y'; /* alike for 398 bytes: rows of their own all the same */
    CHECK(get(s, label) != row);
    label[165] = (char)0xC3; /* a character of two bytes across the cut goes as a whole */
    label[166] = (char)0xA9;
    row = get(s, label);
    CHECK_EQUAL(strlen((char *)row->label), 182);
    label[390] = '\t'; /* what comes after the last tab stays */
    row = get(s, label);
    CHECK_EQUAL(strlen((char *)row->label), EF_STAT_LABEL - 9);
    CHECK(memcmp(row->label + 174, "\txxxxxxxy", 9) == 0 && row->label[157] == '~');
    label[300] = '\t';
    label[390] = 'x'; /* it is too long for that */
    CHECK(get(s, label)->label[165] == '~');
    label[183] = 0; /* what just fits is as it is */
    CHECK(strcmp((char *)get(s, label)->label, label) == 0);
}

static void test_check(void) {
    ef_stat *s = segment(20);
    const size_t size = ef_stat_size(20);
    CHECK_EQUAL(ef_stat_check(s, size - 64), -1);
    CHECK_EQUAL(ef_stat_check(s, 32), -1);
    s->used_rows = 21;
    CHECK_EQUAL(ef_stat_check(s, size), -1);
    s->used_rows = 0;
    CHECK_EQUAL(ef_stat_check(s, size), -1);
    s->used_rows = 1;
    CHECK_EQUAL(ef_stat_check(s, size), 0);
    uint32_t *index = (uint32_t *)(void *)(s->rows + s->max_rows);
    index[0] = 7; /* names a row that is not there */
    CHECK_EQUAL(ef_stat_check(s, size), -1);
    index[0] = 0;
    s->max_rows = UINT32_MAX;
    CHECK_EQUAL(ef_stat_check(s, size), -1);
    s->max_rows = 20;
    s->magic++;
    CHECK_EQUAL(ef_stat_check(s, size), -1);
    CHECK_EQUAL(ef_stat_init(s, size - 1, 20), -1);
    CHECK_EQUAL(ef_stat_init(s, size, 0), -1);
    CHECK_EQUAL(ef_stat_init(s, SIZE_MAX, EF_STAT_MAX_ROWS + 1), -1);
}

static void test_buckets(void) {
    const uint64_t bounds[15] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                 50000, 100000, 250000, 500000, 1000000, 2500000, 10000000};
    CHECK_EQUAL(ef_stat_bucket(0), 0);
    for (unsigned i = 0; i < 15; i++) {
        CHECK_EQUAL(ef_stat_bucket(bounds[i]), i); /* an upper bound belongs to its bucket */
        CHECK_EQUAL(ef_stat_bucket(bounds[i] + 1), i + 1);
    }
    CHECK_EQUAL(ef_stat_bucket(UINT64_MAX), 15);
}

int main(void) {
    test_rows();
    test_successor();
    test_forget();
    test_churn();
    test_overflow();
    test_long_labels();
    test_check();
    test_buckets();
    return FINISH();
}
