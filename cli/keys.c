/* SPDX-License-Identifier: Apache-2.0
 *
 * See keys.h. Temporary credentials are valid for longer than a command takes, so they are fetched
 * once.
 */
#include "cli/keys.h"

#include "base/str.h"
#include "base/uv/http_client.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"
#include "ckpt/s3.h"
#include "cloud/aws/credentials.h"
#include "cloud/bearer.h"

struct asking {
    struct store_net *net;
    enum store_keys_kind kind;
    struct err *e;
    int rc;
    bool done;
};

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct asking *a = ctx;
    a->done = true;
    if (e) {
        *a->e = *e;
        a->rc = err_wrap(a->e, "credentials for the store");
        return;
    }
    struct store_keys k = {.kind = STORE_KEYS_AWS, .expires = c->expires};
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.token, c->session_token);
    store_auth_set(store_net_auth(a->net, k.kind), &k);
    store_keys_wipe(&k);
}

static void on_token(void *ctx, const struct err *e, const char *token, int64_t left_ms)
{
    struct asking *a = ctx;
    struct store_keys k;
    struct err bad;
    a->done = true;
    if (!e && store_keys_of_token(a->kind, token, left_ms, &k, &bad) != 0)
        e = &bad;
    if (e) {
        *a->e = *e;
        a->rc = err_wrap(a->e, "credentials for the store");
        return;
    }
    store_auth_set(store_net_auth(a->net, k.kind), &k);
    store_keys_wipe(&k);
}

static void wait_for(const struct asking *a, uv_loop_t *loop)
{
    while (!a->done)
        uv_run(loop, UV_RUN_ONCE);
}

static void ask_aws(
    struct asking *a, uv_loop_t *loop, struct http_client *http, struct timers *timers)
{
    struct aws_credentials_wait wait = {0};
    struct aws_credential_source *source = NULL;
    struct aws_credential_options o = {.http = http, .timers = timers};
    aws_environment_read(&o.env);
    a->rc = aws_credential_source_create(&o, &source, a->e);
    if (a->rc == 0) {
        aws_credentials_get(source, &wait, on_credentials, a);
        wait_for(a, loop);
    }
    aws_credential_source_destroy(source);
}

static void ask_bearer(
    struct asking *a, uv_loop_t *loop, struct http_client *http, struct timers *timers)
{
    const struct bearer_options o = {
        .is_azure = a->kind == STORE_KEYS_AZURE, .http = http, .timers = timers};
    struct bearer *b = NULL;
    a->rc = bearer_create(&o, &b, a->e);
    if (a->rc == 0) {
        bearer_get(b, on_token, a);
        wait_for(a, loop);
    }
    bearer_destroy(b);
}

static int ask(struct asking *a)
{
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct timers *timers = uv_timers_create(&loop);
    struct http_client *http = uv_http_client_create(&loop);
    (a->kind == STORE_KEYS_AWS ? ask_aws : ask_bearer)(a, &loop, http, timers);
    uv_http_client_destroy(http);
    uv_timers_destroy(timers);
    uv_loop_finish(&loop);
    return a->rc;
}

int keys_get(const char *url, struct store_net **ret_net, struct err *e)
{
    struct asking a = {.e = e};
    *ret_net = NULL;
    if (!s3_location_is_one(url, &a.kind))
        return 0;
    a.net = store_net_create(NULL, NULL);
    int rc = ask(&a);
    if (rc != 0)
        store_net_destroy(a.net);
    else
        *ret_net = a.net;
    return rc;
}
