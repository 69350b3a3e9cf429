/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's errors name the member of the request ("spec.pool: there is no pool ..."). Users wrote a
 * flag, a directive or a key. Converts one into the other, by the table of a job's options. Pure.
 */
#ifndef BELAY_CLI_FLAGS_API_WORDS_H
#define BELAY_CLI_FLAGS_API_WORDS_H

#include "base/buf.h"
#include "base/json.h"

/* Adds the text with "--pool" for "spec.pool", "pool" for "changes.pool", and "--zone" for
 * "cron.zone". Members that no flag sets stay as they are. */
void api_words_to_flags(const char *text, struct buf *out);

/* Adds a text of api_words_to_flags with the flags as they were written (directives_take_written):
 * "train.sh:4: -p: there is no pool ..." for "--pool: there is no pool ...". */
void api_words_as_written(const char *text, const json_t *written, struct buf *out);

#endif
