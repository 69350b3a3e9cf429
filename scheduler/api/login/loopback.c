/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener for browsers on this machine (see loopback.h).
 */
#include "scheduler/api/login/loopback.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "scheduler/api/api_private.h"
#include <stdlib.h>
#include <strings.h>

#define NAME_BYTES 16
#define IDLE_MS SECONDS_MS(60)
#define MIB ((size_t)1 << 20)

struct loopback {
    struct http_server *server;
    char name[2 * NAME_BYTES + 1];
    char origin[128];
};

static void refuse_host(struct http_exchange *x)
{
    http_reply_add_header(x, "Cache-Control", "no-store");
    http_reply_text(x, 403, "text/plain; charset=utf-8",
        "This address of belay's console is not valid, or no longer. Open the console with: belay "
        "console\n");
}

static void handle(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct api *a = ctx;
    const char *host = http_request_header(x, "Host");
    const char *own = a->loopback->origin + strlen("http://");
    if (!host || strcasecmp(host, own) != 0)
        refuse_host(x);
    else if (str_starts(r->path, "/agent/"))
        api_reply_failure(x, ERR_NOT_FOUND, "agents use belayd's HTTPS listener");
    else
        api_handle_from(a, x, r, true);
}

int loopback_open(struct api *a, const char **ret_origin, struct err *e)
{
    int strangers = a->o.browser_connections / 3;
    if (!a->loopback) {
        struct loopback *l = mem_alloc(sizeof(*l));
        struct http_server_options o = {
            .host = "127.0.0.1",
            .max_body_bytes = API_BODY_MAX,
            .identify = api_identify,
            .idle_timeout_ms = IDLE_MS,
            .handler = handle,
            .ctx = a,
            .limits = {[HTTP_STRANGER] = {.max_connections = strangers, .max_bytes = 4 * MIB},
                [HTTP_USER] = {.max_connections = a->o.browser_connections - strangers - 1,
                    .max_bytes = 64 * MIB,
                    .max_bytes_each = 24 * MIB},
                [HTTP_NODE] = {.max_connections = 1}},
        };
        random_hex(NAME_BYTES, l->name);
        if (http_server_start(a->o.loop, &o, &l->server, e) != 0) {
            free(l);
            return err_wrap(e, "cannot listen on 127.0.0.1 for a browser");
        }
        snprintf(l->origin, sizeof(l->origin), "http://%s.localhost:%d", l->name,
            http_server_port(l->server));
        a->loopback = l;
        api_add_listener(a, l->server);
        log_info("listening on 127.0.0.1 for browsers of this machine",
            log_i("port", http_server_port(l->server)));
    }
    *ret_origin = a->loopback->origin;
    return 0;
}

const char *loopback_name(const struct loopback *l)
{
    return l ? l->name : "";
}

void loopback_stop(struct loopback *l)
{
    if (!l)
        return;
    http_server_stop(l->server);
    l->server = NULL;
}

void loopback_destroy(struct loopback *l)
{
    free(l);
}
