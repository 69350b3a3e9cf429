/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/secrets/store.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "scheduler/core/queue/policy.h"
#include <stdlib.h>
#include <string.h>

/* A secret's name has no blank, so the text is unambiguous. */
static char *bound_to(const char *owner, const char *name)
{
    return mem_printf("secret %s %s", name, owner);
}

char *secret_seal(
    const struct sealer *s, const char *owner, const char *name, const void *value, size_t n)
{
    char *what = bound_to(owner, name), *sealed = seal(s, what, value, n);
    free(what);
    return sealed;
}

int secret_open(
    const struct sealer *s, const struct secret_row *row, struct buf *ret, struct err *e)
{
    char *what = bound_to(row->owner, row->name);
    int rc = seal_open(s, what, row->sealed ? row->sealed : "", ret, e);
    free(what);
    return rc;
}

/* ---- grants ---- */

/* The word in a text of words with blanks between; NULL if it is not there. */
static char *find_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return (char *)(uintptr_t)p;
    return NULL;
}

static bool is_team(const struct queue_policy *p, const char *name)
{
    for (size_t i = 0; i < p->n_teams; i++)
        if (str_eq(p->teams[i].name, name))
            return true;
    return false;
}

/* A job that may run in other pools too cannot use what is granted to one of them. */
static bool all_granted(const struct secret_row *row, const char *pools)
{
    const char *at = pools;
    char pool[CORE_NAME_MAX], text[CORE_NAME_MAX + 8];
    bool any = false;
    while (names_next(&at, pool, sizeof(pool))) {
        any = true;
        snprintf(text, sizeof(text), "pool:%s", pool);
        if (!find_word(row->grants, text))
            return false;
    }
    return any;
}

bool secret_is_granted(
    const struct secret_row *row, const struct queue_policy *policy, const struct secret_user *u)
{
    char user[CORE_NAME_MAX + 8], team[CORE_NAME_MAX + 8];
    snprintf(user, sizeof(user), "user:%s", u->user);
    snprintf(team, sizeof(team), "team:%s", u->team);
    return str_eq(row->owner, u->user) || find_word(row->grants, user) ||
           (is_team(policy, u->team) && find_word(row->grants, team)) || all_granted(row, u->pools);
}

static int check_grant(const char *grant, struct err *e)
{
    static const char *const kinds[] = {"user:", "team:", "pool:"};
    char shown[STR_SHOW_MAX];
    for (size_t i = 0; i < 3; i++)
        if (str_starts(grant, kinds[i]) && grant[5] && strlen(grant + 5) < CORE_NAME_MAX &&
            !strpbrk(grant, " \t\n") && !str_has_control(grant))
            return 0;
    return err_set(e, ERR_INVALID, "expected user:NAME, team:NAME or pool:NAME, found %s",
        str_show(grant, shown));
}

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " "), n++)
        text += strcspn(text, " ");
    return n;
}

static void remove_word(char *text, const char *word)
{
    char *p = find_word(text, word);
    size_t n = strlen(word);
    const char *rest = p + n + (p[n] == ' ');
    memmove(p, rest, strlen(rest) + 1);
    size_t left = strlen(text);
    if (left > 0 && text[left - 1] == ' ')
        text[left - 1] = '\0';
}

int secret_grant(struct secret_row *row, const char *grant, bool adds, struct err *e)
{
    int rc = check_grant(grant, e);
    if (rc != 0)
        return rc;
    bool has = find_word(row->grants, grant) != NULL;
    if (!adds && !has)
        return err_set(e, ERR_NOT_FOUND, "the secret %s of %s is not granted to %s", row->name,
            row->owner, grant);
    if (!adds)
        remove_word(row->grants, grant);
    if (!adds || has)
        return 0;
    size_t n = strlen(row->grants);
    if (count_words(row->grants) >= SECRET_GRANTS_MAX ||
        n + 1 + strlen(grant) >= sizeof(row->grants))
        return err_set(e, ERR_INVALID, "a secret has at most %d grants: grant it to a team",
            SECRET_GRANTS_MAX);
    snprintf(row->grants + n, sizeof(row->grants) - n, "%s%s", n ? " " : "", grant);
    return 0;
}

/* ---- what jobs get ---- */

/* Of another user's secrets, a job does not learn whether one exists that it may not use. */
static int find(struct db_reader *r, const struct queue_policy *policy,
    const struct secret_ref *ref, const struct secret_user *u, struct secret_row *ret_row,
    struct err *e)
{
    const char *owner = ref->owner[0] ? ref->owner : u->user;
    bool is_own = str_eq(owner, u->user);
    struct err why;
    int rc = db_read_secret(r, owner, ref->name, ret_row, &why);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        *e = why;
        return rc;
    }
    if (rc == 0 && secret_is_granted(ret_row, policy, u))
        return 0;
    if (rc == 0)
        secret_row_deinit(ret_row);
    if (is_own)
        return err_set(e, ERR_INVALID,
            "%s has no secret %s: set it with belay secret set %s, or leave it out", owner,
            ref->name, ref->name);
    return err_set(e, ERR_INVALID,
        "%s has no secret %s that is granted to this job (user %s, team %s, pool %s): ask %s for "
        "belay secret grant %s --user %s",
        owner, ref->name, u->user, u->team[0] ? u->team : "none", u->pools[0] ? u->pools : "any",
        owner, ref->name, u->user);
}

typedef int (*each_fn)(
    void *ctx, const struct secret_ref *ref, const struct secret_row *row, struct err *e);

static int each(struct db_reader *r, const struct queue_policy *policy, const char *launch_json,
    const struct secret_user *u, each_fn fn, void *ctx, struct err *e)
{
    json_t *launch = launch_json ? json_loads(launch_json, 0, NULL) : NULL, *item;
    size_t i;
    int rc = 0;
    json_array_foreach(json_object_get(launch, "secrets"), i, item)
    {
        struct secret_ref ref;
        struct secret_row row = {0};
        rc = secret_ref_parse(json_string_value(item), &ref, e);
        if (rc == 0)
            rc = find(r, policy, &ref, u, &row, e);
        if (rc == 0)
            rc = fn(ctx, &ref, &row, e);
        secret_row_deinit(&row);
        if (rc != 0)
            break;
    }
    json_decref(launch);
    return rc;
}

static int accept(
    void *ctx, const struct secret_ref *ref, const struct secret_row *row, struct err *e)
{
    (void)ctx;
    (void)ref;
    (void)row;
    (void)e;
    return 0;
}

int secrets_check(struct db_reader *r, const struct queue_policy *policy, const char *launch_json,
    const struct secret_user *u, struct err *e)
{
    int rc = each(r, policy, launch_json, u, accept, NULL, e);
    return rc != 0 ? err_wrap(e, "spec.launch.secrets") : 0;
}

struct giving {
    const struct sealer *sealer;
    struct wire_secrets *x;
};

static char *hex_of(const struct buf *value)
{
    char *hex = mem_alloc(2 * value->len + 1);
    str_hex(value->data, value->len, hex);
    return hex;
}

static int give(
    void *ctx, const struct secret_ref *ref, const struct secret_row *row, struct err *e)
{
    struct giving *g = ctx;
    struct wire_secret *out = &g->x->of_job[g->x->n_of_job];
    struct buf value = {0};
    struct err why;
    int rc = secret_open(g->sealer, row, &value, &why);
    if (rc != 0)
        rc = err_set(e, ERR_INVALID, "the secret %s of %s cannot be opened: %s", row->name,
            row->owner, why.text);
    else if (ref->variable[0] && memchr(value.data, 0, value.len))
        rc = err_set(e, ERR_INVALID,
            "the secret %s of %s contains a zero byte, so it cannot be a variable: ask for a file",
            row->name, row->owner);
    if (rc == 0) {
        *out = (struct wire_secret){.name = mem_strdup(row->name),
            .variable = ref->variable[0] ? mem_strdup(ref->variable) : NULL,
            .value = hex_of(&value)};
        g->x->n_of_job++;
    }
    buf_wipe(&value);
    return rc;
}

int secrets_give(struct db_reader *r, const struct sealer *s, const struct queue_policy *policy,
    const char *launch_json, const struct secret_user *u, struct wire_secrets *x, struct err *e)
{
    struct giving g = {.sealer = s, .x = x};
    x->of_job = mem_array(SECRET_REFS_MAX, sizeof(*x->of_job));
    int rc = each(r, policy, launch_json, u, give, &g, e);
    if (rc == ERR_INVALID)
        return err_wrap(e, "its secrets");
    return rc;
}
