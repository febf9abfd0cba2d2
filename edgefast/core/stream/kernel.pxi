# What datagrams ask of the kernel: batches in and out, and the address that a datagram came to, which its answers come from.

cdef extern from *:
    """
    #include <arpa/inet.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <netinet/in.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/uio.h>

    enum { EF_UDP_BATCH = 32, EF_UDP_ROOM = 65536, EF_UDP_CONTROL = 64 };

    /* Where an answer goes, and from which of our addresses: what sendmsg(2) takes. */
    typedef struct ef_udp_way {
        struct sockaddr_storage peer;
        socklen_t peer_len;
        size_t control_len; /* 0: the kernel's choice */
        union {
            struct cmsghdr align;
            uint8_t bytes[EF_UDP_CONTROL];
        } control;
    } ef_udp_way;

    typedef struct ef_udp_batch {
        struct mmsghdr messages[EF_UDP_BATCH];
        struct iovec iov[EF_UDP_BATCH];
        ef_udp_way ways[EF_UDP_BATCH];
        uint8_t *room; /* EF_UDP_BATCH datagrams of the largest size; pages that nobody needs are never touched */
    } ef_udp_batch;

    static ef_udp_batch *ef_udp_batch_new(void) {
        ef_udp_batch *batch = calloc(1, sizeof(*batch));
        if (batch && !(batch->room = malloc((size_t)EF_UDP_BATCH * EF_UDP_ROOM))) {
            free(batch);
            batch = NULL;
        }
        return batch;
    }

    static void ef_udp_batch_free(ef_udp_batch *batch) {
        if (batch) free(batch->room);
        free(batch);
    }

    /* Takes what waits, `most` datagrams at most; their number, or -1 and errno. names: with their senders and our address. */
    static int ef_udp_take(int fd, ef_udp_batch *batch, int most, int names) {
        for (int i = 0; i < most; i++) {
            struct msghdr *m = &batch->messages[i].msg_hdr;
            batch->iov[i].iov_base = batch->room + (size_t)i * EF_UDP_ROOM;
            batch->iov[i].iov_len = EF_UDP_ROOM;
            memset(m, 0, sizeof(*m));
            m->msg_iov = &batch->iov[i];
            m->msg_iovlen = 1;
            if (names) {
                m->msg_name = &batch->ways[i].peer;
                m->msg_namelen = sizeof(batch->ways[i].peer);
                m->msg_control = batch->ways[i].control.bytes;
                m->msg_controllen = EF_UDP_CONTROL;
            }
        }
        int n = recvmmsg(fd, batch->messages, (unsigned)most, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++) {
            struct msghdr *m = &batch->messages[i].msg_hdr;
            batch->iov[i].iov_len = batch->messages[i].msg_len;
            if (!names) continue;
            ef_udp_way *way = &batch->ways[i];
            way->peer_len = m->msg_namelen;
            way->control_len = 0;
            for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
                    struct in_pktinfo info;
                    memcpy(&info, CMSG_DATA(c), sizeof(info));
                    info.ipi_spec_dst = info.ipi_addr;
                    info.ipi_ifindex = 0;
                    memset(way->control.bytes, 0, EF_UDP_CONTROL);
                    way->control_len = CMSG_SPACE(sizeof(info));
                    way->control.align.cmsg_level = IPPROTO_IP;
                    way->control.align.cmsg_type = IP_PKTINFO;
                    way->control.align.cmsg_len = CMSG_LEN(sizeof(info));
                    memcpy(CMSG_DATA(&way->control.align), &info, sizeof(info));
                    break;
                }
                if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
                    struct in6_pktinfo info;
                    memcpy(&info, CMSG_DATA(c), sizeof(info));
                    if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) info.ipi6_ifindex = 0;
                    memset(way->control.bytes, 0, EF_UDP_CONTROL);
                    way->control_len = CMSG_SPACE(sizeof(info));
                    way->control.align.cmsg_level = IPPROTO_IPV6;
                    way->control.align.cmsg_type = IPV6_PKTINFO;
                    way->control.align.cmsg_len = CMSG_LEN(sizeof(info));
                    memcpy(CMSG_DATA(&way->control.align), &info, sizeof(info));
                    break;
                }
            }
        }
        return n;
    }

    /* The address that a datagram came to: 4 or 16 bytes, 0 when it is not known. */
    static int ef_udp_local(const ef_udp_way *way, uint8_t *to) {
        if (way->control_len && way->control.align.cmsg_level == IPPROTO_IP) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA((struct cmsghdr *)&way->control.align), sizeof(info));
            memcpy(to, &info.ipi_spec_dst, 4);
            return 4;
        }
        if (way->control_len) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA((struct cmsghdr *)&way->control.align), sizeof(info));
            memcpy(to, &info.ipi6_addr, 16);
            return 16;
        }
        return 0;
    }

    /*
     * Sends datagrams `from` .. `from + n - 1` of a batch; way NULL: on a connected socket. How many went, or -1 and errno when none did.
     * One that is too large for the way is stepped over: it says nothing about the others. bytes: of those that went, added.
     */
    static int ef_udp_give(int fd, ef_udp_batch *batch, int from, int n, ef_udp_way *way, size_t *bytes) {
        const int end = from + n;
        int went = 0;
        for (int i = from; i < end; i++) {
            struct msghdr *m = &batch->messages[i].msg_hdr;
            m->msg_name = way ? &way->peer : NULL;
            m->msg_namelen = way ? way->peer_len : 0;
            m->msg_control = way && way->control_len ? way->control.bytes : NULL;
            m->msg_controllen = way ? way->control_len : 0;
            m->msg_flags = 0;
        }
        while (from < end) { /* each turn is a datagram further at least */
            int sent = sendmmsg(fd, batch->messages + from, (unsigned)(end - from), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0) {
                if (errno != EMSGSIZE) return went ? went : -1;
                from++;
                continue;
            }
            for (int i = from; i < from + sent; i++) *bytes += batch->iov[i].iov_len;
            went += sent;
            from += sent;
        }
        return went;
    }

    static int ef_dup(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

    /* Learn our address of what comes. */
    static int ef_udp_prepare(int fd, int family) {
        int one = 1;
        if (family == AF_INET6) return setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one));
        return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one));
    }
    """
    enum:
        EF_UDP_BATCH

    ctypedef struct ef_udp_way:
        sockaddr_storage peer
        socklen_t peer_len

    ctypedef struct ef_udp_batch:
        iovec iov[32]
        ef_udp_way ways[32]

    ef_udp_batch *ef_udp_batch_new() nogil
    void ef_udp_batch_free(ef_udp_batch *batch) nogil
    int ef_udp_take(int fd, ef_udp_batch *batch, int most, int names) nogil
    int ef_udp_local(const ef_udp_way *way, uint8_t *to) nogil
    int ef_udp_give(int fd, ef_udp_batch *batch, int first, int n, ef_udp_way *way, size_t *bytes) nogil
    int ef_udp_prepare(int fd, int family) nogil
    int fcntl_dup "ef_dup" (int fd) nogil
