/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cancel JOB...
 */
#include "cli/change.h"
#include "cli/verbs.h"

static int run(int argc, const char **argv)
{
    return change_jobs(&verb_cancel, "cancel", "is being cancelled", argc, argv);
}

const struct verb verb_cancel = {"cancel", "[OPTION...] JOB...", "end jobs", run, NULL, false};
