/* SPDX-License-Identifier: Apache-2.0
 *
 * One-use links (see links.h).
 */
#include "scheduler/api/login/links.h"

#include "base/mem.h"
#include "base/prng.h"
#include "scheduler/api/login/loopback.h"
#include "scheduler/api/login/session.h"
#include "scheduler/api/login/sign_in.h"
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 1024
#define PAGE "/console/sign-in#link="

struct sign_in_link {
    struct link in_links; /* oldest first */
    char hash[65];
    struct session_grant grant;
    struct mono until;
};

static void drop(struct sign_in_link *l)
{
    link_remove(&l->in_links);
    free(l);
}

static void drop_expired(struct api *a)
{
    struct mono now = clock_mono(a->o.timers->clock);
    LIST_FOREACH (&a->sign_in_links, it) {
        struct sign_in_link *l = LIST_ENTRY(it, struct sign_in_link, in_links);
        if (l->until.ms <= now.ms)
            drop(l);
    }
}

void links_deinit(struct list *links)
{
    for (struct link *it; (it = list_first(links));)
        drop(LIST_ENTRY(it, struct sign_in_link, in_links));
}

/* ---- making one ---- */

/* Drops the user's oldest link if there are too many. Returns false if all users together have too
 * many. */
static bool make_place(struct api *a, const char *user)
{
    struct sign_in_link *oldest = NULL;
    int n = 0, of_user = 0;
    LIST_FOREACH (&a->sign_in_links, it) {
        struct sign_in_link *l = LIST_ENTRY(it, struct sign_in_link, in_links);
        n++;
        if (!str_eq(l->grant.user, user))
            continue;
        of_user++;
        oldest = oldest ? oldest : l;
    }
    if (of_user < LINKS_PER_USER)
        return n < LINKS_MAX;
    drop(oldest);
    return true;
}

static struct session_grant grant_of(const struct request *q)
{
    const struct http_server_request *r = q->r;
    struct session_grant g = {.parent = q->caller.token};
    STR_COPY(g.user, q->caller.user);
    g.admin = r->is_unix && (r->peer_uid == 0 || r->peer_uid == q->api->o.owner_uid);
    return g;
}

/* {"url", "remote_url", "expires_at"}: the same link, here and at belayd's own URL. */
static json_t *link_json(const struct request *q, const char *origin, const char *secret)
{
    const char *server = q->api->server_url;
    bool is_remote = str_eq(origin, server);
    char *url = mem_printf("%s" PAGE "%s", origin, secret);
    char *remote = mem_printf("%s" PAGE "%s", server, secret);
    struct wall until = {clock_wall(q->api->o.timers->clock).ms + LINK_MS};
    json_t *v = json_pack("{s:s,s:s?,s:s,s:o}", "url", url, "remote_url", is_remote ? NULL : remote,
        "user", q->caller.user, "expires_at", api_json_time(until));
    explicit_bzero(url, strlen(url));
    explicit_bzero(remote, strlen(remote));
    free(url);
    free(remote);
    return v;
}

void api_console_link(struct request *q)
{
    char secret[2 * LINK_BYTES + 1], origin[300];
    const char *host = http_request_header(q->x, "Host");
    struct err e;
    if (!api_read_flags(q, NULL, 0))
        return;
    if (q->caller.is_session) {
        api_reply_failure(q->x, ERR_INVALID,
            "this browser is signed in already: belay console signs another one in");
        return;
    }
    snprintf(origin, sizeof(origin), "https://%.255s", host ? host : "");
    if ((q->r->is_unix || q->is_loopback) &&
        loopback_open(q->api, q->caller.user, origin, &e) != 0) {
        http_reply_err(q->x, &e);
        return;
    }
    drop_expired(q->api);
    if (!make_place(q->api, q->caller.user)) {
        api_reply_failure(q->x, ERR_THROTTLED,
            "%d links of other users are open: try again in %d s", LINKS_MAX, LINK_MS / 1000);
        return;
    }
    struct sign_in_link *l = mem_alloc(sizeof(*l));
    random_hex(LINK_BYTES, secret);
    ca_sha256_hex(secret, l->hash);
    l->grant = grant_of(q);
    l->until = (struct mono){clock_mono(q->api->o.timers->clock).ms + LINK_MS};
    list_push_back(&q->api->sign_in_links, &l->in_links);
    http_reply_add_header(q->x, "Cache-Control", "no-store");
    api_reply_json(q->x, 201, link_json(q, origin, secret));
    explicit_bzero(secret, sizeof(secret));
}

/* ---- using one ---- */

static struct sign_in_link *find(const struct api *a, const char *secret)
{
    char hash[65];
    ca_sha256_hex(secret, hash);
    LIST_FOREACH (&a->sign_in_links, it) {
        struct sign_in_link *l = LIST_ENTRY(it, struct sign_in_link, in_links);
        if (str_eq(l->hash, hash))
            return l;
    }
    return NULL;
}

/* A good link is not paced: guesses of other users of this machine must not keep it out. */
static void redeem(struct request *q, const char *secret)
{
    struct err e;
    drop_expired(q->api);
    struct sign_in_link *l = find(q->api, secret);
    if (!l) {
        if (!sign_in_pace(q))
            return;
        err_set(&e, ERR_DENIED,
            "the link was used, is older than %d s, or is not of this belayd: run belay console "
            "again",
            LINK_MS / 1000);
        api_reply_status(q->x, 401, &e);
        return;
    }
    if (!session_may_begin(q, l->grant.user))
        return;
    struct session_grant g = l->grant;
    drop(l);
    session_begin(q, &g);
}

void api_login_link(struct request *q)
{
    struct err e;
    char secret[2 * LINK_BYTES + 1];
    if (!session_may_begin(q, NULL))
        return;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return;
    int rc = session_read_secret(body, "link", secret, sizeof(secret), &e);
    json_wipe(body);
    if (rc == 0)
        redeem(q, secret);
    else
        http_reply_err(q->x, &e);
    explicit_bzero(secret, sizeof(secret));
}
