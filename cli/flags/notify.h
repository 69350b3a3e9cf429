/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifications about a job: --mail-type and --mail-user, in sbatch's syntax, and --notify.
 */
#ifndef BELAY_CLI_FLAGS_NOTIFY_H
#define BELAY_CLI_FLAGS_NOTIFY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* "BEGIN,END,FAIL", "ALL", "NONE": sets the job specification's notify.mail_types. Replaces an
 * earlier value. ERR_INVALID. */
int notify_types_parse(const char *value, json_t *spec, struct err *e);
int notify_user_parse(const char *value, json_t *spec, struct err *e);
/* A URL, or "@FILE": the first line of that file. Adds to notify.urls. ERR_INVALID, or the error of
 * reading the file. */
int notify_url_parse(const char *value, json_t *spec, struct err *e);

/* "mail to ann (begin, fail); hooks.example.com" from a job's specification as shown by belayd;
 * nothing if there are no notifications. */
void notify_format(const json_t *spec, const char *user, struct buf *out);

#endif
