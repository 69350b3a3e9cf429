/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job names a secret that it gets: [OWNER/]NAME[=VARIABLE|=file]. Without a variable it is a
 * file of that name in $BELAY_SECRETS_DIR. Without an owner it is the job's own user's. Pure.
 */
#ifndef BELAY_JOB_SECRET_REF_H
#define BELAY_JOB_SECRET_REF_H

#include "base/err.h"
#include "job/spec.h"
#include <stdbool.h>

#define SECRET_REFS_MAX 16 /* of one job */
#define SECRET_NAME_MAX 64 /* with its NUL */
#define SECRET_BYTES_MIN 8 /* a shorter value cannot be masked in output */
#define SECRET_BYTES_MAX (64u << 10)
#define SECRET_REF_TEXT_MAX 256

struct secret_ref {
    char owner[JOB_NAME_MAX]; /* "" = the job's user */
    char name[SECRET_NAME_MAX];
    char variable[SECRET_NAME_MAX]; /* "" = a file */
};

/* ERR_INVALID unless it is a secret's name: letters, digits, '_', '-' and '.', the first one a
 * letter, a digit or '_'. It may become the name of a file. */
int secret_name_check(const char *name, struct err *e);
/* ERR_INVALID. */
int secret_ref_parse(const char *text, struct secret_ref *ret, struct err *e);

#endif
