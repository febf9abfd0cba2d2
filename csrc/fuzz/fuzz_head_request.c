/* fuzz_head_request.c - any bytes as a request head. */
#include "head_invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_head(data, size, -1);
    return 0;
}
