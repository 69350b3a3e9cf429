/* SPDX-License-Identifier: Apache-2.0
 *
 * See keys.h. Temporary credentials are valid for longer than a command takes, so they are fetched
 * once.
 */
#include "cli/keys.h"

#include "base/uv/http_client.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"
#include "ckpt/s3.h"
#include "ckpt/store/keys_source.h"

struct keys_request {
    struct err *e;
    int rc;
    bool is_done;
};

static void on_keys(void *ctx, const struct err *e)
{
    struct keys_request *a = ctx;
    a->is_done = true;
    if (e) {
        *a->e = *e;
        a->rc = e->kind;
    }
}

int keys_get(const char *url, struct store_net **ret_net, struct err *e)
{
    struct keys_request a = {.e = e};
    uv_loop_t loop;
    *ret_net = NULL;
    if (!s3_location_is_one(url, NULL)) /* and libcurl is not loaded */
        return 0;
    uv_loop_init(&loop);
    struct keys_source s = {
        .timers = uv_timers_create(&loop), .http = uv_http_client_create(&loop)};
    keys_source_get_net(&s, url, ret_net, on_keys, &a);
    while (!a.is_done)
        uv_run(&loop, UV_RUN_ONCE);
    keys_source_deinit(&s);
    uv_http_client_destroy(s.http);
    uv_timers_destroy(s.timers);
    uv_loop_finish(&loop);
    if (a.rc != 0) {
        store_net_destroy(*ret_net);
        *ret_net = NULL;
    }
    return a.rc;
}

int keys_with_store(
    const char *url, int (*fn)(void *ctx, struct store *s, struct err *e), void *ctx, struct err *e)
{
    struct store_net *net = NULL;
    struct store *s;
    int rc = keys_get(url, &net, e);
    if (rc == 0)
        rc = store_open(url, &(struct store_options){.net = net, .existing = true}, &s, e);
    if (rc == 0) {
        rc = fn(ctx, s, e);
        store_close(s);
    }
    store_net_destroy(net);
    return rc;
}
