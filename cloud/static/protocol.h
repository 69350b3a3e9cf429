/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol between the static driver and `belay-agent host` on a machine (agent/host.h has the
 * other side), and the ssh command that carries it. Pure.
 */
#ifndef BELAY_CLOUD_STATIC_PROTOCOL_H
#define BELAY_CLOUD_STATIC_PROTOCOL_H

#include "cloud/static/static.h"

#define STATIC_REPLY_MAX 65536
#define STATIC_CLAIM_ID 16 /* hex digits */
#define STATIC_HOST_MAX (CLOUD_NAME_MAX - STATIC_CLAIM_ID - 2)
#define STATIC_ARGV_MAX 64

enum static_claim_state { STATIC_STARTING, STATIC_RUNNING, STATIC_ENDED, STATIC_RELEASED };

struct static_claim {
    char id[STATIC_CLAIM_ID + 1]; /* "" if there is no claim */
    char token[CLOUD_TOKEN_MAX];
    char cluster[CLOUD_NAME_MAX];
    enum static_claim_state state;
    struct wall since;
};

struct static_report {
    struct static_claim claim, last; /* the current claim; the one released last */
};

/* Requests; a claim contains a one-use secret. ERR_INVALID: user data too long. */
void static_build_list(struct buf *out);
int static_build_claim(const struct cloud_launch *l, struct buf *out, struct err *e);
void static_build_release(const char *claim_id, struct buf *out);

/* Parses the outcome. For an exit code other than 0: the host's own error kind if it gives one,
 * ERR_UNAVAILABLE for an ssh failure (255), ERR_CONFIG if belay-agent is missing. ERR_INVALID: a
 * malformed or incomplete reply. */
int static_parse_reply(
    const struct runner_result *r, struct static_report *ret_report, struct err *e);

/* "HOST", "HOST:PORT" or "[ADDRESS]:PORT", as in a pool file. *ret_port 0: the pool's default.
 * ERR_CONFIG. */
int static_parse_host(
    const char *text, char ret_name[STATIC_HOST_MAX + 1], int *ret_port, struct err *e);

/* For an instance id "HOST#CLAIM": where the claim begins; NULL if malformed. */
const char *static_claim_of_id(const char *id);

/* Converts a claim on this host to an instance. */
void static_to_instance(
    const char *host, const struct static_claim *c, struct cloud_instance *ret_instance);

/* ssh's argument vector, NULL-terminated. The words point into o, name and the buffers, which the
 * caller keeps alive: command holds the remote command, port the number, known
 * "UserKnownHostsFile=...". */
struct static_ssh {
    const char *argv[STATIC_ARGV_MAX];
    char port[8];
    struct buf command, known;
};
void static_ssh_init(
    struct static_ssh *s, const struct static_options *o, const char *name, int port);
void static_ssh_deinit(struct static_ssh *s);

#endif
