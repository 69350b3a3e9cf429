/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of belayd's configuration about people: the role of each user (`users:`,
 * `default_role:`, `leads:` of a team), who sees other users' jobs (`visibility:`), and how many
 * requests a user may make (`requests_per_second:`, `requests_burst:`). scheduler/access applies
 * them.
 */
#ifndef BELAY_SCHEDULER_CONFIG_ACCESS_H
#define BELAY_SCHEDULER_CONFIG_ACCESS_H

#include "base/yaml.h"
#include "scheduler/core/queue/policy.h"

#define CONFIG_USERS_MAX 10000

/* In ascending order of what they may do. A lead leads the teams that name them as such. */
enum role { ROLE_VIEWER, ROLE_MEMBER, ROLE_LEAD, ROLE_OPERATOR, ROLE_ADMIN, ROLES };
/* "viewer" "member" "lead" "operator" "admin"; NULL-terminated */
extern const char *const role_names[];

/* Who may read what another user's job is and does. */
enum visibility {
    VISIBILITY_OWNER, /* only who may also change it */
    VISIBILITY_TEAM,  /* also the members of the job's team */
    VISIBILITY_ALL    /* everybody */
};
extern const char *const visibility_names[]; /* NULL-terminated */

struct config_user {
    char name[CORE_NAME_MAX];
    enum role role;
};

struct config_access {
    enum visibility visibility;
    enum role default_role;
    struct config_user *users; /* by name, ascending; leads of teams are among them */
    size_t n_users;
    int64_t requests_per_second; /* of a user; 0 = unlimited */
    int64_t requests_burst;      /* how many a user may make at once, after a pause */
};

/* Reads the keys; call it while the caller's reader is at the file's root. policy is already read.
 * Deinit *ret_access in all cases. */
void config_read_access(
    struct yaml_reader *r, const struct queue_policy *policy, struct config_access *ret_access);
void config_access_deinit(struct config_access *o);

/* The user's role: that of `users:`, at least lead if the user leads a team, else the default. */
enum role config_role_of(const struct config_access *o, const char *user);

#endif
