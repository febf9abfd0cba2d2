# What the socket layer asks of the kernel, beyond csrc.pxd.

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <netinet/in.h>
    #include <netinet/tcp.h>
    #include <stddef.h>
    #include <string.h>
    #include <sys/epoll.h>
    #include <sys/socket.h>
    #include <sys/un.h>
    #include <unistd.h>
    """
    enum:
        EACCES
        EADDRINUSE
        EADDRNOTAVAIL
        EBADF
        ECONNABORTED
        ECONNREFUSED
        ECONNRESET
        EHOSTDOWN
        EHOSTUNREACH
        EINPROGRESS
        EINVAL
        EMFILE
        ENETDOWN
        ENETUNREACH
        ENFILE
        ENOBUFS
        ENOENT
        ENOMEM
        ENONET
        ENOPROTOOPT
        ENOSPC
        ENOTSOCK
        EPIPE
        EPROTO
        ETIMEDOUT

    enum:
        EPOLLERR
        EPOLLHUP
        EPOLLIN
        EPOLLOUT
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL
        EPOLL_CTL_MOD

    enum:
        AF_UNIX
        IPPROTO_TCP
        O_CLOEXEC
        O_RDONLY
        SOCK_CLOEXEC
        SOCK_DGRAM
        SOCK_NONBLOCK
        SOCK_STREAM
        SO_ERROR
        TCP_NODELAY
        TCP_NOTSENT_LOWAT

    ctypedef union epoll_data_t:
        uint64_t u64

    struct epoll_event:
        uint32_t events
        epoll_data_t data

    struct sockaddr_un:
        unsigned short sun_family
        char sun_path[108]

    ctypedef struct linger_t "struct linger":
        int l_onoff
        int l_linger

    enum:
        SO_LINGER

    uint16_t htons(uint16_t number) nogil
    int accept4(int fd, sockaddr *address, socklen_t *length, int flags) nogil
    int close(int fd) nogil
    int connect(int fd, const sockaddr *address, socklen_t length) nogil
    int epoll_create1(int flags) nogil
    int epoll_ctl(int epoll, int operation, int fd, epoll_event *event) nogil
    int epoll_wait(int epoll, epoll_event *events, int most, int timeout) nogil
    int open(const char *path, int flags) nogil
    int setsockopt(int fd, int level, int name, const void *value, socklen_t length) nogil
    int socket(int family, int kind, int protocol) nogil
    char *strerror(int error) nogil


cdef extern from "malloc.h" nogil:
    int malloc_trim(size_t pad)
