/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends HTTP requests as fast as the server answers them: SOCKET CONNECTIONS, with the requests on
 * stdin, each as a line with its length, followed by its bytes. All requests are read first. Then
 * each connection has one request in progress until all are answered. Prints the seconds from the
 * first request to the last answer; exits with 1 at the first answer that is not a success. In C,
 * because the client shares the processor with the server and must not dominate the measurement.
 */
#include "base/mem.h"
#include "base/uv/http_reading.h"

#include <errno.h>
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
    struct http_reading reading;
};

/* printed part of the body of a failed answer */
#define PRINTED_BYTES 300
#define ANSWER_BYTES_MAX ((size_t)16 << 20)

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_load: %s: %s\n", what, errno ? strerror(errno) : "it ends too early");
    exit(1);
}

static struct load read_requests(void)
{
    struct load l = {0};
    size_t size, cap = 0;
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        if (l.n == cap)
            l.requests = mem_resize(l.requests, cap = cap ? 2 * cap : 1024, sizeof *l.requests);
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

/* Sends the next request, if any, and blocks until it is sent. */
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

static void await_answer(struct connection *c)
{
    static const struct http_request request = {
        .method = "POST", .max_reply_bytes = ANSWER_BYTES_MAX};
    http_reading_init(&c->reading, &request, "bench_load");
}

/* Reads a part of the answer; sends the next request when it is complete. Answers are not
 * pipelined, so nothing follows one. */
static void receive(struct connection *c, int fd)
{
    char text[65536];
    struct err e;
    ssize_t k = recv(fd, text, sizeof text, 0);
    if (k < 0 && errno == EINTR)
        return;
    if (k == 0)
        errno = 0;
    if (k <= 0)
        die("the server's answer");
    if (http_reading_feed(&c->reading, text, (size_t)k, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    if (!c->reading.is_done)
        return;
    const struct http_reply *r = &c->reading.reply;
    if (r->status / 100 != 2) {
        fprintf(stderr, "bench_load: the answer is %d: %.*s\n", r->status, PRINTED_BYTES,
            buf_str(&r->body));
        exit(1);
    }
    http_reading_deinit(&c->reading);
    await_answer(c);
    c->load->n_answered++;
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
        await_answer(&connections[i]);
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
    for (int i = 0; i < n; i++) {
        http_reading_deinit(&connections[i].reading);
        close(fds[i].fd);
    }
    for (size_t i = 0; i < l.n; i++)
        free(l.requests[i].text);
    free(l.requests);
    return 0;
}
