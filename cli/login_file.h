/* SPDX-License-Identifier: Apache-2.0
 *
 * What `belay login` keeps: for each server the token, how to renew it, and the cluster's CA. The
 * file is $XDG_CONFIG_HOME/belay/logins.json (default ~/.config/belay), mode 0600, and replaced
 * atomically. Who changes it holds its lock, because a renewal ends the token before it.
 */
#ifndef BELAY_CLI_LOGIN_FILE_H
#define BELAY_CLI_LOGIN_FILE_H

#include "base/json.h"

struct login {
    char *server, *token, *ca_pem;
    char *refresh; /* NULL: it cannot be renewed */
    char *user;
    int64_t renew_at_ms; /* by this machine's clock; from then on it is renewed before a call */
};

/* server NULL: the server of the last sign-in. ERR_NOT_FOUND: there is none. Deinit *ret in all
 * cases. */
int login_file_find(const char *server, struct login *ret, struct err *e);
/* Replaces, or adds, the login of its server. The caller holds the lock. */
int login_file_put(const struct login *l, struct err *e);
int login_file_remove(const char *server, struct err *e);
/* Creates the directory. Waits some seconds at most. *ret_fd is closed to unlock. */
int login_file_lock(int *ret_fd, struct err *e);

/* Takes token, refresh, user and times from belayd's answer to a sign-in. ERR_INVALID. */
int login_read_reply(struct login *l, const json_t *reply, struct err *e);
void login_deinit(struct login *l); /* wipes the secrets */

#endif
