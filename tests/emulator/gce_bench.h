/* SPDX-License-Identifier: Apache-2.0
 *
 * Google's front over a region in virtual time, without processes: two zones of two types, capacity
 * for two spot instances in each, a quota of 5; the first zone also has N1 machines with T4 and
 * V100, with quotas of these; service accounts agent@ (admin), viewer@ and nobody@; 20 requests of
 * a kind a minute by default. Only agent@ has a signing key, because making one takes longer than
 * most tests.
 */
#ifndef BELAY_TESTS_EMULATOR_GCE_BENCH_H
#define BELAY_TESTS_EMULATOR_GCE_BENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "emulator/config.h"
#include "emulator/gce/gce.h"
#include "tests/emulator/front_answer.h"

#define BENCH_START_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define BENCH_SCOPE "https://www.googleapis.com/auth/cloud-platform"
#define BENCH_ROOT "/compute/v1/projects/my-project/"
#define BENCH_ZONE BENCH_ROOT "zones/us-central1-a/"
#define BENCH_AGENT "agent@my-project.iam.gserviceaccount.com"

struct gce_bench {
    struct emulator_config config;
    struct region region;
    struct journal journal;
    struct gce *gce;
    struct front_setup setup;
    struct wall now;
    char token[GCE_TOKEN_MAX]; /* agent@'s; sent with every call */
    struct front_answer last;
};

void bench_start(struct gce_bench *b, int64_t rate_limit);
void bench_stop(struct gce_bench *b);
void bench_advance(struct gce_bench *b, int64_t ms);

/* A token of an account, with or without a scope. */
void bench_token(struct gce_bench *b, const char *email, bool has_scope, char out[GCE_TOKEN_MAX]);

/* Calls the API; returns the status. */
int bench_call(struct gce_bench *b, const char *method, const char *target, const char *body);
/* bench_call, failing the test unless the reply has that status and its body contains text. */
void bench_expect(struct gce_bench *b, const char *method, const char *target, const char *body,
    int status, const char *text);
/* The text at a path such as "error/errors/0/code" of the last reply; "" if absent. */
const char *bench_text(const struct gce_bench *b, const char *path);

/* The body of an insert: a spot instance in us-central1-a; more: further members, ",\"labels\":{}"
 * or "". Borrowed until the next call. */
const char *bench_body(const char *name, const char *more);
/* Inserts one and lets it boot. */
struct instance *bench_run(struct gce_bench *b, const char *name, const char *more);

/* Queries the metadata server of an instance. */
int bench_metadata(struct gce_bench *b, struct instance *i, const char *target);

#endif
