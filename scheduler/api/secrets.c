/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for users' secrets (scheduler/secrets/store.h). No answer has a value.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "scheduler/core/queue/policy.h"
#include "scheduler/secrets/store.h"
#include <stdlib.h>
#include <string.h>

#define BODY_MAX (3 * SECRET_BYTES_MAX) /* a value as hex, and the rest */

/* A change of one secret, until it is durable. */
struct secret_change {
    struct api *api;
    struct deferred_reply *deferred;
    char owner[CORE_NAME_MAX], name[SECRET_NAME_MAX], by[CORE_NAME_MAX];
    char *sealed; /* of a new value; NULL = unchanged */
    int64_t bytes;
    bool removes;
    char *grants[SECRET_GRANTS_MAX]; /* each preceded by '+' or '-' */
    size_t n_grants;
};

static void change_free(struct secret_change *c)
{
    free(c->sealed);
    for (size_t i = 0; i < c->n_grants; i++)
        free(c->grants[i]);
    free(c);
}

/* ---- reading requests ---- */

static bool may_see(const struct request *q, const char *owner)
{
    return access_may(&q->caller, RIGHT_SECRETS, &(struct access_object){.user = owner});
}

/* Reads whose secret it is: the caller's, or for administrators anyone's. */
static int read_name(
    struct request *q, struct json_reader *r, struct secret_change *c, struct err *e)
{
    struct err why;
    json_opt_strcpy(r, "owner", c->owner, sizeof(c->owner), q->caller.user);
    json_req_strcpy(r, "name", c->name, sizeof(c->name));
    STR_COPY(c->by, q->caller.user);
    if (r->rc == 0 && secret_name_check(c->name, &why) != 0)
        json_reader_fail(r, "name", "%s", why.text);
    if (r->rc == 0 && !may_see(q, c->owner))
        return err_set(e, ERR_DENIED,
            "the secret %s is %s's: only they or an administrator can change it", c->name,
            c->owner);
    return r->rc;
}

static int check_size(size_t n, struct err *e)
{
    if (n < SECRET_BYTES_MIN)
        return err_set(e, ERR_INVALID,
            "secret.value: %zu bytes: a value has at least %d bytes, because a shorter one could "
            "not be hidden in the output of jobs without hiding other text",
            n, SECRET_BYTES_MIN);
    if (n > SECRET_BYTES_MAX)
        return err_set(
            e, ERR_INVALID, "secret.value: %zu bytes: a value has at most %u", n, SECRET_BYTES_MAX);
    return 0;
}

/* The size without newlines at its end, which are not part of what is hidden. */
static size_t visible_size(const char *value, size_t n)
{
    while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r'))
        n--;
    return n;
}

static int take_value(
    const struct request *q, struct json_reader *r, struct secret_change *c, struct err *e)
{
    const char *text = json_opt_str(r, "value", SECRET_BYTES_MAX, ""),
               *hex = json_opt_str(r, "value_hex", 2 * SECRET_BYTES_MAX, "");
    if (r->rc != 0)
        return r->rc;
    if (!*text == !*hex)
        return err_set(e, ERR_INVALID, "secret: expected one of value and value_hex");
    size_t n = *text ? strlen(text) : strlen(hex) / 2;
    char *value = mem_alloc(n + 1);
    int rc = 0;
    if (*text)
        memcpy(value, text, n);
    else if (strlen(hex) % 2 != 0 || !str_unhex(hex, (unsigned char *)value, n))
        rc = err_set(e, ERR_INVALID, "secret.value_hex: expected lower-case hex digits");
    if (rc == 0)
        rc = check_size(visible_size(value, n), e);
    if (rc == 0) {
        c->sealed = secret_seal(q->api->o.sealer, c->owner, c->name, value, n);
        c->bytes = (int64_t)n;
    }
    explicit_bzero(value, n);
    free(value);
    return rc;
}

/* Without teams in the configuration a job may name any. */
static int check_team(const struct queue_policy *p, const char *team, struct err *e)
{
    const char **names = mem_array(p->n_teams + 1, sizeof(*names));
    bool found = false;
    for (size_t i = 0; i < p->n_teams; i++) {
        names[i] = p->teams[i].name;
        found = found || str_eq(names[i], team);
    }
    const char *near = str_nearest(team, names);
    free(names);
    if (found || p->n_teams == 0)
        return 0;
    return near ? err_set(e, ERR_INVALID,
                      "secret.team: there is no team \"%s\"; did you mean \"%s\"?", team, near)
                : err_set(e, ERR_INVALID,
                      "secret.team: there is no team \"%s\" (belay shares lists them)", team);
}

/* A grant to a team or pool that does not exist would do nothing, without anybody's notice. */
static int check_grants(const struct request *q, const struct secret_change *c, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_grants; i++) {
        const char *name = strchr(c->grants[i], ':');
        if (str_starts(c->grants[i], "+team:"))
            rc = check_team(&q->api->o.config->policy, name + 1, e);
        else if (str_starts(c->grants[i], "+pool:"))
            rc = pools_check_names(q->api->o.pools, name + 1, "secret", e);
    }
    return rc;
}

static void take_grants(struct json_reader *r, const char *key, char sign, struct secret_change *c)
{
    const json_t *list = json_opt_array(r, key, SECRET_GRANTS_MAX), *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        if (!text || c->n_grants == SECRET_GRANTS_MAX)
            json_reader_fail(r, key, "expected at most %d texts in all", SECRET_GRANTS_MAX);
        else
            c->grants[c->n_grants++] = mem_printf("%c%s", sign, text);
    }
}

/* ---- changing ---- */

struct counting {
    int64_t n;
};

static int count(void *ctx, const struct secret_row *row)
{
    struct counting *c = ctx;
    (void)row;
    c->n++;
    return 0;
}

/* Reads the row as it will be after this tick. ERR_NOT_FOUND. */
static int read_row(
    const struct secret_change *c, const struct tick *t, struct secret_row *ret, struct err *e)
{
    size_t n;
    const struct secret_row *put = tick_secrets(t, &n);
    while (n-- > 0) {
        if (!str_eq(put[n].owner, c->owner) || !str_eq(put[n].name, c->name))
            continue;
        if (put[n].removed)
            return err_set(e, ERR_NOT_FOUND, "%s has no secret %s", c->owner, c->name);
        *ret = put[n];
        ret->sealed = mem_strdup(put[n].sealed);
        return 0;
    }
    return db_read_secret(c->api->o.reader, c->owner, c->name, ret, e);
}

static int check_number(const struct secret_change *c, const struct tick *t, struct err *e)
{
    struct counting all = {0};
    int rc = db_read_secrets(c->api->o.reader, c->owner, count, &all, e);
    size_t n;
    tick_secrets(t, &n);
    if (rc == 0 && all.n + (int64_t)n >= SECRETS_PER_OWNER_MAX)
        rc = err_set(e, ERR_INVALID,
            "%s has %lld secrets, at most %d are allowed: remove one (belay secret remove)",
            c->owner, (long long)all.n, SECRETS_PER_OWNER_MAX);
    return rc;
}

static int change(const struct secret_change *c, struct secret_row *row, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_grants; i++)
        rc = secret_grant(row, c->grants[i] + 1, c->grants[i][0] == '+', e);
    if (rc != 0 || !c->sealed)
        return rc;
    free(row->sealed);
    row->sealed = mem_strdup(c->sealed);
    row->bytes = c->bytes;
    STR_COPY(row->set_by, c->by);
    return 0;
}

static int apply(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct secret_change *c = ctx;
    struct secret_row row = {0};
    struct err why;
    int rc = read_row(c, t, &row, &why);
    (void)ret_id;
    if (rc != 0 && (rc != ERR_NOT_FOUND || !c->sealed))
        *e = why;
    if (rc == ERR_NOT_FOUND && c->sealed) {
        STR_COPY(row.owner, c->owner);
        STR_COPY(row.name, c->name);
        rc = check_number(c, t, e);
    }
    if (rc == 0)
        rc = change(c, &row, e);
    if (rc == 0) {
        row.removed = c->removes;
        if (c->sealed)
            row.set_at = tick_now(t).wall;
        tick_put_secret(t, &row);
    }
    secret_row_deinit(&row);
    return rc;
}

static void on_applied(void *ctx, const struct err *e, int64_t id)
{
    struct secret_change *c = ctx;
    struct http_exchange *x = deferred_reply_take(c->deferred);
    (void)id;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, json_pack("{s:s,s:s}", "owner", c->owner, "name", c->name));
    change_free(c);
}

/* Takes c. */
static void post(struct request *q, struct secret_change *c, int rc, const struct err *e)
{
    if (rc != 0) {
        http_reply_err(q->x, e);
        change_free(c);
        return;
    }
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, apply, on_applied, c);
}

static struct secret_change *change_create(struct request *q)
{
    struct secret_change *c = mem_alloc(sizeof(*c));
    c->api = q->api;
    return c;
}

void api_secrets_set(struct request *q)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return;
    struct secret_change *c = change_create(q);
    json_reader_init(&r, body, "secret", &e);
    int rc = read_name(q, &r, c, &e);
    if (rc == 0)
        rc = take_value(q, &r, c, &e);
    if (rc == 0)
        rc = json_reader_finish(&r);
    json_wipe(body);
    post(q, c, rc, &e);
}

static void change_row(struct request *q, bool removes)
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return;
    struct secret_change *c = change_create(q);
    c->removes = removes;
    json_reader_init(&r, body, "secret", &e);
    int rc = read_name(q, &r, c, &e);
    if (!removes) {
        take_grants(&r, "add", '+', c);
        take_grants(&r, "remove", '-', c);
    }
    if (rc == 0)
        rc = json_reader_finish(&r);
    if (rc == 0)
        rc = check_grants(q, c, &e);
    json_decref(body);
    post(q, c, rc, &e);
}

void api_secrets_grant(struct request *q)
{
    change_row(q, false);
}

void api_secrets_remove(struct request *q)
{
    change_row(q, true);
}

/* ---- submits ---- */

int api_check_secrets(const struct api *a, const struct jobspec *s, struct err *e)
{
    const struct queue_policy *p = &a->o.config->policy;
    const char *team = s->row.spec.team;
    const struct secret_user u = {.user = s->row.user,
        .team = *team ? team : policy_team_of(p, s->row.user),
        .pools = s->row.spec.pool};
    if (s->row.spec.secrets == 0)
        return 0;
    return secrets_check(a->o.reader, p, s->texts.launch_json, &u, e);
}

/* ---- showing ---- */

static int add_secret(void *ctx, const struct secret_row *row)
{
    json_t *grants = json_array();
    for (const char *p = row->grants; *p;) {
        size_t n = strcspn(p, " ");
        json_array_append_new(grants, json_textn(p, n));
        p += n + (p[n] == ' ');
    }
    json_array_append_new(
        ctx, json_pack("{s:o,s:o,s:I,s:o,s:o,s:o}", "owner", json_text(row->owner), "name",
                 json_text(row->name), "bytes", (json_int_t)row->bytes, "set_at",
                 api_json_time(row->set_at), "set_by", json_text(row->set_by), "grants", grants));
    return 0;
}

void api_secrets_list(struct request *q)
{
    const char *owner = http_request_query(q->x, "owner");
    json_t *list = json_array();
    struct err e;
    int rc = 0;
    if (owner && !may_see(q, owner))
        rc = err_set(&e, ERR_DENIED, "only administrators can list the secrets of others");
    if (!owner && !q->caller.admin)
        owner = q->caller.user;
    if (rc == 0)
        rc = db_read_secrets(q->api->o.reader, owner, add_secret, list, &e);
    if (rc == 0) {
        api_reply_json(q->x, 200, json_pack("{s:o}", "secrets", list));
        return;
    }
    json_decref(list);
    http_reply_err(q->x, &e);
}
