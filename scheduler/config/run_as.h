/* SPDX-License-Identifier: Apache-2.0
 *
 * `run_as:` of a pool: the accounts on its nodes as which the jobs of users run. Absent: that of
 * the same name. A name: one account for everybody. A mapping: of each user the named one, where
 * "*" is every other user.
 *
 * `create_accounts:` of an elastic pool: accounts, with their numbers, that its machines create at
 * their first boot, where the image does not have them.
 */
#ifndef BELAY_SCHEDULER_CONFIG_RUN_AS_H
#define BELAY_SCHEDULER_CONFIG_RUN_AS_H

#include "base/yaml.h"
#include "scheduler/core/model/rows.h"

#define RUN_AS_USERS_MAX 10000
#define CREATE_ACCOUNTS_MAX 64 /* all are in the user data of each machine */

struct run_as_user {
    char user[CORE_NAME_MAX], account[CORE_NAME_MAX];
};

struct run_as {
    char others[CORE_NAME_MAX]; /* the account of users who are not listed; "" = of the same name */
    struct run_as_user *users;
    size_t n_users;
};

struct new_account {
    char name[CORE_NAME_MAX];
    int64_t uid;
};

struct new_accounts {
    struct new_account *a;
    size_t n;
};

/* Reads the key of the reader's mapping. Deinit *ret_run_as in all cases. */
void config_read_run_as(struct yaml_reader *r, struct run_as *ret_run_as);
void run_as_deinit(struct run_as *o);

/* The account of this user. Borrowed from o or user. */
const char *run_as_account(const struct run_as *o, const char *user);

/* The same for create_accounts. */
void config_read_new_accounts(struct yaml_reader *r, struct new_accounts *ret_accounts);
void new_accounts_deinit(struct new_accounts *o);

#endif
