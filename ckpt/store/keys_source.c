/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/store/keys_source.h"

#include "base/str.h"
#include "ckpt/s3.h"

static void finish(struct keys_source *s, const struct err *e)
{
    keys_source_fn done = s->done;
    struct err why;
    s->done = NULL;
    if (e) {
        why = *e;
        err_wrap(&why, "credentials for the store");
    }
    done(s->ctx, e ? &why : NULL);
}

static void report_keys(struct keys_source *s, struct store_keys *k)
{
    store_auth_set(store_net_auth(s->net, k->kind), k);
    store_keys_wipe(k);
    finish(s, NULL);
}

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct keys_source *s = ctx;
    if (e) {
        finish(s, e);
        return;
    }
    struct store_keys k = {.kind = STORE_KEYS_AWS, .expires = c->expires};
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.token, c->session_token);
    report_keys(s, &k);
}

static void on_token(void *ctx, const struct err *e, const char *token, int64_t left_ms)
{
    struct keys_source *s = ctx;
    struct store_keys k;
    struct err bad;
    if (!e && store_keys_of_token(s->kind, token, left_ms, &k, &bad) != 0)
        e = &bad;
    if (e)
        finish(s, e);
    else
        report_keys(s, &k);
}

static int request_aws(struct keys_source *s, struct err *e)
{
    struct aws_credential_options o = {
        .metadata_url = s->metadata_url, .http = s->http, .timers = s->timers};
    aws_environment_read(&o.env);
    o.env.metadata_disabled |= s->has_no_role;
    int rc = s->aws ? 0 : aws_credential_source_create(&o, &s->aws, e);
    if (rc == 0)
        aws_credentials_get(s->aws, &s->wait, on_credentials, s);
    return rc;
}

static int request_bearer(struct keys_source *s, struct err *e)
{
    const struct bearer_options o = {.is_azure = s->kind == STORE_KEYS_AZURE,
        .metadata_url = s->metadata_url,
        .http = s->http,
        .timers = s->timers};
    int rc = s->bearer ? 0 : bearer_create(&o, &s->bearer, e);
    if (rc == 0)
        bearer_get(s->bearer, on_token, s);
    return rc;
}

void keys_source_get(struct keys_source *s, struct store_net *net, keys_source_fn done, void *ctx)
{
    struct err e;
    s->net = net;
    s->done = done;
    s->ctx = ctx;
    if ((s->kind == STORE_KEYS_AWS ? request_aws : request_bearer)(s, &e) != 0)
        finish(s, &e);
}

void keys_source_get_net(struct keys_source *s, const char *url, struct store_net **ret_net,
    keys_source_fn done, void *ctx)
{
    *ret_net = NULL;
    if (!s3_location_is_one(url, &s->kind)) {
        done(ctx, NULL);
        return;
    }
    *ret_net = store_net_create(NULL, NULL);
    keys_source_get(s, *ret_net, done, ctx);
}

void keys_source_refused(struct keys_source *s)
{
    if (s->aws)
        aws_credentials_refused(s->aws);
    else if (s->bearer)
        bearer_refused(s->bearer);
}

void keys_source_deinit(struct keys_source *s)
{
    aws_credential_source_destroy(s->aws);
    bearer_destroy(s->bearer);
    s->aws = NULL;
    s->bearer = NULL;
    s->done = NULL;
}
