/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of rights (see access.h).
 */
#include "scheduler/access/access.h"

#include "base/str.h"
#include <assert.h>

/* How far a role reaches with a right. */
enum reach {
    NO,
    OWN,
    TEAM, /* own, and of the teams that the caller leads */
    ANY
};

/* clang-format off */
static const enum reach reaches[RIGHTS][ROLES] = {
    /*                    viewer member lead  operator admin */
    [RIGHT_UNSET]     = { NO,    NO,    NO,   NO,      NO },
    [RIGHT_NONE]      = { ANY,   ANY,   ANY,  ANY,     ANY },
    [RIGHT_READ]      = { ANY,   ANY,   ANY,  ANY,     ANY },
    [RIGHT_METRICS]   = { ANY,   ANY,   ANY,  ANY,     ANY },
    [RIGHT_READ_JOB]  = { OWN,   OWN,   TEAM, ANY,     ANY }, /* and as `visibility` says */
    [RIGHT_SUBMIT]    = { NO,    OWN,   OWN,  OWN,     OWN },
    [RIGHT_CHANGE]    = { NO,    OWN,   TEAM, ANY,     ANY },
    [RIGHT_ENTER]     = { NO,    OWN,   OWN,  OWN,     ANY },
    [RIGHT_CRON_EDIT] = { NO,    OWN,   OWN,  OWN,     ANY },
    [RIGHT_CRON]      = { NO,    OWN,   TEAM, ANY,     ANY },
    [RIGHT_CRON_RUN]  = { NO,    OWN,   TEAM, ANY,     ANY },
    [RIGHT_SECRETS]   = { NO,    OWN,   OWN,  OWN,     ANY },
    [RIGHT_TOKENS]    = { NO,    OWN,   OWN,  OWN,     ANY },
    [RIGHT_OPERATE]   = { NO,    NO,    NO,   ANY,     ANY },
    [RIGHT_ADMIN]     = { NO,    NO,    NO,   NO,      ANY },
};

const char *const right_names[] = {"unset", "none", "read", "metrics", "read-job", "submit",
    "change", "enter", "cron-edit", "cron", "cron-run", "secrets", "tokens", "operate", "admin",
    NULL};

#define BIT(right) (1u << (right))
#define READS (BIT(RIGHT_NONE) | BIT(RIGHT_READ) | BIT(RIGHT_METRICS) | BIT(RIGHT_READ_JOB))

/* The rights that a scope leaves. */
static const unsigned scope_rights[SCOPES] = {
    [SCOPE_NONE]      = ~0u,
    [SCOPE_READ_ONLY] = READS,
    [SCOPE_METRICS]   = BIT(RIGHT_NONE) | BIT(RIGHT_METRICS),
    [SCOPE_CI]        = READS | BIT(RIGHT_SUBMIT) | BIT(RIGHT_CHANGE),
    [SCOPE_POOL]      = READS | BIT(RIGHT_SUBMIT) | BIT(RIGHT_CHANGE) | BIT(RIGHT_ENTER) |
                        BIT(RIGHT_OPERATE),
    [SCOPE_CRON]      = READS | BIT(RIGHT_CRON_RUN),
    [SCOPE_JOB]       = BIT(RIGHT_CHANGE) | BIT(RIGHT_ENTER),
};
/* clang-format on */

int scope_parse(const char *text, struct scope *ret_scope, struct err *e)
{
    struct scope s = {.kind = SCOPE_NONE};
    char shown[STR_SHOW_MAX];
    int rc = 0;
    if (str_eq(text, "read-only"))
        s.kind = SCOPE_READ_ONLY;
    else if (str_eq(text, "metrics"))
        s.kind = SCOPE_METRICS;
    else if (str_eq(text, "ci"))
        s.kind = SCOPE_CI;
    else if (str_starts(text, "pool=") && str_is_name(text + 5, CORE_NAME_MAX - 1)) {
        s.kind = SCOPE_POOL;
        STR_COPY(s.pool, text + 5);
    } else if (str_starts(text, "cron=")) {
        s.kind = SCOPE_CRON;
        rc = str_to_i64(text + 5, 1, INT64_MAX, "the number of the cron entry", &s.id, e);
    } else if (text[0])
        rc = err_set(e, ERR_INVALID,
            "expected read-only, metrics, ci, pool=NAME or cron=ENTRY, found %s",
            str_show(text, shown));
    if (rc == 0)
        *ret_scope = s;
    return rc;
}

void access_init(struct caller *c, const struct config *config, const char *user, bool is_admin)
{
    *c = (struct caller){.config = config, .most = ROLE_ADMIN, .expires_at = WALL_NONE};
    STR_COPY(c->user, user);
    c->role = is_admin ? ROLE_ADMIN : config_role_of(&config->access, user);
    c->admin = c->role == ROLE_ADMIN;
}

void access_raise(struct caller *c, enum role role)
{
    if (c->role < role)
        c->role = role;
    c->admin = c->role == ROLE_ADMIN;
}

void access_narrow(struct caller *c, enum role most, const struct scope *scope)
{
    if (scope->kind == SCOPE_CI && most > ROLE_MEMBER)
        most = ROLE_MEMBER; /* a pipeline acts on its user's jobs, whatever else its user may do */
    c->most = most;
    c->scope = *scope;
    if (c->role > most)
        c->role = most;
    c->admin = c->role == ROLE_ADMIN && scope->kind == SCOPE_NONE;
}

static bool is_visible(const struct caller *c, const struct access_object *o)
{
    const enum visibility v = c->config->access.visibility;
    return v == VISIBILITY_ALL || (v == VISIBILITY_TEAM && o->team &&
                                      policy_is_member(&c->config->policy, o->team, c->user));
}

static bool role_reaches(const struct caller *c, enum right right, const struct access_object *o)
{
    const enum reach reach = reaches[right][c->role];
    if (!o || reach == ANY)
        return reach != NO;
    return (reach >= OWN && o->user && str_eq(o->user, c->user)) ||
           (reach == TEAM && o->team && policy_is_lead(&c->config->policy, o->team, c->user)) ||
           (right == RIGHT_READ_JOB && is_visible(c, o));
}

static bool scope_reaches(const struct caller *c, enum right right, const struct access_object *o)
{
    const struct scope *s = &c->scope;
    if (!(scope_rights[s->kind] & BIT(right)))
        return false;
    if (!o || right == RIGHT_READ || right == RIGHT_METRICS)
        return true;
    if (s->kind == SCOPE_CRON)
        return o->cron == s->id;
    if (s->kind == SCOPE_JOB)
        return o->job == s->id;
    return s->kind != SCOPE_POOL || right == RIGHT_READ_JOB ||
           (o->pool && str_eq(o->pool, s->pool));
}

bool access_may(const struct caller *c, enum right right, const struct access_object *object)
{
    return role_reaches(c, right, object) && scope_reaches(c, right, object);
}

enum role right_least_role(enum right right)
{
    int role = ROLE_VIEWER;
    assert(right != RIGHT_UNSET);
    while (reaches[right][role] == NO)
        role++;
    return (enum role)role;
}

static int refuse_scope(const struct caller *c, const char *what, struct err *e)
{
    const struct scope *s = &c->scope;
    const char *of = what ? what : "this";
    if (s->kind == SCOPE_POOL)
        return err_set(e, ERR_DENIED,
            "the token is for jobs and nodes of pool %s only, which %s is not: use a token without "
            "this scope",
            s->pool, of);
    if (s->kind == SCOPE_CRON)
        return err_set(e, ERR_DENIED,
            "the token may only run cron entry %lld and follow its jobs, which %s is not: use a "
            "token without this scope",
            (long long)s->id, of);
    if (s->kind == SCOPE_JOB)
        return err_set(e, ERR_DENIED,
            "the token of job %lld is for that job only: its user can do this, with an API token",
            (long long)s->id);
    if (s->kind == SCOPE_METRICS)
        return err_set(e, ERR_DENIED,
            "the token is for GET /metrics only: use a token without the scope metrics");
    return err_set(e, ERR_DENIED,
        s->kind == SCOPE_CI ? "the token is for submitting, changing and following jobs only: use "
                              "a token without the scope ci"
                            : "the token is read-only: use a token without this scope");
}

int access_refuse(const struct caller *c, enum right right, const struct access_object *object,
    const char *what, struct err *e)
{
    if (right == RIGHT_UNSET)
        return err_set(e, ERR_DENIED, "no role has the right to this call: a bug in belayd");
    if (role_reaches(c, right, object))
        return refuse_scope(c, what, e);
    if (right == RIGHT_ADMIN)
        return err_set(e, ERR_DENIED,
            "this needs an administrator, and %s is %s: use the UNIX socket as the user who runs "
            "belayd, or an administrator's token",
            c->user, role_names[c->role]);
    if (!role_reaches(c, right, NULL))
        return err_set(e, ERR_DENIED,
            "this needs the role %s, and %s is %s: ask an administrator, who gives roles in users: "
            "of belayd's configuration",
            role_names[right_least_role(right)], c->user, role_names[c->role]);
    const char *owner = object->user ? object->user : "nobody";
    if (right == RIGHT_ENTER || right == RIGHT_CRON_EDIT)
        return err_set(e, ERR_DENIED,
            "%s is %s's: only they or an administrator can do this, because it runs commands as %s",
            what, owner, owner);
    if (right == RIGHT_READ_JOB)
        return err_set(e, ERR_DENIED,
            "%s is %s's, and not shown to %s (visibility: %s in belayd's configuration): ask %s or "
            "an administrator",
            what, owner, c->user, visibility_names[c->config->access.visibility], owner);
    return err_set(e, ERR_DENIED,
        "%s is %s's: only they, a lead of its team, an operator or an administrator can do this",
        what, owner);
}
