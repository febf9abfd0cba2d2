/* options.h: what load was asked for; the words are explained at the top of load.c.
 *
 * In: argv. Out: `opt`, checked; wrong usage ends the program with status 2. Must never hold state
 * that changes during a run. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONNS  4096
#define MAX_HEADER 2048

static struct {
    unsigned port, connections, hosts, paths, users;
    double seconds, rate;
    uint64_t requests, body;
    bool close, refusals, rotate;
    const char *suffix, *header, *encoding;
} opt = {.connections = 64, .hosts = 1, .seconds = 4, .requests = UINT64_MAX, .suffix = ""};

static inline void read_options(int argc, char **argv) {
    static const struct option longopts[] = {
        {"port", 1, 0, 'p'},   {"connections", 1, 0, 'c'}, {"seconds", 1, 0, 's'},  {"requests", 1, 0, 'n'},
        {"rate", 1, 0, 'r'},   {"close", 0, 0, 'x'},       {"hosts", 1, 0, 'h'},    {"paths", 1, 0, 'q'},
        {"suffix", 1, 0, 'f'}, {"body", 1, 0, 'b'},        {"users", 1, 0, 'u'},    {"refusals", 0, 0, 'z'},
        {"rotate", 0, 0, 'o'}, {"header", 1, 0, 'H'},      {"encoding", 1, 0, 'e'}, {0, 0, 0, 0}};
    int key;
    while ((key = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
        switch (key) {
        case 'p':
            opt.port = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            opt.connections = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 's':
            opt.seconds = strtod(optarg, NULL);
            break;
        case 'n':
            opt.requests = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            opt.rate = strtod(optarg, NULL);
            break;
        case 'x':
            opt.close = true;
            break;
        case 'h':
            opt.hosts = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'q':
            opt.paths = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'f':
            opt.suffix = optarg;
            break;
        case 'b':
            opt.body = strtoull(optarg, NULL, 10);
            break;
        case 'u':
            opt.users = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'z':
            opt.refusals = true;
            break;
        case 'o':
            opt.rotate = true;
            break;
        case 'H':
            opt.header = optarg;
            break;
        case 'e':
            opt.encoding = optarg;
            break;
        default:
            exit(2);
        }
    }
    if (!opt.port || !opt.connections || opt.connections > MAX_CONNS || !opt.hosts || (opt.close && opt.rate > 0) ||
        strlen(opt.suffix) > 512 || (opt.header && strlen(opt.header) > MAX_HEADER) ||
        (opt.encoding && strlen(opt.encoding) > 64)) {
        fprintf(stderr, "load: --port and 1..%d --connections are needed; --close excludes --rate\n", MAX_CONNS);
        exit(2);
    }
}

#endif
