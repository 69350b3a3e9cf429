/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fds.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

int fds_send(int socket, const void *p, size_t n, const int *fds, size_t n_fds)
{
    union control control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(n_fds * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    assert(n > 0 && n_fds > 0 && n_fds <= FDS_MAX);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

ssize_t fds_receive(
    int socket, void *p, size_t n, int flags, int *ret_fds, size_t max, bool *ret_is_cut)
{
    union control control;
    struct iovec part = {.iov_base = p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes)};
    size_t n_fds = 0;
    bool is_cut;
    ssize_t got = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
    is_cut = got >= 0 && (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    for (struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (n_fds < max)
                ret_fds[n_fds++] = fd;
            else
                is_cut = close(fd) == 0 || is_cut;
        }
    }
    while (n_fds < max)
        ret_fds[n_fds++] = -1;
    if (ret_is_cut)
        *ret_is_cut = is_cut;
    return got;
}
