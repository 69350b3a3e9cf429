/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener for browsers on this machine (see loopback.h).
 */
#include "scheduler/api/login/loopback.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "scheduler/api/api_private.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 32
#define NAME_HEX 32
#define HOST_MAX 64
#define IDLE_MS SECONDS_MS(60)
#define MIB ((size_t)1 << 20)

struct loopback {
    struct http_server *server;
    char key[2 * KEY_BYTES + 1];
    struct smap hosts; /* "NAME.localhost:PORT" -> the struct loopback */
};

static void refuse_host(struct http_exchange *x)
{
    http_reply_add_header(x, "Cache-Control", "no-store");
    http_reply_text(x, 403, "text/plain; charset=utf-8",
        "This address of belay's console is not valid, or no longer. Open the console with: belay "
        "console\n");
}

static bool has_host(const struct loopback *l, const char *host)
{
    char lower[HOST_MAX];
    size_t n = host ? strlen(host) : sizeof(lower);
    if (n >= sizeof(lower))
        return false;
    for (size_t i = 0; i <= n; i++)
        lower[i] = (char)tolower((unsigned char)host[i]);
    return smap_get(&l->hosts, lower) != NULL;
}

static void handle(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct api *a = ctx;
    if (!has_host(a->loopback, http_request_header(x, "Host")))
        refuse_host(x);
    else if (str_starts(r->path, "/agent/"))
        api_reply_failure(x, ERR_NOT_FOUND, "agents use belayd's HTTPS listener");
    else
        api_handle_from(a, x, r, true);
}

static int listen_here(struct api *a, struct err *e)
{
    int strangers = a->o.browser_connections / 3;
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
    random_hex(KEY_BYTES, l->key);
    if (http_server_start(a->o.loop, &o, &l->server, e) != 0) {
        free(l);
        return err_wrap(e, "cannot listen on 127.0.0.1 for a browser");
    }
    a->loopback = l;
    api_add_listener(a, l->server);
    log_info("listening on 127.0.0.1 for browsers of this machine",
        log_i("port", http_server_port(l->server)));
    return 0;
}

/* The user's name follows from the key, which nobody else knows. */
static void host_of(const struct loopback *l, const char *user, char out[HOST_MAX])
{
    char hash[65];
    char *text = mem_printf("%s:%s", l->key, user);
    ca_sha256_hex(text, hash);
    explicit_bzero(text, strlen(text));
    free(text);
    snprintf(out, HOST_MAX, "%.*s.localhost:%d", NAME_HEX, hash, http_server_port(l->server));
}

int loopback_open(
    struct api *a, const char *user, char ret_origin[LOOPBACK_ORIGIN_MAX], struct err *e)
{
    char host[HOST_MAX];
    int rc = a->loopback ? 0 : listen_here(a, e);
    if (rc != 0)
        return rc;
    struct loopback *l = a->loopback;
    host_of(l, user, host);
    if (!smap_get(&l->hosts, host)) {
        if (smap_size(&l->hosts) >= LOOPBACK_NAMES_MAX)
            return err_set(e, ERR_THROTTLED,
                "%d users of this machine have opened the console since belayd started: use its "
                "HTTPS listener",
                LOOPBACK_NAMES_MAX);
        smap_put(&l->hosts, host, l);
    }
    snprintf(ret_origin, LOOPBACK_ORIGIN_MAX, "http://%s", host);
    return 0;
}

const char *loopback_key(const struct loopback *l)
{
    return l ? l->key : "";
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
    if (!l)
        return;
    smap_deinit(&l->hosts);
    explicit_bzero(l->key, sizeof(l->key));
    free(l);
}
