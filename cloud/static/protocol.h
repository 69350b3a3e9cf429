/* SPDX-License-Identifier: Apache-2.0
 *
 * What the static driver says to `belay-agent host` on a machine (agent/host.h has the other side),
 * and the ssh that carries it. Pure.
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
    char id[STATIC_CLAIM_ID + 1]; /* "": there is none */
    char token[CLOUD_TOKEN_MAX];
    char cluster[CLOUD_NAME_MAX];
    enum static_claim_state state;
    struct wall since;
};

struct static_report {
    struct static_claim claim, last; /* now; the one released last */
};

/* Requests; a claim holds a one-use secret. ERR_INVALID: user data that is too long. */
void static_build_list(struct buf *out);
int static_build_claim(const struct cloud_launch *l, struct buf *out, struct err *e);
void static_build_release(const char *claim_id, struct buf *out);

/* What came back. An exit code that is not 0, with the host's words: its own kind of error where it
 * says one, ERR_UNAVAILABLE for ssh's own (255), ERR_CONFIG when there is no belay-agent.
 * ERR_INVALID: a reply that is none, or not whole. */
int static_parse_reply(
    const struct runner_result *r, struct static_report *ret_report, struct err *e);

/* "HOST", "HOST:PORT" or "[ADDRESS]:PORT", as a pool file has it. port 0: the pool's.
 * ERR_CONFIG. */
int static_parse_host(
    const char *text, char ret_name[STATIC_HOST_MAX + 1], int *ret_port, struct err *e);

/* "HOST#CLAIM", the id of an instance: where the claim's part begins; NULL: not of that form. */
const char *static_claim_of_id(const char *id);

/* The row of an instance for a claim of this host. */
void static_to_instance(
    const char *host, const struct static_claim *c, struct cloud_instance *ret_instance);

/* ssh's argument vector, NULL-terminated. The words point into o, name and the buffers, which the
 * caller keeps: command gets the remote one, port its number, known "UserKnownHostsFile=...". */
struct static_ssh {
    const char *argv[STATIC_ARGV_MAX];
    char port[8];
    struct buf command, known;
};
void static_ssh_init(
    struct static_ssh *s, const struct static_options *o, const char *name, int port);
void static_ssh_deinit(struct static_ssh *s);

#endif
