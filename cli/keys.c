/* SPDX-License-Identifier: Apache-2.0
 *
 * See keys.h. Temporary credentials last longer than a command does, so they are got once.
 */
#include "cli/keys.h"

#include "base/str.h"
#include "base/uv/loop.h"
#include "cloud/aws/credentials.h"

struct asking {
    struct store_net *net;
    struct err *e;
    int rc;
    bool done;
};

static void on_credentials(void *ctx, const struct err *e, const struct aws_credentials *c)
{
    struct asking *a = ctx;
    struct store_keys k = {0};
    a->done = true;
    if (e) {
        *a->e = *e;
        a->rc = err_wrap(a->e, "credentials for the store");
        return;
    }
    k.expires = c->expires;
    STR_COPY(k.access_key, c->access_key);
    STR_COPY(k.secret_key, c->secret_key);
    STR_COPY(k.session_token, c->session_token);
    store_auth_set(store_net_auth(a->net), &k);
    store_keys_wipe(&k);
}

static int ask(struct asking *a, struct err *e)
{
    uv_loop_t loop;
    struct aws_credentials_wait wait = {0};
    struct aws_credential_source *source = NULL;
    uv_loop_init(&loop);
    struct timers *timers = uv_timers_create(&loop);
    struct http_client *http = uv_http_client_create(&loop);
    struct aws_credential_options o = {.http = http, .timers = timers};
    aws_environment_read(&o.env);
    a->rc = aws_credential_source_create(&o, &source, e);
    if (a->rc == 0) {
        aws_credentials_get(source, &wait, on_credentials, a);
        while (!a->done)
            uv_run(&loop, UV_RUN_ONCE);
    }
    aws_credential_source_destroy(source);
    uv_http_client_destroy(http);
    uv_timers_destroy(timers);
    uv_loop_finish(&loop);
    return a->rc;
}

int keys_get(const char *url, struct store_net **ret_net, struct err *e)
{
    struct asking a = {.e = e};
    *ret_net = NULL;
    if (!str_starts(url, "s3://"))
        return 0;
    a.net = store_net_create(NULL, NULL);
    int rc = ask(&a, e);
    if (rc != 0)
        store_net_destroy(a.net);
    else
        *ret_net = a.net;
    return rc;
}
