/* SPDX-License-Identifier: Apache-2.0
 *
 * Teams, weights and QOS (see policy.h).
 */
#include "scheduler/config/policy.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define MCPU_A_CPU 1000
#define SUBMITTED_OF_USER 200000 /* default limit of a user's unfinished jobs */

static bool check_name(struct yaml_reader *r, const struct yaml_node *node, const char *name,
    size_t max, const char *what)
{
    char shown[STR_SHOW_MAX];
    if (str_is_name(name, max))
        return true;
    yaml_reader_fail(r, node, "%s is not %s: letters, digits, '.', '_', '-', at most %zu",
        str_show(name, shown), what, max);
    return false;
}

/* Reads a duration such as "2h" or "-7d", at most ten years either way; returns ms. */
static int64_t opt_signed(struct yaml_reader *r, const char *key, int64_t fallback_ms)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *text = yaml_opt_str(r, key, 32, NULL);
    bool less = text && text[0] == '-';
    struct err why;
    int64_t ms = 0;
    if (!text || r->rc != 0)
        return fallback_ms;
    if (time_parse_duration(text + less, false, &ms, &why) != 0)
        yaml_reader_fail(r, node, "%s", why.text);
    else if (ms > POLICY_TIME_MAX_MS)
        yaml_reader_fail(r, node, "expected at most 3650d, found \"%s\"", text);
    return less ? -ms : ms;
}

static int64_t opt_positive(
    struct yaml_reader *r, const char *key, int64_t min_ms, int64_t max_ms, int64_t fallback_ms)
{
    const struct yaml_node *node = yaml_opt(r, key);
    int64_t ms = opt_signed(r, key, fallback_ms);
    char least[32], most[32];
    time_format_duration(min_ms, least, sizeof(least));
    time_format_duration(max_ms, most, sizeof(most));
    if (node && (ms < min_ms || ms > max_ms))
        yaml_reader_fail(r, node, "expected %s to %s, found \"%s\"", least, most, node->text);
    return ms;
}

/* Reads the number of cpus that one unit counts as, such as 16 or 0.25; returns millicpus. */
static int64_t opt_mcpu(struct yaml_reader *r, const char *key, int64_t fallback_mcpu)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *text = yaml_opt_str(r, key, 16, NULL);
    int64_t whole = 0, part = 0;
    if (!text || r->rc != 0)
        return fallback_mcpu;
    size_t n = strspn(text, "0123456789"),
           m = text[n] == '.' ? strspn(text + n + 1, "0123456789") : 0;
    bool is_number =
        n > 0 && n <= 4 && (text[n] == '\0' || (m > 0 && m <= 3 && text[n + 1 + m] == '\0'));
    for (size_t k = 0; is_number && k < n; k++)
        whole = whole * 10 + (text[k] - '0');
    for (size_t k = 0; is_number && k < 3; k++)
        part = part * 10 + (k < m ? text[n + 1 + k] - '0' : 0);
    if (!is_number || whole * 1000 + part > POLICY_CPU_MAX_MCPU)
        yaml_reader_fail(r, node,
            "expected how many cpus it counts as, 0 to %d with up to three digits after the point, "
            "found \"%s\"",
            POLICY_CPU_MAX_MCPU / 1000, text);
    return whole * 1000 + part;
}

/* ---- limits ---- */

/* Reads one limit. "none" = unlimited, also where a more general limit exists. */
static void opt_limit(
    struct yaml_reader *r, const char *key, struct policy_limits *l, enum limit_kind kind)
{
    const struct yaml_node *node = yaml_opt(r, key);
    if (!node || r->rc != 0)
        return;
    l->is_set[kind] = true;
    l->max[kind] = LIMIT_NONE;
    const char *text = yaml_opt_str(r, key, 32, "");
    if (r->rc == 0 && !str_eq(text, "none"))
        l->max[kind] = kind == LIMIT_UUSD_H ? yaml_opt_uusd(r, key, 0)
                                            : yaml_opt_i64(r, key, 0, POLICY_LIMIT_MAX, 0);
    if (kind == LIMIT_MCPU && l->max[kind] != LIMIT_NONE)
        l->max[kind] *= MCPU_A_CPU;
}

static void read_limits(struct yaml_reader *r, struct policy_limits *l)
{
    opt_limit(r, "max_running", l, LIMIT_RUNNING);
    opt_limit(r, "max_gpus", l, LIMIT_GPUS);
    opt_limit(r, "max_usd_per_hour", l, LIMIT_UUSD_H);
    opt_limit(r, "max_cpus", l, LIMIT_MCPU);
    opt_limit(r, "max_submitted", l, LIMIT_SUBMITTED);
}

/* Reads a mapping that has only limits. */
static void opt_limits(struct yaml_reader *r, const char *key, struct policy_limits *l)
{
    const struct yaml_node *map = yaml_opt_map(r, key);
    struct yaml_reader of_each;
    if (!map || r->rc != 0)
        return;
    yaml_reader_init(&of_each, r->file, map, r->e);
    read_limits(&of_each, l);
    yaml_reader_finish_in(r, &of_each);
}

/* ---- teams ---- */

static void add_user(struct yaml_reader *r, struct policy_team *t, const struct yaml_node *node,
    const char *name, int64_t shares)
{
    if (!check_name(r, node, name, CORE_NAME_MAX - 1, "a user's name"))
        return;
    for (size_t k = 0; k < t->n_users; k++)
        if (str_eq(t->users[k].name, name)) {
            yaml_reader_fail(r, node, "users: \"%s\" is listed twice", name);
            return;
        }
    struct policy_user *u = &t->users[t->n_users++];
    STR_COPY(u->name, name);
    u->shares = (int32_t)shares;
}

/* Reads a user whose value is a mapping instead of a number of shares. */
static void read_user(struct yaml_reader *root, struct policy_team *t, const struct yaml_node *node)
{
    struct yaml_reader r;
    yaml_reader_init(&r, root->file, node, root->e);
    add_user(&r, t, node, node->key, yaml_opt_i64(&r, "shares", 1, POLICY_SHARES_MAX, 1));
    if (r.rc == 0)
        read_limits(&r, &t->users[t->n_users - 1].limits);
    yaml_reader_finish_in(root, &r);
}

/* Reads a list of names, with one share each, or a mapping of names to shares or to mappings. */
static void read_users(struct yaml_reader *r, struct policy_team *t)
{
    const struct yaml_node *users = yaml_opt(r, "users");
    if (!users || r->rc != 0)
        return;
    if (users->type == YAML_SCALAR || users->n_items > CONFIG_MEMBERS_MAX) {
        yaml_reader_fail(r, users,
            "users: expected a list of names, or a mapping of names to shares, of at most %d",
            CONFIG_MEMBERS_MAX);
        return;
    }
    t->users = mem_array(users->n_items, sizeof(*t->users));
    for (size_t k = 0; k < users->n_items && r->rc == 0; k++) {
        const struct yaml_node *item = users->items[k];
        int64_t shares = 1;
        struct err why;
        if (item->type == YAML_MAPPING && users->type == YAML_MAPPING)
            read_user(r, t, item);
        else if (item->type != YAML_SCALAR)
            yaml_reader_fail(r, item, "users: expected a user's %s",
                users->type == YAML_MAPPING ? "shares" : "name");
        else if (users->type == YAML_MAPPING &&
                 str_to_i64(item->text, 1, POLICY_SHARES_MAX, "shares", &shares, &why) != 0)
            yaml_reader_fail(r, item, "%s", why.text);
        else
            add_user(r, t, item, users->type == YAML_MAPPING ? item->key : item->text, shares);
    }
}

/* Reads the members who lead the team. */
static void read_leads(struct yaml_reader *r, struct policy_team *t)
{
    const struct yaml_node *list = yaml_opt_seq(r, "leads", CONFIG_MEMBERS_MAX);
    char shown[STR_SHOW_MAX];
    for (size_t k = 0; list && k < list->n_items && r->rc == 0; k++) {
        const struct yaml_node *item = list->items[k];
        const char *name = item->type == YAML_SCALAR ? item->text : "";
        size_t i = 0;
        while (i < t->n_users && !str_eq(t->users[i].name, name))
            i++;
        if (i < t->n_users)
            t->users[i].is_lead = true;
        else
            yaml_reader_fail(r, item, "leads: expected a user of this team's users:, found %s",
                item->type == YAML_SCALAR ? str_show(name, shown) : "something else");
    }
}

/* Reads quota and borrow. For a team that may not borrow, the quota is also its limit of cpus. */
static void read_quota(struct yaml_reader *r, struct policy_team *t)
{
    static const char *const words[] = {"false", "true", NULL};
    const struct yaml_node *borrow = yaml_opt(r, "borrow");
    t->quota_mcpu = yaml_opt_i64(r, "quota", 0, POLICY_LIMIT_MAX, 0) * MCPU_A_CPU;
    if (yaml_opt_enum(r, "borrow", words, 1) == 1 || r->rc != 0)
        return;
    if (t->quota_mcpu == 0)
        yaml_reader_fail(r, borrow,
            "a team that has no quota and may not borrow could never run anything: give it a "
            "quota");
    if (!t->limits.is_set[LIMIT_MCPU] || t->limits.max[LIMIT_MCPU] > t->quota_mcpu)
        t->limits.max[LIMIT_MCPU] = t->quota_mcpu;
    t->limits.is_set[LIMIT_MCPU] = true;
}

static void read_team(struct yaml_reader *root, const struct yaml_node *node, struct policy_team *t)
{
    struct yaml_reader r;
    yaml_reader_init(&r, root->file, node, root->e);
    if (check_name(&r, node, node->key, CORE_NAME_MAX - 1, "a team's name"))
        STR_COPY(t->name, node->key);
    t->shares = (int32_t)yaml_opt_i64(&r, "shares", 1, POLICY_SHARES_MAX, 1);
    read_limits(&r, &t->limits);
    read_quota(&r, t);
    opt_limits(&r, "each_user", &t->each_user);
    read_users(&r, t);
    read_leads(&r, t);
    yaml_reader_finish_in(root, &r);
}

static void read_teams(struct yaml_reader *root, struct queue_policy *o)
{
    const struct yaml_node *teams = yaml_opt_map(root, "teams");
    if (!teams || root->rc != 0)
        return;
    if (teams->n_items > CONFIG_TEAMS_MAX) {
        yaml_reader_fail(
            root, teams, "teams: at most %d teams, found %zu", CONFIG_TEAMS_MAX, teams->n_items);
        return;
    }
    o->teams = mem_array(teams->n_items, sizeof(*o->teams));
    for (size_t k = 0; k < teams->n_items && root->rc == 0; k++)
        read_team(root, teams->items[k], &o->teams[o->n_teams++]);
}

/* ---- weights and QOS ---- */

static bool is_team(const struct queue_policy *o, const char *name)
{
    for (size_t k = 0; k < o->n_teams; k++)
        if (str_eq(o->teams[k].name, name))
            return true;
    return false;
}

static void read_priority(struct yaml_reader *root, struct queue_policy *o)
{
    const struct yaml_node *map = yaml_opt_map(root, "priority");
    struct yaml_reader r;
    char shown[STR_SHOW_MAX];
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    o->half_life_ms = opt_positive(
        &r, "half_life", POLICY_HALF_LIFE_MIN_MS, POLICY_HALF_LIFE_MAX_MS, o->half_life_ms);
    o->fair_ms = opt_positive(&r, "fair_share", 0, POLICY_TIME_MAX_MS, o->fair_ms);
    o->age_max_ms = opt_positive(&r, "age_max", 0, POLICY_TIME_MAX_MS, o->age_max_ms);
    o->size_ms = opt_signed(&r, "size", o->size_ms);
    o->gpu_mcpu = opt_mcpu(&r, "cpus_per_gpu", o->gpu_mcpu);
    o->gib_mcpu = opt_mcpu(&r, "cpus_per_gib", o->gib_mcpu);
    o->reserve = (int32_t)yaml_opt_i64(&r, "reserve", 0, POLICY_RESERVE_MAX, o->reserve);
    const struct yaml_node *team = yaml_opt(&r, "default_team");
    const char *name = yaml_opt_str(&r, "default_team", CORE_NAME_MAX - 1, "");
    if (r.rc == 0 && name[0] && !is_team(o, name))
        yaml_reader_fail(&r, team, "there is no team %s in teams:", str_show(name, shown));
    STR_COPY(o->default_team, name);
    yaml_reader_finish_in(root, &r);
}

/* Reads the names of the QOS that QOS number `of` preempts. Call when all are read: they may come
 * later in the file. */
static void read_preempts(
    struct yaml_reader *root, const struct queue_policy *o, size_t of, const struct yaml_node *list)
{
    char shown[STR_SHOW_MAX];
    bits_init(&o->qos[of].preempts, (int32_t)o->n_qos);
    for (size_t k = 0; k < list->n_items; k++) {
        const struct yaml_node *item = list->items[k];
        const struct policy_qos *q = item->type == YAML_SCALAR ? policy_qos(o, item->text) : NULL;
        if (!q)
            yaml_reader_fail(root, item,
                "preempts: expected the name of a QOS of this file, found %s",
                item->type == YAML_SCALAR ? str_show(item->text, shown) : "something else");
        else
            bits_set(&o->qos[of].preempts, (int32_t)(q - o->qos));
    }
}

enum visit_state { NOT_VISITED, ON_PATH, VISITED };

/* Depth-first search from `at`. Returns true if it finds a cycle of preemption, with the path to it
 * in *text. */
static bool finds_cycle(
    const struct queue_policy *o, int32_t at, enum visit_state *seen, struct buf *text)
{
    const struct bits *next = &o->qos[at].preempts;
    seen[at] = ON_PATH;
    for (int32_t i = bits_next(next, 0); i < next->n; i = bits_next(next, i + 1)) {
        size_t before = text->len;
        buf_printf(text, "%s%s", text->len ? ", which preempts " : "", o->qos[i].name);
        if (seen[i] == ON_PATH || (seen[i] == NOT_VISITED && finds_cycle(o, i, seen, text)))
            return true;
        buf_truncate(text, before);
    }
    seen[at] = VISITED;
    return false;
}

/* Refuses cycles: jobs of two QOS that preempt each other would do so endlessly. */
static void check_rounds(
    struct yaml_reader *root, const struct queue_policy *o, const struct yaml_node *map)
{
    enum visit_state seen[CONFIG_QOS_MAX] = {NOT_VISITED};
    struct buf text = {0};
    for (size_t k = 0; k < o->n_qos && root->rc == 0; k++)
        if (seen[k] == NOT_VISITED && finds_cycle(o, (int32_t)k, seen, &text))
            yaml_reader_fail(root, map->items[k],
                "preempts: %s preempts %s: no QOS may preempt itself, directly or through others",
                o->qos[k].name, buf_str(&text));
    buf_deinit(&text);
}

static void read_qos(struct yaml_reader *root, struct queue_policy *o)
{
    const struct yaml_node *map = yaml_opt_map(root, "qos"), *preempts[CONFIG_QOS_MAX];
    if (!map || root->rc != 0)
        return;
    if (map->n_items > CONFIG_QOS_MAX) {
        yaml_reader_fail(
            root, map, "qos: at most %d classes, found %zu", CONFIG_QOS_MAX, map->n_items);
        return;
    }
    o->qos = mem_array(map->n_items, sizeof(*o->qos));
    for (size_t k = 0; k < map->n_items && root->rc == 0; k++) {
        const struct yaml_node *node = map->items[k];
        struct policy_qos *q = &o->qos[o->n_qos++];
        struct yaml_reader r;
        yaml_reader_init(&r, root->file, node, root->e);
        if (check_name(&r, node, node->key, POLICY_QOS_MAX - 1, "the name of a QOS"))
            STR_COPY(q->name, node->key);
        q->boost_ms = opt_signed(&r, "boost", 0);
        preempts[k] = yaml_opt_seq(&r, "preempts", CONFIG_QOS_MAX);
        yaml_reader_finish_in(root, &r);
    }
    for (size_t k = 0; k < o->n_qos && root->rc == 0; k++)
        if (preempts[k])
            read_preempts(root, o, k, preempts[k]);
    check_rounds(root, o, map);
}

void config_read_policy(struct yaml_reader *root, struct queue_policy *ret_policy)
{
    *ret_policy = queue_policy_defaults;
    read_teams(root, ret_policy);
    read_priority(root, ret_policy);
    read_qos(root, ret_policy);
    opt_limits(root, "each_user", &ret_policy->each_user);
    if (!ret_policy->each_user.is_set[LIMIT_SUBMITTED]) {
        ret_policy->each_user.is_set[LIMIT_SUBMITTED] = true;
        ret_policy->each_user.max[LIMIT_SUBMITTED] = SUBMITTED_OF_USER;
    }
}

void config_policy_deinit(struct queue_policy *o)
{
    for (size_t k = 0; k < o->n_teams; k++)
        free(o->teams[k].users);
    for (size_t k = 0; k < o->n_qos; k++)
        bits_deinit(&o->qos[k].preempts);
    size_t pos = 0;
    for (char *teams; o->joined && (teams = smap_next(o->joined, &pos, NULL));)
        free(teams);
    if (o->joined)
        smap_deinit(o->joined);
    free(o->joined);
    free(o->teams);
    free(o->qos);
    *o = (struct queue_policy){0};
}
