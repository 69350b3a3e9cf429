/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/store_net.h"
#include "base/mem.h"
#include "base/str.h"
#include <pthread.h>
#include <stdlib.h>

#define BACKOFF_MS 100
#define PART_BYTES (8u << 20)

struct holder {
    struct store_net *net;
    enum store_keys_kind kind;
    struct store_auth *auth;
};

struct store_net {
    struct http_pool *http;
    struct holder holders[STORE_KEYS_KINDS];
    store_net_want_fn want;
    void *want_ctx;
    pthread_mutex_t lock; /* guards the list of facts, not its elements */
    struct store_facts *facts;
};

static void on_want(void *ctx)
{
    const struct holder *h = ctx;
    h->net->want(h->net->want_ctx, h->kind);
}

struct store_net *store_net_create(store_net_want_fn want, void *ctx)
{
    struct store_net *n = mem_alloc(sizeof(*n));
    n->http = http_pool_create();
    n->want = want;
    n->want_ctx = ctx;
    for (int k = 0; k < STORE_KEYS_KINDS; k++) {
        struct holder *h = &n->holders[k];
        *h = (struct holder){.net = n, .kind = k};
        h->auth = store_auth_create(want ? on_want : NULL, h);
    }
    pthread_mutex_init(&n->lock, NULL);
    return n;
}

void store_net_destroy(struct store_net *n)
{
    if (!n)
        return;
    for (struct store_facts *f = n->facts, *next; f; f = next) {
        next = f->next;
        free(f->root);
        free(f);
    }
    pthread_mutex_destroy(&n->lock);
    for (int k = 0; k < STORE_KEYS_KINDS; k++)
        store_auth_destroy(n->holders[k].auth);
    http_pool_destroy(n->http);
    free(n);
}

struct store_auth *store_net_auth(struct store_net *n, enum store_keys_kind kind)
{
    return n->holders[kind].auth;
}

struct http_pool *store_net_http(struct store_net *n)
{
    return n->http;
}

struct store_facts *store_net_facts(struct store_net *n, const char *root)
{
    pthread_mutex_lock(&n->lock);
    struct store_facts *f = n->facts;
    while (f && !str_eq(f->root, root))
        f = f->next;
    if (!f) {
        f = mem_alloc(sizeof(*f));
        f->root = mem_strdup(root);
        atomic_init(&f->backoff_ms, BACKOFF_MS);
        atomic_init(&f->part_bytes, PART_BYTES);
        f->next = n->facts;
        n->facts = f;
    }
    pthread_mutex_unlock(&n->lock);
    return f;
}
