/* SPDX-License-Identifier: Apache-2.0
 *
 * belay requeue JOB...
 */
#include "cli/change.h"
#include "cli/verbs.h"

static int run(int argc, const char **argv)
{
    return change_jobs(&verb_requeue, "requeue", "is being saved and queued again", argc, argv);
}

const struct verb verb_requeue = {"requeue", "[OPTION...] JOB...",
    "save jobs, stop them and queue them again", run, change_requeue, false,
    .examples = "belay requeue 42\n"};
