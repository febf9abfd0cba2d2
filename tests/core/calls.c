/* calls.c - preloaded into a test's child process: counts how often the kernel is asked for a socket's address.
 *
 * In: calls of getsockname and getpeername, answered as ever. Out: addresses_asked(), of one thread's making. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

struct sockaddr;
typedef int (*ask)(int, struct sockaddr *, unsigned *);

static long asked;

long addresses_asked(void);
long addresses_asked(void) { return asked; }

int getsockname(int fd, struct sockaddr *address, unsigned *length);
int getsockname(int fd, struct sockaddr *address, unsigned *length) {
    static ask real;
    if (real == NULL) *(void **)(&real) = dlsym(RTLD_NEXT, "getsockname");
    asked++;
    return real(fd, address, length);
}

int getpeername(int fd, struct sockaddr *address, unsigned *length);
int getpeername(int fd, struct sockaddr *address, unsigned *length) {
    static ask real;
    if (real == NULL) *(void **)(&real) = dlsym(RTLD_NEXT, "getpeername");
    asked++;
    return real(fd, address, length);
}
