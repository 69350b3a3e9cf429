/* SPDX-License-Identifier: Apache-2.0
 *
 * `run_as:` of a pool: the accounts on its nodes as which the jobs of users run. Absent: that of
 * the same name. A name: one account for everybody. A mapping: of each user the named one, where
 * "*" is every other user.
 */
#ifndef BELAY_SCHEDULER_CONFIG_RUN_AS_H
#define BELAY_SCHEDULER_CONFIG_RUN_AS_H

#include "base/yaml.h"
#include "scheduler/core/model/rows.h"

#define RUN_AS_USERS_MAX 10000

struct run_as_user {
    char user[CORE_NAME_MAX], account[CORE_NAME_MAX];
};

struct run_as {
    char others[CORE_NAME_MAX]; /* the account of users who are not listed; "" = of the same name */
    struct run_as_user *users;
    size_t n_users;
};

/* Reads the key of the reader's mapping. Deinit *ret_run_as in all cases. */
void config_read_run_as(struct yaml_reader *r, struct run_as *ret_run_as);
void run_as_deinit(struct run_as *o);

/* The account of this user. Borrowed from o or user. */
const char *run_as_account(const struct run_as *o, const char *user);

#endif
