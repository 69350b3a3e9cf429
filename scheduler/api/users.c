/* SPDX-License-Identifier: Apache-2.0
 *
 * The users whom belayd knows: those of its configuration, those who have signed in, and those who
 * have had jobs, with their teams. Roles are shown to operators, and to each user their own.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* The map has keys only. */
static void add(struct smap *users, const char *user)
{
    if (user[0] && !smap_get(users, user))
        smap_put(users, user, users);
}

static void add_all(struct smap *users, const struct config *c, const struct model *m)
{
    const struct queue_policy *p = &c->policy;
    const char *user;
    size_t pos = 0;
    for (size_t i = 0; i < c->access.n_users; i++)
        add(users, c->access.users[i].name);
    for (size_t i = 0; i < p->n_teams; i++)
        for (size_t k = 0; k < p->teams[i].n_users; k++)
            add(users, p->teams[i].users[k].name);
    while (p->joined && smap_next(p->joined, &pos, &user))
        add(users, user);
    LIST_FOREACH (model_teams(m), lt)
        LIST_FOREACH (&LIST_ENTRY(lt, struct team, in_all)->accounts, la)
            add(users, LIST_ENTRY(la, struct account, in_team)->row.user);
}

static json_t *user_json(const struct config *c, const struct caller *viewer, const char *user)
{
    bool shows_role = viewer->role >= ROLE_OPERATOR || str_eq(viewer->user, user);
    return json_pack("{s:o,s:o,s:[],s:[]}", "user", json_text(user), "role",
        shows_role ? json_string(role_names[config_role_of(&c->access, user)]) : json_null(),
        "teams", "leads");
}

static void add_team(json_t *row, const char *key, const char *team)
{
    json_array_append_new(json_object_get(row, key), json_text(team));
}

/* Adds the teams of the users, both sorted by name. A user without any is of the default team. */
static void add_teams(const struct queue_policy *p, const char *const *users, json_t *rows)
{
    bool has_default = policy_is_member(p, p->default_team, "");
    struct policy_membership *all;
    size_t n = policy_memberships(p, &all), k = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        size_t from = k;
        for (; k < n && str_eq(all[k].user, users[i]); k++) {
            add_team(row, "teams", p->teams[all[k].team].name);
            if (all[k].leads)
                add_team(row, "leads", p->teams[all[k].team].name);
        }
        if (k == from && has_default)
            add_team(row, "teams", p->default_team);
    }
    free(all);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void reply_users(const struct api *api, struct http_exchange *x, const struct caller *viewer,
    const struct model *m, int64_t arg)
{
    struct smap users = {0};
    size_t pos = 0, n = 0;
    (void)arg;
    add_all(&users, api->o.config, m);
    const char **names = mem_array(smap_size(&users) + 1, sizeof(*names));
    while (smap_next(&users, &pos, &names[n]))
        n++;
    qsort(names, n, sizeof(*names), by_name);
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, user_json(api->o.config, viewer, names[i]));
    add_teams(&api->o.config->policy, names, rows);
    free(names);
    smap_deinit(&users);
    api_reply_json(x, 200, json_pack("{s:o}", "users", rows));
}

void api_users_list(struct request *q)
{
    api_read_model(q, reply_users, 0);
}
