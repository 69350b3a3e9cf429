/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of lists: `labels.job = 17`, `(status = RUNNING) (name : job-*)`, `a = 1 AND (b != 2 OR c
 * > 3)`. In the older `name eq 'job-.*'` the expression may contain `.`, `.*` and `\`. Adjacent
 * terms are joined by AND.
 */
#ifndef BELAY_EMULATOR_GCE_FILTER_H
#define BELAY_EMULATOR_GCE_FILTER_H

#include "base/json.h"

#define GCE_FILTER_MAX 2048 /* bytes */
#define GCE_FILTER_TERMS_MAX 50
#define GCE_FILTER_DEPTH_MAX 8

/* Whether the object matches. ERR_INVALID: the text is not a filter; the same for every object. */
int gce_filter_matches(const char *filter, const json_t *object, bool *ret_fits, struct err *e);

#endif
