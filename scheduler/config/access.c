/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles, visibility and rates of requests (see access.h).
 */
#include "scheduler/config/access.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 1000000

const char *const role_names[] = {[ROLE_VIEWER] = "viewer",
    [ROLE_MEMBER] = "member",
    [ROLE_LEAD] = "lead",
    [ROLE_OPERATOR] = "operator",
    [ROLE_ADMIN] = "admin",
    [ROLES] = NULL};

const char *const visibility_names[] = {
    [VISIBILITY_OWNER] = "owner", [VISIBILITY_TEAM] = "team", [VISIBILITY_ALL] = "all", NULL};

static int compare_users(const void *a, const void *b)
{
    return strcmp(((const struct config_user *)a)->name, ((const struct config_user *)b)->name);
}

static struct config_user *find_user(const struct config_access *o, const char *name)
{
    struct config_user key = {.role = ROLE_VIEWER};
    STR_COPY(key.name, name);
    if (o->n_users == 0)
        return NULL;
    return bsearch(&key, o->users, o->n_users, sizeof(*o->users), compare_users);
}

/* Returns the index of the text in names, -1 if it is none of them. */
static int index_of(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (str_eq(names[i], text))
            return i;
    return -1;
}

static void read_user(
    struct yaml_reader *root, const struct yaml_node *node, struct config_user *ret_user)
{
    char shown[STR_SHOW_MAX];
    const char *text = node->type == YAML_SCALAR ? node->text : "";
    int role = index_of(role_names, text);
    if (!str_is_name(node->key, CORE_NAME_MAX - 1))
        yaml_reader_fail(root, node,
            "users: %s is not a user's name: letters, digits, '.', '_', '-', at most %d",
            str_show(node->key, shown), CORE_NAME_MAX - 1);
    else if (role == ROLE_LEAD)
        yaml_reader_fail(root, node,
            "users: a lead leads certain teams: list the user in leads: of each team, in teams:");
    else if (role < 0)
        yaml_reader_fail(root, node,
            "users: expected the role viewer, member, operator or admin, found %s",
            node->type == YAML_SCALAR ? str_show(text, shown) : "something else");
    if (root->rc != 0)
        return;
    STR_COPY(ret_user->name, node->key);
    ret_user->role = (enum role)role;
}

static void read_users(struct yaml_reader *r, struct config_access *o)
{
    const struct yaml_node *map = yaml_opt_map(r, "users");
    if (!map || r->rc != 0)
        return;
    if (map->n_items > CONFIG_USERS_MAX) {
        yaml_reader_fail(r, map, "users: at most %d, found %zu", CONFIG_USERS_MAX, map->n_items);
        return;
    }
    o->users = mem_array(map->n_items, sizeof(*o->users));
    for (size_t k = 0; k < map->n_items && r->rc == 0; k++)
        read_user(r, map->items[k], &o->users[o->n_users++]);
}

/* Adds the leads of teams, sorts, and leaves of each name one entry, with the highest role. */
static void add_leads(struct config_access *o, const struct queue_policy *policy)
{
    size_t n_leads = 0, n = 0;
    for (size_t k = 0; k < policy->n_teams; k++)
        for (size_t i = 0; i < policy->teams[k].n_users; i++)
            n_leads += policy->teams[k].users[i].is_lead;
    if (o->n_users + n_leads == 0)
        return;
    o->users = mem_resize(o->users, o->n_users + n_leads, sizeof(*o->users));
    for (size_t k = 0; k < policy->n_teams; k++)
        for (size_t i = 0; i < policy->teams[k].n_users; i++) {
            const struct policy_user *u = &policy->teams[k].users[i];
            if (!u->is_lead)
                continue;
            o->users[o->n_users] = (struct config_user){.role = ROLE_LEAD};
            STR_COPY(o->users[o->n_users++].name, u->name);
        }
    qsort(o->users, o->n_users, sizeof(*o->users), compare_users);
    for (size_t k = 0; k < o->n_users; k++) {
        if (n == 0 || !str_eq(o->users[n - 1].name, o->users[k].name))
            o->users[n++] = o->users[k];
        else if (o->users[n - 1].role < o->users[k].role)
            o->users[n - 1].role = o->users[k].role;
    }
    o->n_users = n;
}

/* Reads a number of requests, or "none" for 0. */
static int64_t opt_requests(struct yaml_reader *r, const char *key, int64_t fallback)
{
    const struct yaml_node *node = yaml_opt(r, key);
    if (node && node->type == YAML_SCALAR && str_eq(node->text, "none"))
        return 0;
    return yaml_opt_i64(r, key, 1, REQUESTS_MAX, fallback);
}

void config_read_access(
    struct yaml_reader *r, const struct queue_policy *policy, struct config_access *ret_access)
{
    static const char *const default_roles[] = {"viewer", "member", NULL};
    struct config_access o = {0};
    o.visibility =
        (enum visibility)yaml_opt_enum(r, "visibility", visibility_names, VISIBILITY_TEAM);
    o.default_role = (enum role)yaml_opt_enum(r, "default_role", default_roles, ROLE_MEMBER);
    read_users(r, &o);
    add_leads(&o, policy);
    o.requests_per_second = opt_requests(r, "requests_per_second", 100);
    o.requests_burst = yaml_opt_i64(r, "requests_burst", 1, REQUESTS_MAX, 1000);
    *ret_access = o;
}

void config_access_deinit(struct config_access *o)
{
    free(o->users);
    *o = (struct config_access){0};
}

enum role config_role_of(const struct config_access *o, const char *user)
{
    const struct config_user *u = find_user(o, user);
    return u ? u->role : o->default_role;
}
