/* SPDX-License-Identifier: Apache-2.0
 *
 * See call.h. Invariants:
 *   1. The key goes to one host only, the configured endpoint or Lambda's own, over https, or to
 *      loopback.
 *   2. Requests of one driver are spaced as Lambda requires (one a second, a launch every 12 s, or
 *      as the pool configures). A call that would wait too long ends with ERR_THROTTLED, so that a
 *      launch stays within its caller's deadline.
 */
#include "cloud/lambda/call.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define PATH "/api/v1"
#define TIMEOUT_MS SECONDS_MS(30)
#define CONNECT_TIMEOUT_MS SECONDS_MS(10)
#define WAIT_MAX_MS SECONDS_MS(25)
#define SETTLE_MS SECONDS_MS(20)
#define KEY_FILE_MAX 4096

/* ---- launches with an unknown outcome ---- */

static struct mono now(const struct lambda_driver *d)
{
    return clock_mono(d->calls.timers->clock);
}

static void drop_doubt(struct lambda_doubt *x)
{
    link_remove(&x->link);
    free(x);
}

bool lambda_is_in_doubt(struct lambda_driver *d, const char *token)
{
    bool found = false;
    LIST_FOREACH (&d->doubts, l) {
        struct lambda_doubt *x = LIST_ENTRY(l, struct lambda_doubt, link);
        if (!x->is_under_way && x->until.ms <= now(d).ms)
            drop_doubt(x);
        else
            found = found || str_eq(x->token, token);
    }
    return found;
}

void lambda_begin_doubt(struct lambda_call *c)
{
    c->doubt = mem_alloc(sizeof(*c->doubt));
    c->doubt->is_under_way = true;
    STR_COPY(c->doubt->token, c->token);
    list_push_back(&c->d->doubts, &c->doubt->link);
}

void lambda_end_doubt(struct lambda_call *c)
{
    drop_doubt(c->doubt);
    c->doubt = NULL;
}

/* ---- the life of a call ---- */

struct lambda_call *lambda_call_new(struct cloud_driver *d, const char *region)
{
    struct lambda_call *c = mem_alloc(sizeof(*c));
    c->d = (struct lambda_driver *)d;
    if (!region || !str_is_name(region, CLOUD_NAME_MAX - 1))
        err_set(&c->base.refused, ERR_CONFIG,
            "\"%.64s\" is not a region of Lambda (expected one like us-west-1)",
            region ? region : "");
    return c;
}

void lambda_call_deinit(struct cloud_call *base)
{
    struct lambda_call *c = (struct lambda_call *)base;
    if (c->doubt && c->base.owner) {
        c->doubt->is_under_way = false;
        c->doubt->until.ms = now(c->d).ms + SETTLE_MS;
    }
    buf_wipe(&c->request); /* user data contains a one-use secret */
}

/* ---- the request ---- */

int lambda_read_key(const struct lambda_driver *d, char key[LAMBDA_KEY_MAX + 1], struct err *e)
{
    struct buf text = {0};
    if (!d->key_file)
        return lambda_parse_key(d->key, strlen(d->key), key, e) != 0 ? err_wrap(e, "LAMBDA_API_KEY")
                                                                     : 0;
    int rc = fs_read_secret(d->key_file, KEY_FILE_MAX, &text, e);
    if (rc == 0)
        rc = lambda_parse_key(buf_str(&text), text.len, key, e);
    if (rc != 0) {
        err_wrap(e, "the API key %s", d->key_file);
        rc = (int)(e->kind = ERR_CONFIG);
    }
    buf_wipe(&text);
    return rc;
}

void lambda_call_send(
    struct lambda_call *c, const char *method, const char *path, const struct buf *body)
{
    char key[LAMBDA_KEY_MAX + 1], header[LAMBDA_KEY_MAX + 32];
    struct err e;
    if (lambda_read_key(c->d, key, &e) != 0) {
        if (c->doubt)
            lambda_end_doubt(c); /* nothing was sent */
        cloud_call_finish(&c->base, &e);
        return;
    }
    char *url = mem_printf("%s" PATH "%s", c->d->endpoint, path);
    str_copy(header, sizeof(header), "Authorization: Bearer ");
    memcpy(header + strlen(header), key, strlen(key) + 1);
    struct http_request r = {
        .method = method,
        .url = url,
        .headers = {header, "Accept: application/json",
            body ? "Content-Type: application/json" : NULL},
        .body = body ? buf_str(body) : NULL,
        .body_len = body ? body->len : 0,
        .timeout_ms = TIMEOUT_MS,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_reply_bytes = LAMBDA_REPLY_MAX,
    };
    cloud_call_send(&c->base, &r);
    explicit_bzero(key, sizeof(key));
    explicit_bzero(header, sizeof(header));
    free(url);
}

/* Each call checks again when it wakes, so that the spacing is between requests actually sent.
 * Calls that wait for the same moment wake in the order in which they began to wait. */
bool lambda_call_is_turn(struct lambda_call *c, bool is_launch)
{
    struct lambda_driver *d = c->d;
    int64_t at = now(d).ms, start = d->next_request.ms;
    struct err e;
    if (is_launch && d->next_launch.ms > start)
        start = d->next_launch.ms;
    if (!c->is_waiting)
        c->waits_until.ms = at + WAIT_MAX_MS;
    bool is_turn = start <= at;
    c->is_waiting = !is_turn;
    if (start > c->waits_until.ms) {
        err_set(&e, ERR_THROTTLED, "too many requests wait; Lambda accepts one %s in %lld ms",
            is_launch ? "launch" : "request",
            (long long)(is_launch ? d->launch_every_ms : d->request_every_ms));
        cloud_call_finish(&c->base, &e); /* frees it */
    } else if (!is_turn) {
        cloud_call_pause(&c->base, start - at);
    } else {
        d->next_request.ms = at + d->request_every_ms;
        if (is_launch)
            d->next_launch.ms = at + d->launch_every_ms;
    }
    return is_turn;
}

int lambda_call_refusal(struct lambda_call *c, const struct http_reply *reply, struct err *e)
{
    int rc = lambda_parse_error(reply->status, buf_str(&reply->body), reply->body.len, e);
    if (c->stage == STAGE_ACT && rc == ERR_NOT_FOUND)
        /* a mistake in the pool: the key, the image or the file system */
        rc = (int)(e->kind = ERR_CONFIG);
    return rc;
}
