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
    const struct queue_policy *p = &c->policy;
    bool shows_role = viewer->role >= ROLE_OPERATOR || str_eq(viewer->user, user);
    json_t *teams = json_array(), *leads = json_array();
    for (size_t i = 0; i < p->n_teams; i++) {
        const char *team = p->teams[i].name;
        if (policy_is_member(p, team, user))
            json_array_append_new(teams, json_text(team));
        if (policy_is_lead(p, team, user))
            json_array_append_new(leads, json_text(team));
    }
    return json_pack("{s:o,s:o,s:o,s:o}", "user", json_text(user), "role",
        shows_role ? json_string(role_names[config_role_of(&c->access, user)]) : json_null(),
        "teams", teams, "leads", leads);
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
    free(names);
    smap_deinit(&users);
    api_reply_json(x, 200, json_pack("{s:o}", "users", rows));
}

void api_users_list(struct request *q)
{
    api_read_model(q, reply_users, 0);
}
