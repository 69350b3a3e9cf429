/* SPDX-License-Identifier: Apache-2.0
 *
 * An aws driver in virtual time over a fake HTTP client, with keys from the environment, and the
 * outcome of its last call.
 */
#ifndef BELAY_TESTS_CLOUD_AWS_RIG_H
#define BELAY_TESTS_CLOUD_AWS_RIG_H

#include "base/log.h"
#include "cloud/aws/aws.h"
#include "fake_http.h"
#include "outcome.h"

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */
#define SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define ENDPOINT "http://127.0.0.1:4566/"

/* A reply with spot placement scores: items are SCORE(). */
#define SCORES(items)                                                                              \
    "<GetSpotPlacementScoresResponse><spotPlacementScoreSet>" items                                \
    "</spotPlacementScoreSet></GetSpotPlacementScoresResponse>"
#define SCORE(id, score)                                                                           \
    "<item><region>us-east-1</region><availabilityZoneId>" id "</availabilityZoneId><score>" score \
    "</score></item>"

struct aws_rig {
    struct vtimers vt;
    struct fake_http http;
    struct aws_options options;
    struct cloud_driver *driver;
    struct outcome got;
    int warnings;    /* logged so far */
    char last[2048]; /* line of the log */
};

/* For cmocka: *state is a struct aws_rig. Its options may be changed before aws_rig_create. */
int aws_rig_setup(void **state);
int aws_rig_teardown(void **state);
void aws_rig_create(struct aws_rig *g);
/* No key, role or profile comes from the environment any more. */
void aws_rig_clear_environment(void);

/* Runs until the pending call has completed: once, and never inside the call. */
void aws_rig_finish(struct aws_rig *g, int expected);
/* Request i is signed for that host at that time. A server's check: everything is taken from the
 * received request. */
void aws_rig_assert_signed(
    const struct aws_rig *g, size_t i, const char *host, const char *timestamp);

#endif
