/* bench_route.c - what a match costs: nanoseconds, best and median of many rounds. `make bench_route`.
 *
 * Requests are spread evenly over all routes, so that large tables are met cold, as far as the caches of the machine allow;
 * real traffic is kinder. "cut" tables are in fragments of about 48 KiB as the compiler makes them. No assertion: a
 * benchmark is not a test.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../head.h"
#include "../pick.h"
#include "../route.h"

#define ROUNDS     25
#define REQUESTS   32768
#define PATH_BYTES 96

typedef struct table {
    ef_vhost vhost;
    const ef_blob *fragments[EF_MAX_FRAGMENTS];
} table;

static uint8_t *work;
static size_t work_size;
static ef_build *build;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others on the machine cost caches, but not time */
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void require(long rc) {
    if (rc >= 0) return;
    fprintf(stderr, "table builder: error %ld\n", rc);
    exit(1);
}

static void begin(uint32_t fragments, uint32_t index, int is_root) {
    require(ef_build_begin(build, work, work_size, (const uint8_t *)"bench", 5, fragments, index, is_root));
}

static const ef_blob *end(void) {
    const long size = ef_build_end(build, NULL, 0);
    require(size);
    uint8_t *out = aligned_alloc(64, ((size_t)size + 63) & ~(size_t)63);
    if (out == NULL) abort();
    require(ef_build_end(build, out, (size_t)size));
    require(ef_table_check(out, (size_t)size));
    return (const ef_blob *)(void *)out;
}

static void add(const char *path, uint32_t fragments, uint32_t fragment) {
    static const uint8_t payload[160]; /* as large as a usual rule */
    const size_t len = strlen(path);
    if (fragments > 1 && ((ef_path_hash((const uint8_t *)path, len) >> 32) & (fragments - 1)) != fragment) return;
    const int rule = ef_build_rule(build, payload, sizeof(payload));
    require(rule);
    require(ef_build_entry(build, (uint32_t)rule, EF_PATH_PREFIX, (const uint8_t *)path, len, 0, 0, 0));
}

static void make_table(table *t, const char *format, uint32_t routes, uint32_t fragments) {
    char path[PATH_BYTES];
    for (uint32_t f = 0; fragments > 1 && f < fragments; f++) {
        begin(fragments, f, 0);
        for (uint32_t i = 0; i < routes; i++) {
            snprintf(path, sizeof(path), format, i);
            add(path, fragments, f);
        }
        t->fragments[f] = end();
    }
    begin(fragments, 0, 1);
    for (uint32_t f = 0; fragments > 1 && f < fragments; f++) {
        uint64_t prefix, exact;
        uint32_t longest;
        ef_blob_depths(t->fragments[f], &prefix, &exact, &longest);
        require(ef_build_depths(build, prefix, exact, longest));
    }
    for (uint32_t i = 0; fragments == 1 && i < routes; i++) {
        snprintf(path, sizeof(path), format, i);
        add(path, 1, 0);
    }
    t->vhost = (ef_vhost){end(), fragments > 1 ? t->fragments : NULL, fragments, 0};
}

static void drop_table(table *t) {
    for (uint32_t f = 0; t->vhost.n_fragments > 1 && f < t->vhost.n_fragments; f++)
        free((void *)(uintptr_t)t->fragments[f]);
    free((void *)(uintptr_t)t->vhost.root);
}

static void measure(const char *what, const table *t, const ef_request *requests, uint32_t n) {
    double samples[ROUNDS];
    unsigned long hits = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now_ns();
        for (uint32_t i = 0; i < n; i++) {
            ef_route it;
            ef_hit hit;
            ef_route_begin(&it, &t->vhost, requests + i);
            hits += (unsigned long)ef_route_next(&it, &hit);
        }
        samples[round] = (now_ns() - start) / n;
    }
    qsort(samples, ROUNDS, sizeof(*samples), compare);
    printf("%-44s best %7.1f ns  median %7.1f ns  %3.0f %% hits\n", what, samples[0], samples[ROUNDS / 2],
           100.0 * (double)hits / ROUNDS / n);
}

static void bench_size(const char *format, uint32_t routes, uint32_t fragments) {
    static char paths[REQUESTS][PATH_BYTES];
    static ef_request requests[REQUESTS];
    static table t;
    uint64_t state[2] = {1, routes};
    char name[80];
    make_table(&t, format, routes, fragments);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        char route[64];
        snprintf(route, sizeof(route), format, (uint32_t)(ef_random(state) % routes));
        const int n = snprintf(paths[i], PATH_BYTES, "%s/v1/users/%u", route, (uint32_t)(ef_random(state) % 1000));
        requests[i] = (ef_request){.path = (const uint8_t *)paths[i], .path_len = (size_t)n, .method = EF_M_GET};
    }
    snprintf(name, sizeof(name), "%u routes, %s, prefix %s", routes, fragments > 1 ? "cut" : "whole", format);
    measure(name, &t, requests, REQUESTS);
    for (uint32_t i = 0; i < REQUESTS; i++)
        paths[i][1] = 'X'; /* no such route */
    snprintf(name, sizeof(name), "%u routes, %s, no match", routes, fragments > 1 ? "cut" : "whole");
    measure(name, &t, requests, REQUESTS);
    drop_table(&t);
}

/* 60 kB of segments against a table with a prefix at every depth: the most probes that a client can cause. */
static void bench_attack(void) {
    static char path[60000];
    static table t;
    char prefix[2 * EF_MAX_SEGMENTS] = "";
    begin(1, 0, 1);
    for (uint32_t depth = 1; depth < EF_MAX_SEGMENTS; depth++) {
        strcat(prefix, "/s");
        char other[2 * EF_MAX_SEGMENTS];
        memcpy(other, prefix, sizeof(other));
        other[1] = 'x';
        add(other, 1, 0);
    }
    t.vhost = (ef_vhost){end(), NULL, 1, 0};
    for (size_t i = 0; i < sizeof(path); i += 2)
        memcpy(path + i, "/s", 2);
    const ef_request request = {.path = (const uint8_t *)path, .path_len = sizeof(path), .method = EF_M_GET};
    measure("attack: 30,000 segments, 63 depths", &t, &request, 1);
    drop_table(&t);
}

int main(void) {
    work_size = (size_t)512 << 20;
    work = malloc(work_size);
    build = malloc(ef_build_sizeof());
    if (work == NULL || build == NULL) abort();
    const char *format = "/team-%u/service/api";
    bench_size(format, 1, 1);
    bench_size(format, 10, 1);
    bench_size(format, 1000, 1);
    bench_size(format, 10000, 1);
    bench_size(format, 10000, 64);
    bench_size(format, 100000, 1);
    bench_size(format, 100000, 1024);
    bench_size("/a/rather/long/prefix/of/%u/many/segments", 1000, 1);
    bench_attack();
    free(work);
    free(build);
    return 0;
}
