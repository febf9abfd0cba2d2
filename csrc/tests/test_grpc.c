/* test_grpc.c - content types, timeouts and statuses of gRPC, each against a guard page; and where a head says it is gRPC. */
#include "../grpc.h"

#include <string.h>

#include "../head.h"
#include "check.h"
#include "guard.h"

static unsigned kind_of(const char *text) { return ef_grpc_content_type(guard_end(text, strlen(text)), strlen(text)); }

static void test_content_types(void) {
    CHECK_EQUAL(kind_of("application/grpc"), EF_GRPC);
    CHECK_EQUAL(kind_of("Application/GRPC"), EF_GRPC);
    CHECK_EQUAL(kind_of("application/grpc+proto"), EF_GRPC);
    CHECK_EQUAL(kind_of("application/grpc;charset=x"), EF_GRPC);
    CHECK_EQUAL(kind_of("application/grpc ; a=b"), EF_GRPC);
    CHECK_EQUAL(kind_of("application/grpc-web"), EF_GRPC_WEB);
    CHECK_EQUAL(kind_of("application/grpc-web+proto"), EF_GRPC_WEB);
    CHECK_EQUAL(kind_of("application/grpc-web-text"), EF_GRPC_WEB_TEXT);
    CHECK_EQUAL(kind_of("application/grpc-web-text+proto"), EF_GRPC_WEB_TEXT);
    const char *others[] = {"",
                            "a",
                            "application/json",
                            "application/grp",
                            "application/grpcs",
                            "application/grpc-",
                            "application/grpc-webs",
                            "application/grpc-web-texts",
                            "xapplication/grpc",
                            "application/g",
                            "application/gopher",
                            "application/grpc,application/json",
                            "text/grpc"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK_EQUAL(kind_of(others[i]), EF_GRPC_NONE);
}

static long long timeout_of(const char *text) { return ef_grpc_timeout(guard_end(text, strlen(text)), strlen(text)); }

static void test_timeouts(void) {
    CHECK_EQUAL(timeout_of("1H"), 3600000);
    CHECK_EQUAL(timeout_of("2M"), 120000);
    CHECK_EQUAL(timeout_of("3S"), 3000);
    CHECK_EQUAL(timeout_of("00000250m"), 250);
    CHECK_EQUAL(timeout_of("000000250m"), -1);
    CHECK_EQUAL(timeout_of("1u"), 1);
    CHECK_EQUAL(timeout_of("1000u"), 1);
    CHECK_EQUAL(timeout_of("1001u"), 2);
    CHECK_EQUAL(timeout_of("1n"), 1);
    CHECK_EQUAL(timeout_of("1000001n"), 2);
    CHECK_EQUAL(timeout_of("0m"), 0);
    CHECK_EQUAL(timeout_of("99999999H"), 99999999ll * 3600000);
    const char *others[] = {"", "S", "1", "1s", "-1S", "+1S", " 1S", "1 S", "1.5S", "123456789S", "1SS", "0x1S"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK_EQUAL(timeout_of(others[i]), -1);
}

static int status_of(const char *text) { return ef_grpc_status(guard_end(text, strlen(text)), strlen(text)); }

static void test_statuses(void) {
    CHECK_EQUAL(status_of("0"), 0);
    CHECK_EQUAL(status_of("16"), 16);
    CHECK_EQUAL(status_of("999"), 999);
    CHECK_EQUAL(status_of("1000"), -1);
    CHECK_EQUAL(status_of(""), -1);
    CHECK_EQUAL(status_of("-1"), -1);
    CHECK_EQUAL(status_of("1 "), -1);
    CHECK_EQUAL(status_of("OK"), -1);
}

static int head_of(const char *text) {
    static ef_head head;
    const ef_head_limits limits = {8192, 4096, 64, EF_UNDERSCORE_ALLOW, EF_RAW_REJECT, EF_HTTP10_REJECT};
    ef_head_reset(&head);
    if (ef_head_scan_request(&head, &limits, (const uint8_t *)text, strlen(text)) <= 0) return -1;
    return head.grpc;
}

static void test_heads(void) {
    CHECK_EQUAL(head_of("POST /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\r\n"), EF_GRPC);
    CHECK_EQUAL(head_of("POST /a.B/C HTTP/1.1\r\ncontent-type: application/grpc-web+proto\r\nHost: a\r\n\r\n"),
                EF_GRPC_WEB);
    CHECK_EQUAL(head_of("GET /a.B/C HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\r\n"), EF_GRPC_NONE);
    CHECK_EQUAL(head_of("POST / HTTP/1.1\r\nHost: a\r\nContent_Type: application/grpc\r\n\r\n"), EF_GRPC_NONE);
    CHECK_EQUAL(head_of("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), EF_GRPC_NONE);
}

int main(void) {
    test_content_types();
    test_timeouts();
    test_statuses();
    test_heads();
    return FINISH();
}
