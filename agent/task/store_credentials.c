/* SPDX-License-Identifier: Apache-2.0
 *
 *   a thread needs credentials --> request_keys (that thread) --> on_keys_requested (the loop)
 *     --> the source --> store_auth_set, or store_auth_fail
 */
#include "agent/task/store_credentials.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "ckpt/store/keys_source.h"

#include <stdlib.h>
#include <string.h>

struct store_credentials {
    struct store_net *net;
    uv_async_t wanted;
    atomic_bool is_wanted[STORE_KEYS_KINDS];
    bool stopped;
    struct slot {
        struct store_credentials *store_credentials;
        struct keys_source source;
    } slots[STORE_KEYS_KINDS];
};

/* ---- For one job ---- */

struct store_net *store_credentials_create_of_job(void)
{
    return store_net_create(NULL, NULL);
}

void store_credentials_give_job(
    struct store_net *net, const char *url, const struct wire_secrets *s)
{
    struct store_keys k = {.expires = {clock_wall(&clock_system).ms + s->store_left_ms}};
    if (!s3_location_is_one(url, &k.kind))
        return;
    k.is_signature = k.kind == STORE_KEYS_AZURE;
    STR_COPY(k.access_key, s->store_access_key);
    STR_COPY(k.secret_key, s->store_secret_key);
    STR_COPY(k.token, s->store_token);
    store_auth_set(store_net_auth(net, k.kind), &k);
    store_keys_wipe(&k);
}

/* ---- For the node ---- */

static void on_keys(void *ctx, const struct err *e)
{
    const struct slot *slot = ctx;
    if (e)
        store_auth_fail(store_net_auth(slot->store_credentials->net, slot->source.kind), e);
    else
        log_debug("got credentials for the store");
}

static void get(struct store_credentials *s, enum store_keys_kind kind)
{
    struct keys_source *source = &s->slots[kind].source;
    struct err e;
    if (s->stopped) {
        err_set(&e, ERR_CANCELLED, "credentials for the store: the agent is ending");
        on_keys(&s->slots[kind], &e);
    } else if (!source->done) {
        if (store_auth_take_refusal(store_net_auth(s->net, kind)))
            keys_source_refused(source);
        keys_source_get(source, s->net, on_keys, &s->slots[kind]);
    }
}

static void on_keys_requested(uv_async_t *a)
{
    struct store_credentials *s = a->data;
    for (int k = 0; k < STORE_KEYS_KINDS; k++)
        if (atomic_exchange(&s->is_wanted[k], false))
            get(s, k);
}

static void request_keys(void *ctx, enum store_keys_kind kind)
{
    struct store_credentials *s = ctx;
    atomic_store(&s->is_wanted[kind], true);
    uv_async_send(&s->wanted);
}

/* Only a provider's own metadata service gives credentials for its store. A machine of no known
 * provider ("none") may be one of Amazon's, so it is asked for those. */
static void set_metadata(struct store_credentials *s, const struct config *config)
{
    static const char *const providers[] = {
        [STORE_KEYS_AWS] = "aws", [STORE_KEYS_GOOGLE] = "gcp", [STORE_KEYS_AZURE] = "azure"};
    for (int k = 0; k < STORE_KEYS_KINDS; k++)
        if (str_eq(config->provider, providers[k]))
            s->slots[k].source.metadata_url = config->metadata;
    struct keys_source *aws = &s->slots[STORE_KEYS_AWS].source;
    if (str_eq(config->provider, "none"))
        aws->metadata_url = config->metadata;
    aws->has_no_role = !aws->metadata_url;
}

struct store_credentials *store_credentials_create(
    uv_loop_t *loop, struct timers *timers, struct http_client *http, const struct config *config)
{
    struct store_credentials *s = mem_alloc(sizeof(*s));
    s->net = store_net_create(request_keys, s);
    for (int k = 0; k < STORE_KEYS_KINDS; k++)
        s->slots[k] = (struct slot){s, {.kind = k, .timers = timers, .http = http}};
    set_metadata(s, config);
    uv_async_init(loop, &s->wanted, on_keys_requested);
    s->wanted.data = s;
    return s;
}

struct store_net *store_credentials_net(struct store_credentials *s)
{
    return s->net;
}

void store_credentials_stop(struct store_credentials *s)
{
    if (!s)
        return;
    s->stopped = true;
    for (int k = 0; k < STORE_KEYS_KINDS; k++) {
        keys_source_deinit(&s->slots[k].source);
        get(s, k);
    }
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void store_credentials_destroy(struct store_credentials *s)
{
    if (!s)
        return;
    store_net_destroy(s->net);
    uv_close((uv_handle_t *)&s->wanted, on_closed);
}
