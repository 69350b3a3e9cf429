/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/store/access.h"

#include "base/str.h"
#include "ckpt/s3.h"

static void give(struct store_access *a, struct store_keys *k)
{
    store_auth_set(store_net_auth(a->net, k->kind), k);
    store_keys_wipe(k);
    a->done(a->ctx, NULL);
}

static void lack(struct store_access *a, const struct err *e)
{
    struct err why = *e;
    err_wrap(&why, "credentials for the store");
    a->done(a->ctx, &why);
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct store_access *a = ctx;
    if (e) {
        lack(a, e);
        return;
    }
    struct store_keys k = {.kind = STORE_KEYS_AWS, .expires = c->expires};
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.token, c->session_token);
    give(a, &k);
}

static void on_token(void *ctx, const struct err *e, const char *token, int64_t left_ms)
{
    struct store_access *a = ctx;
    struct store_keys k;
    struct err bad;
    if (!e && store_keys_of_token(a->kind, token, left_ms, &k, &bad) != 0)
        e = &bad;
    if (e)
        lack(a, e);
    else
        give(a, &k);
}

static int ask_aws(struct store_access *a, struct err *e)
{
    int rc = 0;
    if (!a->source) {
        struct aws_credential_options o = {.http = a->http, .timers = a->timers};
        aws_environment_read(&o.env);
        rc = aws_credential_source_create(&o, &a->source, e);
    }
    if (rc == 0)
        aws_credentials_get(a->source, &a->wait, on_credentials, a);
    return rc;
}

static int ask_bearer(struct store_access *a, struct err *e)
{
    const struct bearer_options o = {
        .is_azure = a->kind == STORE_KEYS_AZURE, .http = a->http, .timers = a->timers};
    int rc = a->bearer ? 0 : bearer_create(&o, &a->bearer, e);
    if (rc == 0)
        bearer_get(a->bearer, on_token, a);
    return rc;
}

void store_access_get(struct store_access *a, struct store_net **ret_net,
    void (*done)(void *ctx, const struct err *e), void *ctx)
{
    struct err e;
    a->done = done;
    a->ctx = ctx;
    *ret_net = NULL;
    if (!s3_location_is_one(a->url, &a->kind)) {
        done(ctx, NULL);
        return;
    }
    *ret_net = a->net = store_net_create(NULL, NULL);
    if ((a->kind == STORE_KEYS_AWS ? ask_aws : ask_bearer)(a, &e) != 0)
        done(ctx, &e);
}

void store_access_refused(struct store_access *a)
{
    if (a->source)
        aws_credentials_refused(a->source);
    else if (a->bearer)
        bearer_refused(a->bearer);
}

void store_access_deinit(struct store_access *a)
{
    aws_credential_source_destroy(a->source);
    bearer_destroy(a->bearer);
    a->source = NULL;
    a->bearer = NULL;
}
