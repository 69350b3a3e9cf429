/* SPDX-License-Identifier: Apache-2.0
 *
 * See oauth.h.
 *
 *   get --> timer(0) --- cached and fresh ----------------------------> done
 *                 \--- build --> request --> parse --- good ----------> done
 *                                    \         \--- old one valid ----> done, with the old one
 *                                     \-------- else -----------------> done, with the error
 *
 * A token's expiry is kept on the monotonic clock, counted from the request, so that a wrong wall
 * clock does not matter.
 */
#include "cloud/oauth.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* metadata services return a newer token from 5 minutes before the end */
#define RENEW_BEFORE_MS SECONDS_MS(240)
#define RENEW_PAUSE_MS SECONDS_MS(30)
#define LIFE_MAX_S 86400
#define DESCRIPTION_MAX 300

struct oauth {
    const struct oauth_ops *ops;
    void *ctx;
    struct http_client *http;
    struct timers *timers;
    struct timer answer_timer;
    struct list waits;
    struct http_call *call;
    bool answering, destroyed;
    char header[OAUTH_HEADER_MAX]; /* "" if none */
    uint64_t generation;
    struct mono asked, until, renew_after;
    int64_t early_ms; /* 0 = default */
};

static void free_oauth(struct oauth *o)
{
    OPENSSL_cleanse(o, sizeof(*o));
    free(o);
}

static void on_answer_timer(struct timer *t, void *ctx);

struct oauth *oauth_create(
    const struct oauth_ops *ops, void *ctx, struct http_client *http, struct timers *timers)
{
    struct oauth *o = mem_alloc(sizeof(*o));
    o->ops = ops;
    o->ctx = ctx;
    o->http = http;
    o->timers = timers;
    timer_init(&o->answer_timer, on_answer_timer, o);
    return o;
}

void oauth_renew_before(struct oauth *o, int64_t early_ms)
{
    o->early_ms = early_ms;
}

void oauth_destroy(struct oauth *o)
{
    if (!o)
        return;
    assert(!o->answering);
    timer_stop(o->timers, &o->answer_timer);
    while (list_pop(&o->waits))
        ;
    o->destroyed = true;
    if (o->call)
        http_cancel(o->http, o->call); /* the HTTP client keeps it until its request ends */
    else
        free_oauth(o);
}

/* Gives the outcome, the token or e, to all current waiters. */
static void answer(struct oauth *o, const struct err *e)
{
    struct list now = {0};
    struct link *link;
    while ((link = list_pop(&o->waits)))
        list_push_back(&now, link);
    o->answering = true;
    while ((link = list_pop(&now))) {
        struct oauth_wait *w = LIST_ENTRY(link, struct oauth_wait, link);
        w->generation = o->generation;
        w->done(w->ctx, e, e ? NULL : o->header);
    }
    o->answering = false;
}

static bool is_live(const struct oauth *o)
{
    return o->header[0] && clock_mono(o->timers->clock).ms < o->until.ms;
}

static void fail(struct oauth *o, const struct err *e)
{
    if (!is_live(o)) {
        answer(o, e);
        return;
    }
    o->renew_after.ms = clock_mono(o->timers->clock).ms + RENEW_PAUSE_MS;
    answer(o, NULL);
}

static void accept_token(struct oauth *o, const struct oauth_token *token)
{
    int64_t life_ms = SECONDS_MS(token->expires_in_s);
    int64_t margin_ms = life_ms / 4 < RENEW_BEFORE_MS ? life_ms / 4 : RENEW_BEFORE_MS;
    if (o->early_ms > 0)
        margin_ms = o->early_ms;
    OPENSSL_cleanse(o->header, sizeof(o->header));
    snprintf(o->header, sizeof(o->header), "Authorization: Bearer %s", token->text);
    o->generation++;
    o->until.ms = o->asked.ms + life_ms;
    o->renew_after.ms = o->until.ms - margin_ms;
    int64_t pause_end = clock_mono(o->timers->clock).ms + RENEW_PAUSE_MS;
    if (o->renew_after.ms < pause_end && pause_end < o->until.ms)
        o->renew_after.ms = pause_end;
    answer(o, NULL);
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct oauth *o = ctx;
    struct oauth_token token;
    struct err bad;
    o->call = NULL;
    if (o->destroyed) {
        free_oauth(o);
        return;
    }
    if (e)
        fail(o, e);
    else if (o->ops->parse(o->ctx, reply, &token, &bad) != 0)
        fail(o, &bad);
    else
        accept_token(o, &token);
    OPENSSL_cleanse(&token, sizeof(token));
}

static void fetch(struct oauth *o)
{
    struct oauth_request ask = {0};
    struct err e;
    if (o->ops->build(o->ctx, &ask, &e) == 0) {
        struct http_request r = {
            .method = ask.method,
            .url = ask.url,
            .headers = {ask.header},
            .body = ask.body.len > 0 ? buf_str(&ask.body) : NULL,
            .body_len = ask.body.len,
            .timeout_ms = ask.timeout_ms,
            .max_reply_bytes = OAUTH_REPLY_MAX,
            .tls = {.ca_pem = ask.ca_pem},
        };
        o->asked = clock_mono(o->timers->clock);
        o->call = http_start(o->http, &r, on_reply, o);
    } else {
        fail(o, &e);
    }
    buf_wipe(&ask.body);
    free(ask.url);
}

static void on_answer_timer(struct timer *t, void *ctx)
{
    struct oauth *o = ctx;
    (void)t;
    if (list_is_empty(&o->waits) || o->call)
        return;
    if (is_live(o) && clock_mono(o->timers->clock).ms < o->renew_after.ms)
        answer(o, NULL);
    else
        fetch(o);
}

void oauth_get(struct oauth *o, struct oauth_wait *w, oauth_fn done, void *ctx)
{
    *w = (struct oauth_wait){.done = done, .ctx = ctx};
    list_push_back(&o->waits, &w->link);
    if (!o->call && !timer_is_running(&o->answer_timer))
        timer_start(o->timers, &o->answer_timer, 0);
}

void oauth_cancel(struct oauth_wait *w)
{
    link_remove(&w->link);
}

int64_t oauth_left_ms(const struct oauth *o)
{
    return is_live(o) ? o->until.ms - clock_mono(o->timers->clock).ms : 0;
}

void oauth_refused(struct oauth *o, const struct oauth_wait *w)
{
    if (w->generation == o->generation)
        OPENSSL_cleanse(o->header, sizeof(o->header));
}

/* ---- replies ---- */

static bool is_visible(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

/* usual_s: the default if absent; 0 = required. */
static int64_t read_life(struct json_reader *r, int64_t usual_s)
{
    const json_t *v = json_object_get(r->object, "expires_in");
    int64_t life = 0;
    if (usual_s > 0 && (!v || json_is_null(v)))
        return usual_s;
    if (!json_is_string(v))
        return json_req_i64(r, "expires_in", 1, LIFE_MAX_S);
    const char *text = json_req_str(r, "expires_in", 16);
    struct err why;
    if (text && str_to_i64(text, 1, LIFE_MAX_S, "seconds", &life, &why) != 0)
        json_reader_fail(r, "expires_in", "%s", why.text);
    return life;
}

static int parse_token(
    const char *body, size_t n, int64_t usual_s, struct oauth_token *ret, struct err *e)
{
    json_t *object = NULL;
    struct json_reader r;
    int rc = json_parse(body, n, OAUTH_REPLY_MAX, &object, e);
    if (rc != 0)
        return err_wrap(e, "the token's reply");
    json_reader_init(&r, object, "", e);
    const char *text = json_req_str(&r, "access_token", OAUTH_TOKEN_MAX);
    if (text && (!*text || !is_visible(text)))
        json_reader_fail(
            &r, "access_token", "empty, or with a character that a header cannot contain");
    int64_t life = read_life(&r, usual_s);
    rc = json_reader_finish_lenient(&r);
    if (rc == 0) {
        STR_COPY(ret->text, text);
        ret->expires_in_s = life;
    } else {
        err_wrap(e, "the token's reply");
    }
    json_wipe(object);
    return rc;
}

static int parse_refusal(int status, const char *body, size_t n, struct err *e)
{
    char error[64] = "", description[DESCRIPTION_MAX + 1] = "";
    json_t *object = NULL;
    int kind = ERR_DENIED;
    if (status == 429)
        kind = ERR_THROTTLED;
    else if (status >= 500)
        kind = ERR_UNAVAILABLE;
    if (json_parse(body, n, OAUTH_REPLY_MAX, &object, NULL) == 0) {
        const char *text = json_string_value(json_object_get(object, "error"));
        STR_COPY(error, text);
        text = json_string_value(json_object_get(object, "error_description"));
        STR_COPY(description, text);
    }
    json_decref(object);
    return err_set(e, kind, "no token: HTTP %d%s%s%s%s", status, error[0] ? ", " : "", error,
        description[0] ? ": " : "", description);
}

int oauth_parse_reply(
    int status, const char *body, size_t n, struct oauth_token *ret_token, struct err *e)
{
    return oauth_parse_exchange(status, body, n, 0, ret_token, e);
}

int oauth_parse_exchange(int status, const char *body, size_t n, int64_t life_s,
    struct oauth_token *ret_token, struct err *e)
{
    return status == 200 ? parse_token(body, n, life_s, ret_token, e)
                         : parse_refusal(status, body, n, e);
}
