/* SPDX-License-Identifier: Apache-2.0
 *
 * Who we are at slurmrestd: a user and their JSON Web Token, from a file, and where slurmrestd is.
 * Pure.
 */
#ifndef BELAY_CLOUD_SLURM_LOGIN_H
#define BELAY_CLOUD_SLURM_LOGIN_H

#include "base/err.h"
#include "base/http.h"
#include "base/time.h"
#include "cloud/slurm/api.h"

#define SLURM_JWT_MAX 4096
#define SLURM_LOGIN_FILE_MAX 8192

/* A secret: wipe it with explicit_bzero. */
struct slurm_login {
    char user[SLURM_USER_MAX];
    char token[SLURM_JWT_MAX + 1];
    struct wall expires_at; /* WALL_NONE if the token does not say */
};

/* The n bytes of a file with lines NAME=VALUE, as `scontrol token` prints them: SLURM_JWT, and
 * SLURM_USER where it is not the token's claim "sun". Empty lines and lines that begin with # are
 * skipped. ERR_CONFIG; the error never shows the input. */
int slurm_parse_login(const char *text, size_t n, struct slurm_login *ret_login, struct err *e);

/* ERR_NO_CREDENTIALS if the token has expired: slurmrestd reports that like an outage. */
int slurm_check_login(const struct slurm_login *login, struct wall now, struct err *e);

struct slurm_endpoint {
    char *url;                            /* without the last '/'; owned */
    char unix_socket[HTTP_UNIX_PATH_MAX]; /* "" for TCP */
};

/* https://HOST[:PORT], http://LOOPBACK[:PORT] or unix:/PATH; free ret_endpoint->url. ERR_CONFIG. */
int slurm_parse_endpoint(const char *text, struct slurm_endpoint *ret_endpoint, struct err *e);

#endif
