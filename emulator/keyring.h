/* SPDX-License-Identifier: Apache-2.0
 *
 * Access keys, and the check of a request's Signature V4 against them. Static keys come from the
 * configuration; temporary ones are made for instances with a role, and for sessions of roles that
 * were assumed. Secrets never leave this file but through the replies of keyring_role and
 * keyring_session.
 */
#ifndef BELAY_EMULATOR_KEYRING_H
#define BELAY_EMULATOR_KEYRING_H

#include "base/err.h"
#include "base/time.h"
#include "cloud/aws/sigv4.h"
#include "emulator/policy.h"

#define KEYRING_ACCESS_MAX 129
#define KEYRING_SECRET_MAX 129
#define KEYRING_SKEW_MS SECONDS_MS(15 * 60)

struct keyring_key {
    char access[KEYRING_ACCESS_MAX];
    char secret[KEYRING_SECRET_MAX];
    char token[KEYRING_SECRET_MAX]; /* "": none is needed */
    char owner[64];                 /* the instance or session it was made for; "": static */
    struct wall made, expires;      /* WALL_NONE: never */
    bool is_session;
    struct policy policy; /* of a session; no statements: it has none */
};

struct keyring {
    struct keyring_key *keys;
    size_t n;
};

void keyring_deinit(struct keyring *k); /* wipes them */
void keyring_add(struct keyring *k, const char *access, const char *secret);

/* Temporary keys for an instance, valid for ttl_ms; the same ones until a third of that is left.
 * Borrowed until the next call. */
const struct keyring_key *keyring_role(
    struct keyring *k, const char *owner, int64_t ttl_ms, struct wall now);

/* Keys of a session, valid for ttl_ms from now. Takes the policy. Borrowed until the next call. */
const struct keyring_key *keyring_session(
    struct keyring *k, const char *name, struct policy *policy, int64_t ttl_ms, struct wall now);

/* Adds the sessions that have not ended to list, without their secrets. */
void keyring_describe(const struct keyring *k, struct wall now, json_t *list);

struct keyring_request {
    const char *method, *target; /* as sent */
    const struct sigv4_header *headers;
    size_t n_headers;
    const void *body;
    size_t body_len;
    const char *service;     /* "s3", "pricing", "sts"; NULL: "ec2" */
    const char *body_sha256; /* what the signature is of, in hex; NULL: the body's */
};

/* NULL: the request is signed by a key we know, for this region and the service, now. Otherwise the
 * service's error code, and *ret_text its message, NULL for the code's usual one. */
const char *keyring_check(const struct keyring *k, const struct keyring_request *r,
    const char *region, struct wall now, struct err *ret_text);

/* Whose request it is that keyring_check let pass. Borrowed until the next call that adds one. */
const struct keyring_key *keyring_caller(const struct keyring *k, const struct keyring_request *r);

#endif
