/* SPDX-License-Identifier: Apache-2.0
 *
 * Lambda's front over regions in virtual time, without processes, and an HTTP client for it:
 * us-west-2 and us-east-1 with gpu_1x_a10 (capacity for two, and for none), us-west-2 also with
 * gpu_8x_h100_sxm5; a quota of 3, a boot time of 1 s, the keys "first" and "second", an SSH key
 * "ops", an image "stack", a file system "data" in us-west-2; Lambda's own rate limits.
 */
#ifndef BELAY_TESTS_EMULATOR_LAMBDA_BENCH_H
#define BELAY_TESTS_EMULATOR_LAMBDA_BENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/http.h"
#include "base/vtimers.h"
#include "emulator/config.h"
#include "emulator/lambda/cloud.h"
#include "tests/emulator/front_answer.h"

#define BENCH_START_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define BENCH_BOOT_MS 1000
#define BENCH_ENDPOINT "http://127.0.0.1:1"
#define BENCH_LAUNCH "/api/v1/instance-operations/launch"
#define BENCH_TERMINATE "/api/v1/instance-operations/terminate"

struct lambda_bench {
    /* must be first; replies arrive a millisecond later, with faults as over a connection */
    struct http_client http;
    struct vtimers vt;
    struct emulator_config config;
    struct region region;
    struct journal journal;
    struct lambda_cloud *cloud;
    struct front_setup setup;
    const char *authorization; /* of bench_call; may be NULL */
    struct front_answer last;
    size_t n_calls;     /* to the client */
    size_t n_throttled; /* throttled calls among them */
};

void bench_start(struct lambda_bench *b);
void bench_stop(struct lambda_bench *b);
void bench_advance(struct lambda_bench *b, int64_t ms);
/* Removes the rate limits. */
void bench_lift_limits(struct lambda_bench *b);
/* Applies an event, as POST /events. */
void bench_event(struct lambda_bench *b, const char *json);

/* Calls the API; returns the status. body may be NULL. */
int bench_call(struct lambda_bench *b, const char *method, const char *target, const char *body);
/* bench_call, failing the test unless the reply has that status and its body contains text. */
void bench_expect(struct lambda_bench *b, const char *method, const char *target, const char *body,
    int status, const char *text);
/* The text at a path such as "data/0/status" of the last reply; "" if absent. */
const char *bench_text(const struct lambda_bench *b, const char *path);

/* The body of a launch in us-west-2 of gpu_1x_a10; more: further members, ",\"name\":\"x\"" or "".
 * Borrowed until the next call. */
const char *bench_body(const char *more);
/* Launches one and lets it boot. */
struct instance *bench_run(struct lambda_bench *b, const char *more);

#endif
