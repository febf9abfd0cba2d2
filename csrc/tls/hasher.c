/* hasher.c - passwords that are tried on a thread which holds nobody up (hasher.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crypto.h"
#include "hasher.h"

#define LEAST_PRIORITY 19

typedef struct slot {
    uint8_t *text; /* the password, then what is kept */
    size_t n;
    size_t kept_n;
    int fits;
    int done; /* handed back with a release, seen with an acquire */
} slot;

struct ef_hasher {
    slot slots[EF_HASHER_SLOTS];
    uint32_t submitted; /* by the one thread; how many, ever */
    uint32_t taken;     /* by the same */
    int fd;
    int closed;
    sem_t jobs;
    pthread_t thread;
};

static void forget(slot *job) {
    OPENSSL_cleanse(job->text, job->n + job->kept_n);
    free(job->text);
    job->text = NULL;
}

static void *run(void *given) {
    ef_hasher *hasher = given;
    const uint64_t one = 1;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LEAST_PRIORITY);
    for (uint32_t at = 0;; at++) {
        while (sem_wait(&hasher->jobs) != 0) {
        } /* EINTR alone */
        if (__atomic_load_n(&hasher->closed, __ATOMIC_ACQUIRE)) return NULL;
        slot *job = &hasher->slots[at % EF_HASHER_SLOTS];
        job->fits = ef_apr1_fits(job->text, job->n, job->text + job->n, job->kept_n);
        forget(job);
        __atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
        while (write(hasher->fd, &one, sizeof(one)) < 0 && errno == EINTR) {
        } /* EAGAIN: it is readable */
    }
}

static int start(ef_hasher *hasher) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the interpreter's */
    const int failed = pthread_create(&hasher->thread, NULL, run, hasher);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return failed;
}

ef_hasher *ef_hasher_new(void) {
    ef_hasher *hasher = calloc(1, sizeof(*hasher));
    if (hasher == NULL) return NULL;
    hasher->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (hasher->fd >= 0) {
        if (sem_init(&hasher->jobs, 0, 0) == 0) {
            if (start(hasher) == 0) return hasher;
            sem_destroy(&hasher->jobs);
        }
        close(hasher->fd);
    }
    free(hasher);
    return NULL;
}

void ef_hasher_free(ef_hasher *hasher) {
    if (hasher == NULL) return;
    __atomic_store_n(&hasher->closed, 1, __ATOMIC_RELEASE);
    sem_post(&hasher->jobs);
    pthread_join(hasher->thread, NULL);
    for (uint32_t at = hasher->taken; at != hasher->submitted; at++) {
        slot *job = &hasher->slots[at % EF_HASHER_SLOTS];
        if (job->text != NULL) forget(job);
    }
    sem_destroy(&hasher->jobs);
    close(hasher->fd);
    free(hasher);
}

int ef_hasher_fd(const ef_hasher *hasher) { return hasher->fd; }

int ef_hasher_submit(ef_hasher *hasher, const uint8_t *password, size_t n, const uint8_t *kept, size_t kept_n) {
    slot *job = &hasher->slots[hasher->submitted % EF_HASHER_SLOTS];
    if (hasher->submitted - hasher->taken == EF_HASHER_SLOTS) return -1;
    job->text = malloc(n + kept_n + 1);
    if (job->text == NULL) return -1;
    memcpy(job->text, password, n);
    memcpy(job->text + n, kept, kept_n);
    job->n = n;
    job->kept_n = kept_n;
    job->done = 0;
    hasher->submitted++;
    sem_post(&hasher->jobs); /* what is above happens before whatever the thread does with it */
    return 0;
}

int ef_hasher_take(ef_hasher *hasher) {
    uint64_t count;
    if (hasher->taken == hasher->submitted) {
        (void)!read(hasher->fd, &count, sizeof(count)); /* nobody is told of what is taken already */
        return -1;
    }
    slot *job = &hasher->slots[hasher->taken % EF_HASHER_SLOTS];
    if (!__atomic_load_n(&job->done, __ATOMIC_ACQUIRE)) {
        (void)!read(hasher->fd, &count, sizeof(count));
        /* What was told before this read may be what was not done above. */
        if (!__atomic_load_n(&job->done, __ATOMIC_ACQUIRE)) return -1;
    }
    hasher->taken++;
    return job->fits;
}
