/* SPDX-License-Identifier: Apache-2.0
 *
 * Formatting into fixed arrays.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_TEXT_H
#define BELAY_SCHEDULER_CORE_MODEL_TEXT_H

#include "scheduler/core/model/types.h"

#include <stdarg.h>
#include <stddef.h>

struct job_row;
struct model;

void text_format(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void text_vformat(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* A job's number as users name it: "42", or "42_7" for task 7 of array 42, whose own id is never
 * shown. */
struct job_ref {
    char s[36];
};
struct job_ref job_ref(const struct job_row *r);
/* Of a job that may have left the model: then its id. */
struct job_ref job_ref_of(const struct model *m, int64_t job);
/* Adds it to a list such as "3,5_2,8", if it fits. */
void job_ref_add(char *list, size_t size, struct job_ref ref);

/* Where a run begins: "BEGUN from the beginning", "RESUMED from checkpoint 3.7" or, if its progress
 * is known, "RESUMED at step 40 from checkpoint 3.7". */
void text_origin(struct ckpt_ref from, int64_t progress, const char *begun, const char *resumed,
    char *out, size_t size);

#endif
