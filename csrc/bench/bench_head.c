/* bench_head.c - what a head scan costs: nanoseconds per head, best and median of many rounds. `make bench_head`.
 *
 * Four different heads of about 300 bytes and 8 headers take turns, so that branch prediction cannot learn one by heart. The first
 * row is the whole head in one piece, the second one arrives in two pieces. No assertion: a benchmark is not a test.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../head.h"
#include "../path.h"

#define ROUNDS 200
#define SCANS  2000

static const char *const heads[] = {
    "GET /api/v1/items/4711?expand=owner HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux "
    "x86_64)\r\n"
    "Accept: application/json\r\nAccept-Encoding: gzip, deflate, br\r\nAccept-Language: en-GB,en;q=0.7\r\n"
    "Connection: keep-alive\r\nCookie: session=0123456789abcdef\r\nX-Trace: 00-11-22\r\n\r\n",
    "POST /login HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: curl/7.88.1 (x86_64-pc-linux-gnu)\r\nAccept: */*\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 27\r\nOrigin: https://www.example.com\r\n"
    "Referer: https://www.example.com/login\r\nX-Request-Id: 8d5f3e52-1f0a\r\n\r\n",
    "GET /static/js/app.3f9c.js HTTP/1.1\r\nhost: cdn.example.org\r\naccept: */*\r\nuser-agent: Mozilla/5.0 "
    "(Macintosh; Intel)\r\n"
    "accept-encoding: gzip, br\r\nreferer: https://shop.example.org/checkout/payment\r\nif-none-match: \"3f9c-17\"\r\n"
    "sec-fetch-mode: no-cors\r\ncache-control: max-age=0\r\n\r\n",
    "DELETE /api/v2/users/42/sessions/7 HTTP/1.1\r\nHost: api.example.com:8443\r\nAuthorization: Bearer "
    "eyJhbGciOiJIUzI1NiJ9\r\n"
    "Accept: application/vnd.example+json\r\nUser-Agent: Go-http-client/1.1\r\nX-Forwarded-For: "
    "192.0.2.7\r\nTraceparent: 00-1\r\n"
    "Accept-Encoding: gzip\r\nVia: 1.1 front\r\n\r\n",
};
#define HEADS (sizeof(heads) / sizeof(heads[0]))

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *samples) {
    qsort(samples, ROUNDS, sizeof(*samples), compare);
    printf("%-28s best %6.1f ns  median %6.1f ns\n", what, samples[0], samples[ROUNDS / 2]);
}

int main(void) {
    static const ef_head_limits limits = {32768, 8192, 100, EF_UNDERSCORE_REJECT, EF_RAW_REJECT, EF_HTTP10_REJECT};
    static ef_head head;
    static double whole[ROUNDS];
    static double halves[ROUNDS];
    static double path[ROUNDS];
    size_t len[HEADS];
    size_t bytes = 0;
    unsigned long check = 0;
    for (size_t i = 0; i < HEADS; i++)
        bytes += len[i] = strlen(heads[i]);

    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < SCANS; i++) {
            const size_t at = (size_t)(i * 7 + i / 3) % HEADS;
            ef_head_reset(&head);
            check += (unsigned long)ef_head_scan_request(&head, &limits, (const uint8_t *)heads[at], len[at]);
        }
        whole[round] = (now_ns() - start) / SCANS;

        start = now_ns();
        for (int i = 0; i < SCANS; i++) {
            const size_t at = (size_t)(i * 7 + i / 3) % HEADS;
            ef_head_reset(&head);
            (void)ef_head_scan_request(&head, &limits, (const uint8_t *)heads[at], len[at] / 2);
            check += (unsigned long)ef_head_scan_request(&head, &limits, (const uint8_t *)heads[at], len[at]);
        }
        halves[round] = (now_ns() - start) / SCANS;

        start = now_ns();
        for (int i = 0; i < SCANS; i++) {
            uint8_t out[256];
            size_t out_len;
            int escaped;
            const size_t at = (size_t)(i * 7 + i / 3) % HEADS;
            const uint8_t *target = (const uint8_t *)strchr(heads[at], '/');
            check += (unsigned long)ef_path_normalize(target, 20, out, sizeof(out), &out_len, &escaped);
        }
        path[round] = (now_ns() - start) / SCANS;
    }
    printf("%zu bytes, 8 headers on average (%lu)\n", bytes / HEADS, check);
    report("request head, one piece", whole);
    report("request head, two pieces", halves);
    report("path of 20 bytes, normal", path);
    return 0;
}
