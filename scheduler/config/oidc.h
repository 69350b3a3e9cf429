/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `oidc:` of belayd's configuration: the identity provider at which users sign in, and
 * what its groups mean here. scheduler/oidc uses it.
 */
#ifndef BELAY_SCHEDULER_CONFIG_OIDC_H
#define BELAY_SCHEDULER_CONFIG_OIDC_H

#include "base/yaml.h"
#include "scheduler/config/access.h"

#define CONFIG_OIDC_TEXT_MAX 1024
#define CONFIG_OIDC_GROUPS_MAX 1000
#define CONFIG_OIDC_SCOPES_MAX 16

/* What membership of a group gives: a role, or a team, to lead if the role is ROLE_LEAD. */
struct config_oidc_group {
    char *group;
    char team[CORE_NAME_MAX]; /* "": a role */
    enum role role;
};

struct config_oidc {
    char *issuer; /* NULL: nobody signs in; then all other members are NULL or 0 */
    char *client_id, *audience;
    char *client_secret_file; /* NULL: a public client */
    char *ca_file;            /* trusted for the provider; NULL: the system's */
    char *user_claim, *email_domain, *groups_claim;
    char *scopes;          /* separated by blanks */
    int64_t token_ms;      /* lifetime of what a sign-in gives */
    bool requires_a_group; /* who is in none of the groups may not sign in */
    struct config_oidc_group *teams, *roles;
    size_t n_teams, n_roles;
};

/* Reads the section; call it while the caller's reader is at the file's root, after the policy.
 * Marks the teams that groups give (policy_team.by_groups). Deinit *ret_oidc in all cases. */
void config_read_oidc(
    struct yaml_reader *root, struct queue_policy *policy, struct config_oidc *ret_oidc);
void config_oidc_deinit(struct config_oidc *o);

#endif
