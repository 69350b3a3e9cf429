/* SPDX-License-Identifier: Apache-2.0
 *
 * belay slurm PROGRAM [ARGUMENT...]: runs sbatch, squeue and so on where their names are not
 * installed.
 */
#include "cli/slurm/slurm.h"
#include "cli/verbs.h"

#include <stdint.h>

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_slurm, argc, argv, true, NULL, NULL, &a);
    const struct slurm_program *p = rc == 0 && a.n_rest > 0 ? slurm_program_find(a.rest[0]) : NULL;
    if (rc == 0 && (!p || a.json)) {
        cli_error("expected one of sbatch, squeue, scancel, sinfo, sacct, scontrol, srun, salloc, "
                  "sstat, sshare, seff, followed by its own options");
        rc = CLI_USAGE;
    } else if (rc == 0) {
        rc = slurm_program_run(p, a.n_rest, (char **)(uintptr_t)a.rest);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_slurm = {"slurm", "PROGRAM [ARGUMENT...]",
    "run sbatch, squeue, scancel, sinfo, sacct, scontrol, srun, salloc, sstat, sshare or seff", run,
    NULL, false, .examples = "belay slurm squeue --me\n"};
