/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is told of what becomes of a job: --mail-type and --mail-user, as sbatch has them, and
 * --notify.
 */
#ifndef BELAY_CLI_FLAGS_NOTIFY_H
#define BELAY_CLI_FLAGS_NOTIFY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* "BEGIN,END,FAIL", "ALL", "NONE": the job specification's notify.mail_types. Replaces what an
 * earlier one said. ERR_INVALID. */
int notify_types_parse(const char *value, json_t *spec, struct err *e);
int notify_user_parse(const char *value, json_t *spec, struct err *e);
/* A URL, or "@FILE": the first line of that file. Adds to notify.urls. ERR_INVALID, or why the file
 * cannot be read. */
int notify_url_parse(const char *value, json_t *spec, struct err *e);

/* "mail to ann (begin, fail); hooks.example.com": of a job's specification as belayd shows it;
 * nothing if nobody is told. */
void notify_format(const json_t *spec, const char *user, struct buf *out);

#endif
