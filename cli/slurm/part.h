/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of a step on its own node: its parameters from srun, and what runs there. srun's side of
 * all parts is in step_parts.h.
 */
#ifndef BELAY_CLI_SLURM_PART_H
#define BELAY_CLI_SLURM_PART_H

#include "base/buf.h"
#include "cli/slurm/part_tls.h"
#include "cli/slurm/step_tasks.h"

#define PART_FLAG "--part"
#define PART_BYTES_MAX (8u << 20) /* of a part's parameters: mainly arguments and environment */

/* The parameters of a part. */
struct part {
    char *address, key[PART_KEY_HEX + 1];
    int64_t port;
    struct step step; /* its texts are owned by the members below */
    struct step_node on;
    int64_t *ids;
    char *cwd, *programs, **argv, **env; /* NULL-terminated */
    char *texts[10];
};

/* Pure. part_parse: ERR_INVALID. Call part_deinit in every case. */
void part_format(const struct part *p, struct buf *out);
int part_parse(const char *text, size_t n, struct part *ret_part, struct err *e);
void part_deinit(struct part *p);

/* Sleeps for half to all of *delay_ms, chosen at random, and doubles *delay_ms up to max_ms:
 * between attempts to reach another program. */
void part_pause(int64_t *delay_ms, int64_t max_ms);

/* srun --part. Returns the exit code. */
int part_main(void);

#endif
