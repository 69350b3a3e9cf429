/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome of a driver's call: completions for its operations, whose ctx is a struct outcome.
 */
#ifndef BELAY_TESTS_CLOUD_OUTCOME_H
#define BELAY_TESTS_CLOUD_OUTCOME_H

#include "base/vtimers.h"
#include "cloud/driver.h"

#define OUTCOME_ROWS_MAX 8
#define OUTCOME_CONSOLE_MAX 256
#define OUTCOME_REFUSED_MAX 256

/* Zeroed: nothing has completed yet. */
struct outcome {
    int completions;
    struct err e; /* of the last; ERR_NONE = success */
    struct cloud_instance instance;
    struct cloud_instance list[OUTCOME_ROWS_MAX];
    struct cloud_price prices[OUTCOME_ROWS_MAX];
    struct cloud_volume volumes[OUTCOME_ROWS_MAX];
    struct cloud_quota quotas[OUTCOME_ROWS_MAX];
    size_t n;                          /* of the last listing, of any kind */
    char refused[OUTCOME_REFUSED_MAX]; /* "ZONE TYPE KIND;" of each place, as reported */
    char console[OUTCOME_CONSOLE_MAX];
};

void outcome_launch(void *ctx, const struct err *e, const struct cloud_instance *i);
/* Of a place in a launch by fleet: before the launch completes. */
void outcome_refused(void *ctx, const struct cloud_target *p, const struct err *e);
void outcome_list(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n);
void outcome_done(void *ctx, const struct err *e);
void outcome_prices(void *ctx, const struct err *e, const struct cloud_price *list, size_t n);
void outcome_console(void *ctx, const struct err *e, const char *text);
void outcome_quotas(void *ctx, const struct err *e, const struct cloud_quota *list, size_t n);
void outcome_volumes(void *ctx, const struct err *e, const struct cloud_volume *list, size_t n);

/* Runs until the pending call has completed: once, never inside the call, and as an error of this
 * kind (0: without error). */
void outcome_finish(struct outcome *o, struct vtimers *vt, int expected);

#endif
