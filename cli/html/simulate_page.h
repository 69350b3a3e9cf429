/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of belay simulate.
 */
#ifndef BELAY_CLI_HTML_SIMULATE_PAGE_H
#define BELAY_CLI_HTML_SIMULATE_PAGE_H

#include "base/buf.h"
#include "replay/study.h"

struct simulate_page {
    const struct study *studies;
    size_t n;             /* at least 1 */
    const json_t *result; /* of study_json: the plots show it */
    const char *jobs;     /* the log's name */
    uint64_t seed;
    size_t n_never_ran; /* jobs of the log */
    const char *command;
    struct wall now;
};

void simulate_page_write(const struct simulate_page *p, struct buf *out);

#endif
