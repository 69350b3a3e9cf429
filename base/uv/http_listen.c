/* SPDX-License-Identifier: Apache-2.0
 *
 * Listening sockets of the HTTP server.
 */
#include "base/uv/http_listen.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int tcp_socket(const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (ai->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)); /* "::" serves IPv4 too */
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, HTTP_LISTEN_BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int bound_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof(a);
    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

int http_listen_tcp(const char *host, int port, int *ret_fd, int *ret_port, struct err *e)
{
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *ai = NULL;
    int rc = getaddrinfo(host, service, &hints, &ai);
    if (rc != 0)
        return err_set(e, ERR_CONFIG, "cannot listen on %s:%d: %s", host, port,
            rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    int fd = tcp_socket(ai);
    freeaddrinfo(ai);
    if (fd < 0)
        return err_errno(e, errno, "cannot listen on %s:%d", host, port);
    *ret_fd = fd;
    *ret_port = bound_port(fd);
    return 0;
}

/* Binds the socket under a temporary name and sets its mode before it gets the name that clients
 * know. So at each moment a socket listens at path, and never with rights that are too wide. */
static int bind_and_rename(int fd, const struct sockaddr_un *own, const char *path, mode_t mode)
{
    if (unlink(own->sun_path) < 0 && errno != ENOENT)
        return -1;
    if (bind(fd, (const struct sockaddr *)own, sizeof(*own)) < 0)
        return -1;
    if (chmod(own->sun_path, mode) == 0 && listen(fd, HTTP_LISTEN_BACKLOG) == 0 &&
        rename(own->sun_path, path) == 0)
        return 0;
    int saved = errno;
    unlink(own->sun_path);
    errno = saved;
    return -1;
}

int http_listen_unix(const char *path, mode_t mode, int *ret_fd, struct err *e)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n > HTTP_UNIX_PATH_MAX)
        return err_set(e, ERR_CONFIG,
            "cannot listen on %s: the path of a UNIX socket can have at most %zu bytes; choose a "
            "shorter one",
            path, HTTP_UNIX_PATH_MAX);
    memcpy(own.sun_path, path, n);
    snprintf(own.sun_path + n, sizeof(own.sun_path) - n, ".%d", (int)getpid());
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return err_set(e, ERR_CONFLICT, "cannot listen on %s: it exists and is not a socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind_and_rename(fd, &own, path, mode) < 0) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        return err_errno(e, saved, "cannot listen on %s", path);
    }
    *ret_fd = fd;
    return 0;
}
