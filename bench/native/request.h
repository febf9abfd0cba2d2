/* request.h: one request as load.c sends it, with what is random in it.
 *
 * In: `opt`, the state of a generator of random numbers. Out: its bytes, and how many. Must never differ for two proxies. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "options.h"
#include "text.h"
#include "wire.h"

static inline unsigned request_pick(uint64_t *state, unsigned below) {
    return (unsigned)(((wire_random(state) >> 32) * below) >> 32);
}

/* Six headers, as browsers and API clients send; the POST body follows, already in place. */
static inline size_t request_write(char *request, uint64_t *state) {
    static const char rest[] = ".example.com\r\nUser-Agent: edgefast-bench/1.0 (closed loop)\r\nAccept: "
                               "text/html,application/json;q=0.9,*/*;q=0.8\r\nAccept-Language: "
                               "en-US,en;q=0.5\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n";
    char *to = append_text(request, opt.body ? "POST " : "GET ");
    if (opt.paths) {
        to = append_text(to, "/route-");
        to = append_number(to, request_pick(state, opt.paths));
    }
    to = append_text(to, "/get");
    to = append_text(to, opt.suffix);
    to = append_text(to, " HTTP/1.1\r\nHost: www-");
    to = append_number(to, opt.hosts > 1 ? request_pick(state, opt.hosts) : 0);
    memcpy(to, rest, sizeof rest - 1);
    to += sizeof rest - 1;
    to = append_text(to, "Accept-Encoding: ");
    to = append_text(to, opt.encoding ? opt.encoding : "gzip, deflate, br");
    to = append_text(to, "\r\n");
    if (opt.header) {
        to = append_text(to, opt.header);
        to = append_text(to, "\r\n");
    }
    if (opt.users) {
        to = append_text(to, "X-User-Id: user-");
        to = append_number(to, request_pick(state, opt.users));
        to = append_text(to, "\r\n");
    }
    if (opt.close) to = append_text(to, "Connection: close\r\n");
    if (opt.body) {
        to = append_text(to, "Content-Length: ");
        to = append_number(to, opt.body);
        to = append_text(to, "\r\n");
    }
    to = append_text(to, "\r\n");
    memset(to, 'x', opt.body);
    return (size_t)(to - request) + opt.body;
}

#endif
