/* SPDX-License-Identifier: Apache-2.0
 *
 * `belay checkpoint commit [--progress N] [--total N]` with libbelay only, for examples/counter.sh.
 */
#include "ckpt/lib/belay.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    long long progress = -1, total = -1;
    char error[256];

    if (argc < 3 || strcmp(argv[1], "checkpoint") != 0 || strcmp(argv[2], "commit") != 0)
        return 2;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--progress") == 0)
            progress = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--total") == 0)
            total = atoll(argv[i + 1]);
    }
    if (belay_commit(progress, total, error, sizeof(error))) {
        fprintf(stderr, "belay: not saved: %s\n", error);
        return 1;
    }
    return belay_stopping() ? BELAY_EXIT_CHECKPOINTED : 0;
}
