/* test_h2_lines.c - heads of HTTP/1.1 as fields of HTTP/2. */
#include "../h2_lines.h"

#include "check.h"
#include "guard.h"

enum what { RESPONSE, TUNNEL_RESPONSE, REQUEST, TLS_REQUEST, TUNNEL_REQUEST, TRAILERS };

static ef_h2_pair pairs[16];

static int cut(enum what what, uint8_t *text, size_t len, size_t room) {
    switch (what) {
    case RESPONSE:
        return ef_h2_lines_response(text, len, 0, pairs, room);
    case TUNNEL_RESPONSE:
        return ef_h2_lines_response(text, len, 1, pairs, room);
    case REQUEST:
        return ef_h2_lines_request(text, len, 0, 0, pairs, room);
    case TLS_REQUEST:
        return ef_h2_lines_request(text, len, 1, 0, pairs, room);
    case TUNNEL_REQUEST:
        return ef_h2_lines_request(text, len, 0, 1, pairs, room);
    default:
        return ef_h2_lines_trailers(text, len, pairs, room);
    }
}

/* Pairs as "name=value|...", "name~value" where it varies; NULL: refused. The text lies at either forbidden page. */
static void check_cut(enum what what, const char *text, const char *want) {
    const size_t len = strlen(text);
    for (int at_end = 0; at_end < 2; at_end++) {
        uint8_t *copy = (uint8_t *)(uintptr_t)(at_end ? guard_end(text, len) : guard_start(text, len));
        const int n = cut(what, copy, len, 16);
        if (want == NULL) {
            if (!CHECK(n == EF_BAD)) fprintf(stderr, "    %s\n", text);
            continue;
        }
        char got[1024] = "";
        size_t size = 0;
        for (int i = 0; i < n; i++) {
            const ef_h2_pair *p = &pairs[i];
            size += (size_t)snprintf(got + size, sizeof(got) - size, "%.*s%s%.*s|", (int)p->name_len, (char *)p->name,
                                     p->flags ? "~" : "=", (int)p->value_len, (char *)p->value);
            CHECK(p->flags == 0 || p->flags == EF_H2_PAIR_VARIES);
        }
        if (!CHECK(n >= 0 && strcmp(got, want) == 0)) fprintf(stderr, "    %d: %s\n    want %s\n", n, got, want);
        if (n > 0) CHECK_EQUAL(cut(what, copy, len, (size_t)n - 1), EF_BAD); /* no room */
    }
}

static void test_responses(void) {
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\n\r\n", ":status=200|");
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\n", ":status=200|");
    check_cut(RESPONSE, "HTTP/1.1 404 \r\nServer: a b\r\nX-Y:  z \t\r\nEmpty:\r\n\r\n",
              ":status=404|server=a b|x-y=z|empty=|");
    check_cut(RESPONSE, "HTTP/1.0 200 OK\r\na: b\r\n", ":status=200|a=b|");
    check_cut(
        RESPONSE,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nKeep-Alive: 1\r\nProxy-Connection: x\r\nTransfer-Encoding: chunked\r\n"
        "Upgrade: x\r\nTE: gzip\r\nContent-Length: 3\r\nHost: h\r\n\r\n",
        ":status=200|content-length=3|host=h|");
    check_cut(
        RESPONSE,
        "HTTP/1.1 200 OK\r\nX-Edge-Upstream-Service-Time: 7\r\nx-edge-upstream-service-tim: 7\r\nx-edge-internal: "
        "true\r\nX-Request-ID: 1\r\ndate: d\r\n\r\n",
        ":status=200|x-edge-upstream-service-time~7|x-edge-upstream-service-tim=7|x-edge-internal=true|"
        "x-request-id~1|date=d|");
    check_cut(RESPONSE, "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n", NULL);
    check_cut(RESPONSE, "", NULL);
    check_cut(RESPONSE, "HTTP/1.1 2", NULL);
    check_cut(RESPONSE, "HTTP/1.1 2x0 OK\r\n\r\n", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\na\r\n\r\n", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\n: b\r\n\r\n", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\na b: c\r\n\r\n", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\na: b", NULL);
    check_cut(RESPONSE, "HTTP/1.1 200 OK\r\n\r\na: b\r\n", NULL);
}

static void test_tunnels(void) {
    check_cut(TUNNEL_RESPONSE,
              "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n"
              "Sec-WebSocket-Protocol: p\r\nContent-Length: 0\r\n\r\n",
              ":status=200|sec-websocket-protocol=p|");
    check_cut(TUNNEL_RESPONSE, "HTTP/1.1 403 No\r\nContent-Length: 0\r\nSec-WebSocket-Accept: x\r\n\r\n",
              ":status=403|content-length=0|sec-websocket-accept=x|");
    check_cut(TUNNEL_REQUEST,
              "GET /c HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
              ":method=CONNECT|:scheme=http|:path=/c|:authority=x|:protocol=websocket|");
}

static void test_requests(void) {
    check_cut(REQUEST, "GET /a?b HTTP/1.1\r\nAccept: x\r\nhost: y\r\nTE: trailers\r\nExpect: 100-continue\r\n\r\n",
              ":method=GET|:scheme=http|:path=/a?b|:authority=y|accept=x|te=trailers|expect=100-continue|");
    check_cut(TLS_REQUEST, "POST / HTTP/1.1\r\nhost: y\r\n", ":method=POST|:scheme=https|:path=/|:authority=y|");
    check_cut(REQUEST, "GET / HTTP/1.1\r\n\r\n", NULL);
    check_cut(REQUEST, "GET / HTTP/1.1\r\nhost: \r\n\r\n", NULL);
    check_cut(REQUEST, "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", NULL);
    check_cut(REQUEST, "GET / HTTP/1.0\r\nhost: a\r\n\r\n", NULL);
    check_cut(REQUEST, "GET  HTTP/1.1\r\nhost: a\r\n\r\n", NULL);
    check_cut(REQUEST, " / HTTP/1.1\r\nhost: a\r\n\r\n", NULL);
    check_cut(REQUEST, "GET / / HTTP/1.1\r\nhost: a\r\n\r\n", NULL);
    check_cut(REQUEST, "GET\r\nhost: a\r\n\r\n", NULL);
}

static void test_trailers(void) {
    check_cut(TRAILERS, "", "");
    check_cut(TRAILERS, "Grpc-Status: 0\r\ngrpc-message:\r\n", "grpc-status=0|grpc-message=|");
    check_cut(TRAILERS, "a: b\r\n\r\n", "a=b|");
    check_cut(TRAILERS, "a: b\r\nTransfer-Encoding: chunked\r\n", "a=b|");
    check_cut(TRAILERS, "a: b\r", NULL);
    check_cut(TRAILERS, "a", NULL);
}

int main(void) {
    test_responses();
    test_tunnels();
    test_requests();
    test_trailers();
    return FINISH();
}
