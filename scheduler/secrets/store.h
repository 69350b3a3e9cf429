/* SPDX-License-Identifier: Apache-2.0
 *
 * Users' secrets: who may use one, and what a job gets. A secret is named by its owner and its
 * name; its value is sealed (seal.h), bound to both.
 *
 * A job may use its user's own secrets, and those granted to its user ("user:NAME"), its team
 * ("team:NAME", a team of the configuration) or the pool it runs in ("pool:NAME"). This is decided
 * at the submit, and again when an attempt starts: a secret that was removed, or whose grant was,
 * is not given to a job that waits.
 */
#ifndef BELAY_SCHEDULER_SECRETS_STORE_H
#define BELAY_SCHEDULER_SECRETS_STORE_H

#include "base/json.h"
#include "base/wire/wire.h"
#include "db/db.h"
#include "job/secret_ref.h"
#include "scheduler/secrets/seal.h"

#define SECRETS_PER_OWNER_MAX 100
#define SECRET_GRANTS_MAX 32

/* The job that wants secrets. */
struct secret_user {
    const char *user, *team;
    const char *pools; /* list (base/names.h) of the pools it may run in; "" = any */
};

/* Seals a value for its row. */
char *secret_seal(
    const struct sealer *s, const char *owner, const char *name, const void *value, size_t n);

/* Appends the value of a row to ret, which the caller wipes. Errors as seal_open. */
int secret_open(
    const struct sealer *s, const struct secret_row *row, struct buf *ret, struct err *e);

/* Whether the row's grants, or its ownership, let this job use it. */
bool secret_is_granted(
    const struct secret_row *row, const struct queue_policy *policy, const struct secret_user *u);

/* Adds or removes one grant. ERR_INVALID: too many, or not in a known form; ERR_NOT_FOUND: it has
 * no such grant. */
int secret_grant(struct secret_row *row, const char *grant, bool adds, struct err *e);

/* Checks the references of launch (member "secrets") for a submit. ERR_INVALID. */
int secrets_check(struct db_reader *r, const struct queue_policy *policy, const char *launch_json,
    const struct secret_user *u, struct err *e);

/* Adds the values of the same references to x->of_job. ERR_INVALID: one was removed or is no longer
 * granted, or cannot be opened; the attempt can never have it. Others: the database cannot be
 * read. */
int secrets_give(struct db_reader *r, const struct sealer *s, const struct queue_policy *policy,
    const char *launch_json, const struct secret_user *u, struct wire_secrets *x, struct err *e);

#endif
