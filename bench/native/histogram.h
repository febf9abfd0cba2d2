/* histogram.h: latencies in logarithmic buckets with 64 linear steps each (HdrHistogram's shape).
 *
 * In: nanoseconds. Out: quantiles in nanoseconds, at most 1/64 (1.6 %) too high, never too low.
 * Fixed memory, no allocation, one increment per value.
 *
 *   value < 64          bucket = value
 *   else                bucket = 64 * exponent + (value >> exponent), value >> exponent in 64..127
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS (64 * 60)

struct histogram {
    uint64_t count, max;
    uint64_t bucket[HISTOGRAM_BUCKETS];
};

static inline void histogram_add(struct histogram *h, uint64_t value) {
    unsigned exponent = value < 64 ? 0 : 57u - (unsigned)__builtin_clzll(value);
    h->bucket[64 * exponent + (value >> exponent)]++;
    h->count++;
    if (value > h->max) h->max = value;
}

/* Upper edge of the bucket that holds the value of rank ceil(q * count); 0 when empty. */
static inline uint64_t histogram_quantile(const struct histogram *h, double q) {
    uint64_t seen = 0, rank = (uint64_t)(q * (double)h->count + 0.9999999);
    for (uint64_t i = 0; i < HISTOGRAM_BUCKETS && h->count; i++) {
        seen += h->bucket[i];
        if (seen >= rank && h->bucket[i]) {
            uint64_t exponent = i < 128 ? 0 : i / 64 - 1;
            uint64_t edge = ((i - 64 * exponent + 1) << exponent) - 1;
            return edge < h->max ? edge : h->max;
        }
    }
    return h->max;
}

#endif
