/* SPDX-License-Identifier: Apache-2.0
 *
 * belay hold JOB..., belay release JOB...
 */
#include "cli/change.h"
#include "cli/verbs.h"

static int run_hold(int argc, const char **argv)
{
    return change_jobs(
        &verb_hold, "hold", "is held: it is not started until it is released", argc, argv);
}

static int run_release(int argc, const char **argv)
{
    return change_jobs(&verb_release, "release", "is released", argc, argv);
}

const struct verb verb_hold = {"hold", "[OPTION...] JOB...",
    "keep jobs from starting; running jobs continue", run_hold, NULL, false,
    .examples = "belay hold 42 43\n"};
const struct verb verb_release = {"release", "[OPTION...] JOB...", "let held jobs be started again",
    run_release, change_from_scratch, false,
    .examples = "belay release 42\n"
                "belay release --from-scratch 42\n"};
