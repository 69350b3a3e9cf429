/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `oidc:` (see oidc.h).
 */
#include "scheduler/config/oidc.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/readers.h"
#include <stdlib.h>
#include <string.h>

#define GROUP_MAX 256
#define TOKEN_MIN_MS SECONDS_MS(60)
#define TOKEN_MAX_MS SECONDS_MS(86400)

static char *opt_text(struct yaml_reader *r, const char *key, const char *fallback)
{
    return mem_strdup(yaml_opt_str(r, key, CONFIG_OIDC_TEXT_MAX, fallback));
}

static char *opt_path(struct yaml_reader *r, const char *key)
{
    const struct yaml_node *node = yaml_opt(r, key);
    char *path = opt_text(r, key, NULL), shown[STR_SHOW_MAX];
    if (path && path[0] != '/')
        yaml_reader_fail(r, node, "expected an absolute path, found %s", str_show(path, shown));
    return path;
}

/* "openid" is always one of them. */
static char *read_scopes(struct yaml_reader *r)
{
    const struct yaml_node *seq = yaml_opt_seq(r, "scopes", CONFIG_OIDC_SCOPES_MAX);
    struct buf out = {0};
    buf_adds(&out, seq ? "openid" : "openid profile email offline_access");
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        const char *text = item->type == YAML_SCALAR ? item->text : "";
        char shown[STR_SHOW_MAX];
        if (!text[0] || strlen(text) > GROUP_MAX || !config_is_plain(text))
            yaml_reader_fail(
                r, item, "scopes: expected a word such as groups, found %s", str_show(text, shown));
        else if (!str_eq(text, "openid"))
            buf_printf(&out, " %s", text);
    }
    return buf_take(&out);
}

/* ---- groups ---- */

static struct policy_team *find_team(struct queue_policy *policy, const char *name)
{
    for (size_t k = 0; k < policy->n_teams; k++)
        if (str_eq(policy->teams[k].name, name))
            return &policy->teams[k];
    return NULL;
}

static void read_team(struct yaml_reader *r, const char *key, const struct yaml_node *node,
    struct queue_policy *policy, struct config_oidc_group *g)
{
    char shown[STR_SHOW_MAX];
    const char *name = node->type == YAML_SCALAR ? node->text : "";
    struct policy_team *team = find_team(policy, name);
    if (!team) {
        yaml_reader_fail(r, node, "%s: %s is not a team of teams: at the top of the file", key,
            str_show(name, shown));
        return;
    }
    STR_COPY(g->team, team->name);
    team->by_groups = true;
}

static void read_role(
    struct yaml_reader *r, const struct yaml_node *node, struct config_oidc_group *g)
{
    char shown[STR_SHOW_MAX];
    const char *text = node->type == YAML_SCALAR ? node->text : "";
    for (int role = ROLE_VIEWER; role < ROLES; role++)
        if (role != ROLE_LEAD && str_eq(role_names[role], text)) {
            g->role = (enum role)role;
            return;
        }
    yaml_reader_fail(r, node, "roles: expected viewer, member, operator or admin, found %s%s",
        str_show(text, shown), str_eq(text, "lead") ? "; leads: gives a group a team to lead" : "");
}

/* Appends the entries of a mapping. policy NULL: the values are roles, else teams. */
static void read_groups(struct yaml_reader *r, const char *key, struct queue_policy *policy,
    struct config_oidc_group **ret_groups, size_t *ret_n)
{
    const struct yaml_node *map = config_opt_entries(r, key, CONFIG_OIDC_GROUPS_MAX);
    if (!map || map->n_items == 0)
        return;
    *ret_groups = mem_resize(*ret_groups, *ret_n + map->n_items, sizeof(**ret_groups));
    for (size_t k = 0; k < map->n_items && r->rc == 0; k++) {
        const struct yaml_node *node = map->items[k];
        struct config_oidc_group *g = &(*ret_groups)[(*ret_n)++];
        *g = (struct config_oidc_group){.group = mem_strdup(node->key)};
        if (strlen(node->key) > GROUP_MAX)
            yaml_reader_fail(r, node, "%s: a group's name has at most %d bytes", key, GROUP_MAX);
        else if (policy)
            read_team(r, key, node, policy, g);
        else
            read_role(r, node, g);
    }
}

/* ---- the section ---- */

static void check(struct yaml_reader *r, const struct config_oidc *o)
{
    if (r->rc != 0)
        return;
    if (!o->issuer || !o->client_id)
        yaml_reader_fail(r, NULL, "issuer and client_id are needed");
    else if (str_ends(o->issuer, "/.well-known/openid-configuration"))
        yaml_reader_fail(r, NULL,
            "issuer: expected the issuer itself, without /.well-known/openid-configuration");
    else if (str_eq(o->user_claim, "email") && !o->email_domain)
        yaml_reader_fail(r, NULL,
            "user_claim: email needs email_domain: a user is the part before the @, which is "
            "unique in one domain only");
    else if ((o->n_teams || o->n_roles) && !o->groups_claim)
        yaml_reader_fail(
            r, NULL, "teams, leads and roles need groups_claim: the claim that has groups");
}

static void read_section(struct yaml_reader *r, struct queue_policy *policy, struct config_oidc *o)
{
    static const char *const yes_no[] = {"false", "true", NULL};
    o->issuer =
        mem_strdup(config_opt_url(r, "issuer", CONFIG_OIDC_TEXT_MAX, "https://", NULL, NULL));
    o->client_id = opt_text(r, "client_id", NULL);
    o->audience = opt_text(r, "audience", o->client_id);
    o->client_secret_file = opt_path(r, "client_secret_file");
    o->ca_file = opt_path(r, "ca_file");
    o->user_claim = opt_text(r, "user_claim", "preferred_username");
    o->email_domain = opt_text(r, "email_domain", NULL);
    o->groups_claim = opt_text(r, "groups_claim", NULL);
    o->scopes = read_scopes(r);
    o->token_ms =
        config_opt_time_in(r, "token_lifetime", TOKEN_MIN_MS, TOKEN_MAX_MS, SECONDS_MS(3600));
    read_groups(r, "teams", policy, &o->teams, &o->n_teams);
    const size_t n_members = o->n_teams;
    read_groups(r, "leads", policy, &o->teams, &o->n_teams);
    for (size_t i = n_members; i < o->n_teams; i++)
        o->teams[i].role = ROLE_LEAD;
    read_groups(r, "roles", NULL, &o->roles, &o->n_roles);
    o->requires_a_group =
        yaml_opt_enum(r, "require_group", yes_no, o->n_teams + o->n_roles > 0) == 1;
    check(r, o);
}

void config_read_oidc(
    struct yaml_reader *root, struct queue_policy *policy, struct config_oidc *ret_oidc)
{
    const struct yaml_node *map = yaml_opt_map(root, "oidc");
    struct yaml_reader r;
    *ret_oidc = (struct config_oidc){0};
    if (!map || root->rc != 0)
        return;
    yaml_reader_init(&r, root->file, map, root->e);
    read_section(&r, policy, ret_oidc);
    yaml_reader_finish_in(root, &r);
    policy->joined = mem_alloc(sizeof(*policy->joined));
}

static void free_groups(struct config_oidc_group *groups, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(groups[i].group);
    free(groups);
}

void config_oidc_deinit(struct config_oidc *o)
{
    free(o->issuer);
    free(o->client_id);
    free(o->audience);
    free(o->client_secret_file);
    free(o->ca_file);
    free(o->user_claim);
    free(o->email_domain);
    free(o->groups_claim);
    free(o->scopes);
    free_groups(o->teams, o->n_teams);
    free_groups(o->roles, o->n_roles);
    *o = (struct config_oidc){0};
}
