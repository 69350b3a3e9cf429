/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's identity: its private key, which never leaves the node, and what belayd issued for it.
 * Files in the state directory:
 *
 *     key.pem    EC P-256, mode 0600, made once
 *     node.json  struct wire_joined: node number, name, cluster, certificate, store; absent before
 *                the join
 */
#ifndef BELAY_AGENT_IDENTITY_H
#define BELAY_AGENT_IDENTITY_H

#include "base/time.h"
#include "base/wire/wire.h"

struct identity {
    char *dir;
    char *key_pem;
    struct wire_joined node; /* node.node 0 = not joined */
    /* of the certificate, by belayd's clock */
    struct wall issued_at, ends_at;
    struct mono taken_at; /* when this process accepted it; MONO_NONE if an earlier one did */
};

/* Loads the key, creating it if there is none, and the result of an earlier join. A node.json that
 * is damaged or does not fit the key counts as not joined (logged). */
int identity_open(const char *dir, struct identity *ret_id, struct err *e);
void identity_deinit(struct identity *id);

/* Reads both and changes nothing. Returns 0 if the node has a certificate of this cluster that has
 * not expired; ERR_NOT_FOUND if it needs a token to join, which says why: "" in e->text = it never
 * joined; or the error with which identity_open fails. */
int identity_check(const char *dir, const char *ca_pem, struct wall now, struct err *e);

bool identity_is_joined(const struct identity *id);

/* A certificate request for the key, with `name` as its CN. */
int identity_csr(
    const struct identity *id, const char *name, char *ret_pem, size_t size, struct err *e);

/* Stores the result of a join or a renewal durably. ERR_INVALID if the certificate is not for our
 * key. */
int identity_accept(
    struct identity *id, const struct wire_joined *joined, struct mono now, struct err *e);

/* Deletes a refused certificate. The next join creates a new node, or finds the old one by its key.
 */
void identity_forget(struct identity *id);

/* Time left until the certificate should be renewed; 0 = renew now. It is due after 2/3 of its life
 * by either clock, but not within a third of its life after this process accepted it: the wall
 * clock may be wrong. */
int64_t identity_renew_in_ms(const struct identity *id, const struct clock *clock);

#endif
