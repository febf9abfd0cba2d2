/* fuzz_head_response.c - any bytes as a response head, to a GET and to a HEAD. */
#include "head_invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_head(data, size, EF_M_GET);
    fuzz_head(data, size, EF_M_HEAD);
    return 0;
}
