/* SPDX-License-Identifier: Apache-2.0
 *
 * Who makes a request: a user by the UNIX socket, a token or a browser's cookie; an attempt by its
 * token; a node by its certificate; a machine by its join token.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/api/login/session.h"

#include <pwd.h>
#include <string.h>
#include <strings.h>

/* How long the name of a local user is cached: each lookup reads a file or queries a service. */
#define LOCAL_USER_MS 10000

static void find_local(struct local_user *l, uid_t uid, struct mono now)
{
    struct passwd pw, *found = NULL;
    char mem[4096];
    if (l->uid == uid && mono_is_set(l->until) && now.ms < l->until.ms)
        return;
    *l = (struct local_user){.uid = uid, .until = {now.ms + LOCAL_USER_MS}};
    if (getpwuid_r(uid, &pw, mem, sizeof(mem), &found) == 0 && found)
        STR_COPY(l->name, found->pw_name);
    else
        snprintf(l->name, sizeof(l->name), "uid-%u", (unsigned)uid);
}

static void identify_local(struct request *q)
{
    uid_t uid = q->r->peer_uid;
    find_local(&q->api->local, uid, clock_mono(q->api->o.timers->clock));
    access_init(
        &q->caller, q->api->o.config, q->api->local.name, uid == 0 || uid == q->api->o.owner_uid);
}

/* Replies 401 and returns false. */
static bool refuse(struct request *q, const char *text)
{
    struct err e;
    err_set(&e, ERR_DENIED, "%s", text);
    http_reply_add_header(q->x, "WWW-Authenticate", "Bearer");
    api_reply_status(q->x, 401, &e);
    return false;
}

#define TOKEN_TEXT_MAX 256

/* The token of a request: of the header, else of a browser's cookie; NULL if none was sent. */
static const char *bearer(struct http_exchange *x, char mem[TOKEN_TEXT_MAX])
{
    const char *header = http_request_header(x, "Authorization");
    if (header && strncasecmp(header, "Bearer ", 7) == 0)
        return header + 7;
    return !header && api_cookie(x, LOGIN_COOKIE, mem, TOKEN_TEXT_MAX) ? mem : NULL;
}

/* Returns ERR_NOT_FOUND for a token that is unknown or no longer valid. */
static int find_token(const struct api *a, const char *token, struct token_row *t, struct err *e)
{
    char hash[65];
    struct token_row parent;
    api_token_hash(a, token, hash);
    struct wall now = clock_wall(a->o.timers->clock);
    int rc = db_read_token_by_hash(a->o.reader, hash, t, e);
    if (rc == 0 && t->session && t->parent)
        rc = session_read_parent(a, NULL, t->parent, &parent, e);
    if (rc == 0 &&
        (t->join || t->revoked || (wall_is_set(t->expires_at) && t->expires_at.ms <= now.ms)))
        return err_set(e, ERR_NOT_FOUND, "the token is no longer good");
    return rc;
}

bool api_attempt_lives(const struct job *j, int64_t attempt)
{
    return j && j->row.attempts == attempt && job_attempt(j);
}

/* Accepts the token of a running attempt. */
static bool find_attempt(const struct api *a, const char *token, struct caller *ret_caller)
{
    char copy[129], expected[129], *mac, *end;
    str_copy(copy, sizeof(copy), token);
    int64_t job, attempt;
    if (copy[0] != 'j' || !(end = strchr(copy, '.')) || !(mac = strchr(end + 1, '.')))
        return false;
    *end = *mac = '\0';
    if (str_to_i64(copy + 1, 1, INT64_MAX, "job", &job, NULL) != 0 ||
        str_to_i64(end + 1, 1, INT64_MAX, "attempt", &attempt, NULL) != 0)
        return false;
    api_job_token(a->o.sealer, job, attempt, expected);
    const struct job *j = model_job(tick_model(a->o.tick), job);
    if (!str_secret_eq(expected, token) || !api_attempt_lives(j, attempt))
        return false;
    access_init(ret_caller, a->o.config, j->row.user, false);
    access_narrow(ret_caller, ROLE_MEMBER, &(struct scope){.kind = SCOPE_JOB, .id = job});
    ret_caller->job = job;
    ret_caller->attempt = attempt;
    return true;
}

/* The user of an API token, with the rights that the token leaves. */
static bool become(struct request *q, const struct token_row *t)
{
    struct scope scope;
    struct err e;
    int most = ROLE_ADMIN;
    if (scope_parse(t->scope, &scope, &e) != 0) {
        http_reply_err(q->x, &e);
        return false;
    }
    while (!t->login && most > ROLE_VIEWER && t->role[0] && !str_eq(role_names[most], t->role))
        most--;
    access_init(&q->caller, q->api->o.config, t->user, t->admin);
    for (int role = ROLE_VIEWER; t->login && role < ROLES; role++)
        if (str_eq(role_names[role], t->role))
            access_raise(&q->caller, (enum role)role);
    q->caller.is_login = t->login;
    q->caller.is_session = t->session;
    access_narrow(&q->caller, (enum role)most, &scope);
    q->caller.expires_at = t->expires_at;
    q->caller.token = t->id;
    return true;
}

static bool identify_by_token(struct request *q)
{
    char mem[TOKEN_TEXT_MAX];
    const char *token = bearer(q->x, mem);
    struct token_row t;
    struct err e;
    if (!token && q->api->o.oidc)
        return refuse(q, "no token was sent: sign in (belay login), or set BELAY_TOKEN_FILE to a "
                         "file that holds one");
    if (!token)
        return refuse(q, "no token was sent: set BELAY_TOKEN_FILE to a file that holds one (an "
                         "administrator makes it with: belay token create)");
    q->by_cookie = token == mem;
    if (q->by_cookie && !api_cookie_may(q, token, &e)) {
        http_reply_err(q->x, &e);
        return false;
    }
    int rc = find_token(q->api, token, &t, &e);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        http_reply_err(q->x, &e);
        return false;
    }
    if (rc != 0)
        return refuse(q, q->api->o.oidc
                             ? "the token is not known, has expired or was revoked: sign in again "
                               "(belay login), or ask an administrator for one"
                             : "the token is not known, has expired or was revoked: ask an "
                               "administrator for a new one (belay token create)");
    token_uses_note(q->api->token_uses, &t);
    return become(q, &t);
}

bool api_cookie_token(struct request *q, struct token_row *ret)
{
    char token[TOKEN_TEXT_MAX];
    return api_cookie(q->x, LOGIN_COOKIE, token, sizeof(token)) &&
           find_token(q->api, token, ret, NULL) == 0;
}

static bool identify_user_or_job(struct request *q)
{
    char mem[TOKEN_TEXT_MAX];
    const char *token = bearer(q->x, mem);
    if (!token || token[0] != 'j' || !strchr(token, '.'))
        return identify_by_token(q);
    return find_attempt(q->api, token, &q->caller) ||
           refuse(q, "this is not the token of an attempt that runs: a job may start tasks in "
                     "itself, and change itself, as long as it does");
}

static bool has_node_cert(const struct http_server_request *r)
{
    return !r->is_unix && r->peer_cn && api_node_of_cn(r->peer_cn) > 0;
}

/* A certificate outlives its node: it loses every right when the node is removed. */
static bool is_node(const struct api *a, const struct http_server_request *r)
{
    return has_node_cert(r) && model_node(tick_model(a->o.tick), api_node_of_cn(r->peer_cn));
}

void api_identify(void *ctx, struct http_exchange *x, const struct http_server_request *r,
    struct http_identity *ret)
{
    struct token_row t;
    struct caller attempt;
    char mem[TOKEN_TEXT_MAX];
    const char *token = bearer(x, mem);
    if (is_node(ctx, r)) {
        ret->class = HTTP_NODE;
        STR_COPY(ret->name, r->peer_cn);
    } else if (token && find_token(ctx, token, &t, NULL) == 0) {
        ret->class = HTTP_USER;
        STR_COPY(ret->name, t.user);
    } else if (token && find_attempt(ctx, token, &attempt)) {
        ret->class = HTTP_USER;
        STR_COPY(ret->name, attempt.user);
    } else {
        ret->max_body_bytes = API_UNAUTHENTICATED_BODY_MAX;
    }
}

static bool identify_node(struct request *q)
{
    char text[ERR_TEXT_MAX];
    const char *why = q->r->peer_cert_error;
    if (is_node(q->api, q->r))
        return true;
    if (has_node_cert(q->r)) {
        api_reply_failure(q->x, ERR_NOT_FOUND,
            "node %lld no longer belongs to this cluster: its instance has ended or it was deleted",
            (long long)api_node_of_cn(q->r->peer_cn));
        return false;
    }
    snprintf(text, sizeof(text), "an agent needs the certificate that it got when it joined%s%s",
        why ? ": " : "", why ? why : "");
    return refuse(q, text);
}

/* A join token is checked here without being used up. */
static bool identify_machine(struct request *q)
{
    char mem[TOKEN_TEXT_MAX];
    const char *token = bearer(q->x, mem);
    struct err e;
    if (is_node(q->api, q->r))
        return true;
    if (!token)
        return refuse(q, "this is for machines: it needs a join token that was not used yet, or a "
                         "node's certificate");
    int rc = api_check_join_token(q->api, token, &e);
    if (rc == 0)
        return true;
    if (rc == ERR_DENIED)
        return refuse(q, e.text);
    http_reply_err(q->x, &e);
    return false;
}

bool api_callers_identify(struct request *q, enum api_need need)
{
    if (need == NEED_NOTHING)
        return true;
    if (need == NEED_MACHINE)
        return identify_machine(q);
    if (need == NEED_NODE)
        return identify_node(q);
    if (q->r->is_unix) {
        identify_local(q);
        return true;
    }
    return need == NEED_SESSION || need == NEED_OWN_WRITER ? identify_user_or_job(q)
                                                           : identify_by_token(q);
}
