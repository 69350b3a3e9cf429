/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP requests as fast as a server takes them: SOCKET CONNECTIONS, the requests on stdin: a line
 * with the length of each, then its bytes. All are read first; then each connection has one request
 * under way until there are no more. Prints the seconds that took; the first answer that is no
 * success ends it with 1. In C, for it shares the processor with the server, and the client must
 * not be what is measured.
 */
#include "base/mem.h"

#include <errno.h>
#include <http_parser.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define WAIT_MS 60000
#define REQUESTS_MAX 10000000

struct request {
    char *text;
    size_t size;
};

struct load {
    struct request *requests;
    size_t n, next, n_answered;
};

struct connection {
    struct load *load;
    http_parser parser;
    char said[300]; /* of an answer's body, for who reads that it failed */
    size_t n_said;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_load: %s: %s\n", what, errno ? strerror(errno) : "it ends too early");
    exit(1);
}

static struct load read_requests(void)
{
    struct load l = {0};
    size_t size, room = 0;
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        if (l.n == room)
            l.requests = mem_resize(l.requests, room = room ? 2 * room : 1024, sizeof *l.requests);
        size = (size_t)strtoull(line, NULL, 10);
        l.requests[l.n] = (struct request){mem_array(size, 1), size};
        if (fread(l.requests[l.n++].text, 1, size, stdin) != size || l.n > REQUESTS_MAX)
            die("stdin");
    }
    return l;
}

static int connect_to(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (strlen(path) >= sizeof at.sun_path)
        errno = ENAMETOOLONG;
    else
        memcpy(at.sun_path, path, strlen(path));
    if (fd < 0 || !at.sun_path[0] || connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        die(path);
    return fd;
}

/* The next request, if there is one: they are short enough for a socket's buffer, or the server
 * reads while this waits. */
static void send_next(struct load *l, int fd)
{
    if (l->next == l->n)
        return;
    const struct request *r = &l->requests[l->next++];
    for (size_t sent = 0; sent < r->size;) {
        ssize_t k = send(fd, r->text + sent, r->size - sent, MSG_NOSIGNAL);
        if (k < 0 && errno != EINTR)
            die("send");
        sent += k > 0 ? (size_t)k : 0;
    }
}

static int on_body(http_parser *p, const char *at, size_t size)
{
    struct connection *c = p->data;
    size_t k = size < sizeof c->said - c->n_said ? size : sizeof c->said - c->n_said;
    memcpy(c->said + c->n_said, at, k);
    c->n_said += k;
    return 0;
}

static int on_complete(http_parser *p)
{
    struct connection *c = p->data;
    if (p->status_code / 100 != 2) {
        fprintf(stderr, "bench_load: the answer is %u: %.*s\n", p->status_code, (int)c->n_said,
            c->said);
        exit(1);
    }
    c->n_said = 0;
    c->load->n_answered++;
    return 0;
}

/* What has come from there; the next request once its answer is whole. */
static void receive(struct connection *c, int fd)
{
    static const http_parser_settings settings = {
        .on_body = on_body, .on_message_complete = on_complete};
    char text[65536];
    size_t before = c->load->n_answered;
    ssize_t k = recv(fd, text, sizeof text, 0);
    if (k < 0 && errno == EINTR)
        return;
    if (k == 0)
        errno = 0;
    if (k <= 0)
        die("the server's answer");
    if (http_parser_execute(&c->parser, &settings, text, (size_t)k) != (size_t)k) {
        fprintf(stderr, "bench_load: that is no answer: %s\n",
            http_errno_description(HTTP_PARSER_ERRNO(&c->parser)));
        exit(1);
    }
    if (c->load->n_answered > before)
        send_next(c->load, fd);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct connection connections[CONNECTIONS_MAX] = {0};
    struct pollfd fds[CONNECTIONS_MAX];
    int n = argc == 3 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (n < 1 || n > CONNECTIONS_MAX) {
        fprintf(stderr, "usage: bench_load SOCKET CONNECTIONS <REQUESTS\n");
        return 2;
    }
    struct load l = read_requests();
    for (int i = 0; i < n; i++) {
        connections[i].load = &l;
        http_parser_init(&connections[i].parser, HTTP_RESPONSE);
        connections[i].parser.data = &connections[i];
        fds[i] = (struct pollfd){.fd = connect_to(argv[1]), .events = POLLIN};
    }
    double began = now_s();
    for (int i = 0; i < n; i++)
        send_next(&l, fds[i].fd);
    while (l.n_answered < l.n) {
        errno = 0;
        int k = poll(fds, (nfds_t)n, WAIT_MS);
        if (k == 0 || (k < 0 && errno != EINTR))
            die("no answer within a minute");
        for (int i = 0; i < n; i++)
            if (k > 0 && fds[i].revents)
                receive(&connections[i], fds[i].fd);
    }
    printf("%.6f\n", now_s() - began);
    for (int i = 0; i < n; i++)
        close(fds[i].fd);
    for (size_t i = 0; i < l.n; i++)
        free(l.requests[i].text);
    free(l.requests);
    return 0;
}
