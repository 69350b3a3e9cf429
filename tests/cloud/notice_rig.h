/* SPDX-License-Identifier: Apache-2.0
 *
 * A notice reader with a fake metadata service, and the notices it has reported.
 */
#ifndef BELAY_TESTS_CLOUD_NOTICE_RIG_H
#define BELAY_TESTS_CLOUD_NOTICE_RIG_H

#include "base/vtimers.h"
#include "cloud/notice.h"
#include "fake_http.h"

#define NOON_MS 1787400000000 /* 2026-08-22T12:00:00Z */

#define NOTICES_MAX 32

struct notice_rig {
    struct vtimers vt;
    struct fake_http http;
    struct notice_reader *reader;
    struct notice notices[NOTICES_MAX];
    size_t n_notices;
    struct notice_identity identity;
    struct err identity_error;
    int identities, looks;
    bool acknowledge_at_notice, stop_at_notice;
};

/* At noon, without a reader. */
struct notice_rig *notice_rig_create(void);
void notice_rig_start(struct notice_rig *g, const char *provider, const char *base_url);
/* Nothing was reported but, once, this identity. */
void notice_rig_check_identity(const struct notice_rig *g, const struct notice_identity *expected);
/* For cmocka: *state is the rig. Lets pending work end. */
int notice_rig_teardown(void **state);

#endif
