/* SPDX-License-Identifier: Apache-2.0
 *
 * See own_name.h. A thread resolves the name. It shares struct own_name with the creator; the last
 * of the two to release it frees it, so a hanging resolver delays neither a start nor a stop.
 */
#include "scheduler/config/own_name.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/reach.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct own_name {
    char host[256];
    bool is_given; /* by server: */
    own_name_resolve_fn resolve;
    pthread_mutex_t lock; /* protects the following members */
    pthread_cond_t found; /* is_over became true */
    int holders;          /* references: the thread's and the creator's */
    bool is_over, leads_out;
    int code; /* EAI_* if the name is unknown, 0 if it is known */
};

static int resolve_by_system(const char *host, struct addrinfo **ret_list)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    return getaddrinfo(host, NULL, &hints, ret_list);
}

static void host_to_resolve(const struct config *c, char *out, size_t size)
{
    config_server_host(c, out, size);
    if (out[0])
        return;
    if (str_eq(c->listen_host, "0.0.0.0") || str_eq(c->listen_host, "::")) {
        if (gethostname(out, size) != 0)
            out[0] = '\0';
        out[size - 1] = '\0';
    } else {
        str_copy(out, size, c->listen_host);
    }
}

static bool is_loopback(const struct sockaddr *a)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (a->sa_family == AF_INET)
        inet_ntop(
            AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text, sizeof(text));
    else
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, text,
            sizeof(text));
    return reach_is_loopback(text);
}

static void release(struct own_name *n)
{
    pthread_mutex_lock(&n->lock);
    bool is_last = --n->holders == 0;
    pthread_mutex_unlock(&n->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&n->found);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

static void *on_thread(void *ctx)
{
    struct own_name *n = ctx;
    struct addrinfo *list = NULL;
    bool leads_out = false;
    int code = n->resolve(n->host, &list);
    for (const struct addrinfo *a = code == 0 ? list : NULL; a; a = a->ai_next)
        leads_out |= !is_loopback(a->ai_addr);
    if (code == 0)
        freeaddrinfo(list);
    pthread_mutex_lock(&n->lock);
    n->code = code;
    n->leads_out = leads_out;
    n->is_over = true;
    pthread_cond_signal(&n->found);
    pthread_mutex_unlock(&n->lock);
    release(n);
    return NULL;
}

static struct own_name *create(own_name_resolve_fn resolve)
{
    struct own_name *n = mem_alloc(sizeof(*n));
    *n = (struct own_name){.resolve = resolve ? resolve : resolve_by_system, .holders = 2};
    return n;
}

static void start(struct own_name *n)
{
    pthread_condattr_t monotonic;
    pthread_t thread;
    pthread_mutex_init(&n->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&n->found, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&thread, NULL, on_thread, n) == 0) {
        pthread_detach(thread);
    } else {
        n->holders = 1;
        n->code = EAI_AGAIN;
        n->is_over = true;
    }
}

struct own_name *own_name_create(const struct config *base, own_name_resolve_fn resolve)
{
    struct own_name *n = create(resolve);
    n->is_given = base->server_url[0] != '\0';
    host_to_resolve(base, n->host, sizeof(n->host));
    start(n);
    return n;
}

void own_name_destroy(struct own_name *n)
{
    if (n)
        release(n);
}

/* Returns false if the resolver has not answered within wait_ms. */
static bool wait_for(struct own_name *n, int64_t wait_ms, int *ret_code, bool *ret_leads_out)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&n->lock);
    while (!n->is_over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&n->found, &n->lock, &until);
    bool is_over = n->is_over;
    *ret_code = n->code;
    *ret_leads_out = n->leads_out;
    pthread_mutex_unlock(&n->lock);
    return is_over;
}

int own_name_check(struct own_name *n, const struct config *pools, int64_t wait_ms, struct err *e)
{
    const char *pool = reach_first_cloud(pools);
    bool leads_out;
    int code;
    if (!pool)
        return 0;
    if (!wait_for(n, wait_ms, &code, &leads_out))
        return err_set(e, ERR_TIMEOUT,
            "pool %s: its machines would dial %s, and this machine's resolver did not answer in "
            "time: make sure that it answers, or set server: to an address that they reach",
            pool, n->host);
    if (code != 0)
        return err_set(e, ERR_NOT_FOUND,
            "pool %s: its machines would dial %s, which is not known here (%s): set server: to a "
            "name that they reach",
            pool, n->host, gai_strerror(code));
    if (!leads_out)
        return err_set(e, ERR_CONFIG,
            "pool %s: its machines would dial %s, which resolves to loopback here, so each would "
            "reach itself: set server: to a name or an address of this machine that they reach",
            pool, n->host);
    return 0;
}

int own_name_check_known(struct own_name *n, int64_t wait_ms, struct err *e)
{
    bool leads_out;
    int code;
    if (!n->is_given)
        return 0;
    if (!wait_for(n, wait_ms, &code, &leads_out))
        return err_set(e, ERR_TIMEOUT,
            "server: agents and users dial %s, and this machine's resolver did not answer in time: "
            "make sure that it answers, or set server: to an address",
            n->host);
    if (code != 0)
        return err_set(e, ERR_NOT_FOUND,
            "server: agents and users dial %s, which is not known here (%s): correct the name, or "
            "make it known to this machine",
            n->host, gai_strerror(code));
    return 0;
}

int own_name_check_peer(
    const char *host, own_name_resolve_fn resolve, const char *key, int64_t wait_ms, struct err *e)
{
    struct own_name *n = create(resolve);
    bool leads_out;
    int code, rc = 0;
    STR_COPY(n->host, host);
    start(n);
    if (!wait_for(n, wait_ms, &code, &leads_out))
        rc = err_set(e, ERR_TIMEOUT,
            "%s: this machine's resolver did not answer in time for %s: make sure that it answers",
            key, host);
    else if (code != 0)
        rc = err_set(e, ERR_NOT_FOUND,
            "%s: %s is not known here (%s): correct the name, or make it known to this machine",
            key, host, gai_strerror(code));
    own_name_destroy(n);
    return rc;
}
