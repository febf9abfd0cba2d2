/* check.h - all that a unit test of csrc needs: CHECK counts and reports, finish() ends the program. */
#ifndef EF_TESTS_CHECK_H
#define EF_TESTS_CHECK_H
#include <stdio.h>

static unsigned long checks_done;
static unsigned long checks_failed;

static inline int check_at(int holds, const char *file, int line, const char *what) {
    checks_done++;
    if (!holds && checks_failed++ < 20) fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    return holds;
}

static inline int check_equal_at(long long got, long long want, const char *file, int line, const char *what) {
    if (!check_at(got == want, file, line, what)) fprintf(stderr, "    got %lld, want %lld\n", got, want);
    return got == want;
}

#define CHECK(condition) check_at(!!(condition), __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(got, want) \
    check_equal_at((long long)(got), (long long)(want), __FILE__, __LINE__, #got " == " #want)

/* The exit status of main. A test that checked nothing has failed. */
static inline int finish(const char *file) {
    fprintf(checks_failed ? stderr : stdout, "%s: %lu checks, %lu failed\n", file, checks_done, checks_failed);
    return checks_failed != 0 || checks_done == 0;
}
#define FINISH() finish(__FILE__)
#endif
