/* SPDX-License-Identifier: Apache-2.0
 *
 *   a thread needs credentials --> on_want (that thread) --> on_wanted (the loop) --> the source
 *     the source --> store_auth_set, or store_auth_fail
 */
#include "agent/task/store_credentials.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "cloud/aws/credentials.h"
#include "cloud/bearer.h"

#include <stdlib.h>
#include <string.h>

struct store_credentials {
    const struct config *config;
    struct timers *timers;
    struct http_client *http;
    struct store_net *net;
    uv_async_t wanted;
    atomic_bool is_wanted[STORE_KEYS_KINDS];
    bool stopped;
    struct aws_credential_source *aws; /* NULL until needed */
    struct aws_credentials_wait aws_wait;
    bool aws_waiting;
    struct slot { /* of other providers; bearer is NULL until needed */
        struct store_credentials *store_credentials;
        enum store_keys_kind kind;
        struct bearer *bearer;
    } slots[STORE_KEYS_KINDS];
};

static struct store_auth *holder(struct store_credentials *s, enum store_keys_kind kind)
{
    return store_net_auth(s->net, kind);
}

static void fail(struct store_credentials *s, enum store_keys_kind kind, const struct err *e)
{
    struct err why = *e;
    err_wrap(&why, "credentials for the store");
    store_auth_fail(holder(s, kind), &why);
}

static void give(struct store_credentials *s, struct store_keys *k)
{
    store_auth_set(holder(s, k->kind), k);
    store_keys_wipe(k);
    log_debug("got credentials for the store");
}

/* Only the provider's own metadata service has its credentials. NULL for the usual address. */
static const char *metadata_of(const struct store_credentials *s, const char *provider)
{
    return str_eq(s->config->provider, provider) ? s->config->metadata : NULL;
}

/* ---- Amazon's ---- */

static void on_aws(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct store_credentials *s = ctx;
    s->aws_waiting = false;
    if (e) {
        fail(s, STORE_KEYS_AWS, e);
        return;
    }
    struct store_keys k = {.kind = STORE_KEYS_AWS, .expires = c->expires};
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.token, c->session_token);
    give(s, &k);
}

static int make_aws(struct store_credentials *s, struct err *e)
{
    struct aws_credential_options o = {
        .metadata_url = s->config->metadata, .http = s->http, .timers = s->timers};
    aws_environment_read(&o.env);
    if (!str_eq(s->config->provider, "aws") && !str_eq(s->config->provider, "none"))
        o.env.metadata_disabled = true;
    return aws_credential_source_create(&o, &s->aws, e);
}

static int get_aws(struct store_credentials *s, struct err *e)
{
    if (s->aws_waiting)
        return 0;
    int rc = s->aws ? 0 : make_aws(s, e);
    if (rc != 0)
        return rc;
    if (store_auth_take_refusal(holder(s, STORE_KEYS_AWS)))
        aws_credentials_refused(s->aws);
    s->aws_waiting = true;
    aws_credentials_get(s->aws, &s->aws_wait, on_aws, s);
    return 0;
}

/* ---- Bearer tokens: Google's, Azure's ---- */

static void on_bearer(void *ctx, const struct err *e, const char *token, int64_t left_ms)
{
    struct slot *b = ctx;
    struct store_keys k;
    struct err bad;
    if (!e && store_keys_of_token(b->kind, token, left_ms, &k, &bad) != 0)
        e = &bad;
    if (e)
        fail(b->store_credentials, b->kind, e);
    else
        give(b->store_credentials, &k);
}

static int get_bearer(struct store_credentials *s, enum store_keys_kind kind, struct err *e)
{
    struct slot *b = &s->slots[kind];
    bool is_azure = kind == STORE_KEYS_AZURE;
    const struct bearer_options o = {.is_azure = is_azure,
        .metadata_url = metadata_of(s, is_azure ? "azure" : "gcp"),
        .http = s->http,
        .timers = s->timers};
    int rc = b->bearer ? 0 : bearer_create(&o, &b->bearer, e);
    if (rc != 0)
        return rc;
    if (store_auth_take_refusal(holder(s, kind)))
        bearer_refused(b->bearer);
    bearer_get(b->bearer, on_bearer, b);
    return 0;
}

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

static void get(struct store_credentials *s, enum store_keys_kind kind)
{
    struct err e;
    int rc;
    if (s->stopped)
        rc = err_set(&e, ERR_CANCELLED, "the agent is ending");
    else
        rc = kind == STORE_KEYS_AWS ? get_aws(s, &e) : get_bearer(s, kind, &e);
    if (rc != 0)
        fail(s, kind, &e);
}

static void on_wanted(uv_async_t *a)
{
    struct store_credentials *s = a->data;
    for (int k = 0; k < STORE_KEYS_KINDS; k++)
        if (atomic_exchange(&s->is_wanted[k], false))
            get(s, k);
}

static void on_want(void *ctx, enum store_keys_kind kind)
{
    struct store_credentials *s = ctx;
    atomic_store(&s->is_wanted[kind], true);
    uv_async_send(&s->wanted);
}

struct store_credentials *store_credentials_create(
    uv_loop_t *loop, struct timers *timers, struct http_client *http, const struct config *config)
{
    struct store_credentials *s = mem_alloc(sizeof(*s));
    s->config = config;
    s->timers = timers;
    s->http = http;
    s->net = store_net_create(on_want, s);
    for (int k = 0; k < STORE_KEYS_KINDS; k++)
        s->slots[k] = (struct slot){.store_credentials = s, .kind = k};
    uv_async_init(loop, &s->wanted, on_wanted);
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
    aws_credential_source_destroy(s->aws);
    s->aws = NULL;
    for (int k = 0; k < STORE_KEYS_KINDS; k++) {
        bearer_destroy(s->slots[k].bearer);
        s->slots[k].bearer = NULL;
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
