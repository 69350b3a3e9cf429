/* SPDX-License-Identifier: Apache-2.0
 *
 * Access keys, and checking a request's Signature V4 against them. Static keys come from the
 * configuration; temporary ones are made for instances with a role, and for sessions of assumed
 * roles. Secrets leave this file only through the results of keyring_role and keyring_session.
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
    char token[KEYRING_SECRET_MAX]; /* "" if not required */
    /* the instance or session it was made for; "" for a static key */
    char owner[64];
    struct wall made, expires; /* WALL_NONE = never */
    bool is_session;
    struct policy policy; /* of a session; no statements if it has none */
};

struct keyring {
    struct keyring_key *keys;
    size_t n;
};

void keyring_deinit(struct keyring *k); /* wipes the keys */
void keyring_add(struct keyring *k, const char *access, const char *secret);

/* Temporary keys for an instance, valid for ttl_ms; the same keys are returned until a third of
 * that is left. Borrowed until the next call. */
const struct keyring_key *keyring_role(
    struct keyring *k, const char *owner, int64_t ttl_ms, struct wall now);

/* Keys of a session, valid for ttl_ms from now. Takes over the policy. Borrowed until the next
 * call. */
const struct keyring_key *keyring_session(
    struct keyring *k, const char *name, struct policy *policy, int64_t ttl_ms, struct wall now);

/* Adds the live sessions to list, without their secrets. */
void keyring_describe(const struct keyring *k, struct wall now, json_t *list);

struct keyring_request {
    const char *method, *target; /* as sent */
    const struct http_header *headers;
    size_t n_headers;
    const void *body;
    size_t body_len;
    const char *service;     /* "s3", "pricing", "sts", "servicequotas"; NULL for "ec2" */
    const char *body_sha256; /* the signed hash, in hex; NULL for the body's */
};

/* NULL if the request is signed by a known key, for this region and service, now. Otherwise the
 * service's error code, and its message in *ret_text, NULL for the code's usual one. */
const char *keyring_check(const struct keyring *k, const struct keyring_request *r,
    const char *region, struct wall now, struct err *ret_text);

/* The key of a request accepted by keyring_check. Borrowed until the next call that adds a key. */
const struct keyring_key *keyring_caller(const struct keyring *k, const struct keyring_request *r);

#endif
