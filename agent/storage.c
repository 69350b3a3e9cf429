/* SPDX-License-Identifier: Apache-2.0
 *
 *   a thread needs credentials --> on_want (that thread) --> on_wanted (the loop) --> the source --> store_auth_set
 *                                                                                           \-----> store_auth_fail
 */
#include "agent/storage.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/credentials.h"

#include <stdlib.h>
#include <string.h>

struct storage {
    const struct config *config;
    struct timers *timers;
    struct http_client *http;
    struct store_net *net;
    uv_async_t wanted;
    struct aws_credential_source *source; /* NULL: not needed yet */
    struct aws_credentials_wait wait;
    bool waiting, stopped;
};

static void fail(struct storage *s, struct err *e)
{
    err_wrap(e, "credentials for the store");
    store_auth_fail(store_net_auth(s->net), e);
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct storage *s = ctx;
    s->waiting = false;
    if (e) {
        struct err why = *e;
        fail(s, &why);
        return;
    }
    struct store_keys k = {.expires = c->expires};
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.session_token, c->session_token);
    store_auth_set(store_net_auth(s->net), &k);
    store_keys_wipe(&k);
    log_debug("credentials for the store are there");
}

/* Other providers' metadata services have no credentials of AWS's. */
static int make_source(struct storage *s, struct err *e)
{
    struct aws_credential_options o = {
        .metadata_url = s->config->metadata, .http = s->http, .timers = s->timers};
    aws_environment_read(&o.env);
    if (!str_eq(s->config->provider, "aws") && !str_eq(s->config->provider, "none"))
        o.env.metadata_disabled = true;
    return aws_credential_source_create(&o, &s->source, e);
}

static void on_wanted(uv_async_t *a)
{
    struct storage *s = a->data;
    struct err e;
    if (s->stopped) {
        err_set(&e, ERR_CANCELLED, "the agent is ending");
        fail(s, &e);
        return;
    }
    if (s->waiting)
        return;
    if (!s->source && make_source(s, &e) != 0) {
        fail(s, &e);
        return;
    }
    if (store_auth_take_refusal(store_net_auth(s->net)))
        aws_credentials_refused(s->source);
    s->waiting = true;
    aws_credentials_get(s->source, &s->wait, on_credentials, s);
}

static void on_want(void *ctx)
{
    uv_async_send(&((struct storage *)ctx)->wanted);
}

struct storage *storage_create(
    uv_loop_t *loop, struct timers *timers, struct http_client *http, const struct config *config)
{
    struct storage *s = mem_alloc(sizeof(*s));
    s->config = config;
    s->timers = timers;
    s->http = http;
    s->net = store_net_create(on_want, s);
    uv_async_init(loop, &s->wanted, on_wanted);
    s->wanted.data = s;
    return s;
}

struct store_net *storage_net(struct storage *s)
{
    return s->net;
}

void storage_stop(struct storage *s)
{
    if (!s)
        return;
    s->stopped = true;
    aws_credential_source_destroy(s->source);
    s->source = NULL;
    on_wanted(&s->wanted);
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void storage_destroy(struct storage *s)
{
    if (!s)
        return;
    store_net_destroy(s->net);
    uv_close((uv_handle_t *)&s->wanted, on_closed);
}
