/* SPDX-License-Identifier: Apache-2.0
 *
 * A job in C that takes part in checkpoints: it walks N steps of a linear congruential generator
 * and prints the last number, which shows whether a step was lost or done twice.
 *
 *     cc -o counter counter.c $(pkg-config --cflags --libs belay)
 *     belay submit --checkpoint coop --wrap './counter 200000000'
 */
#include <belay.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS_PER_ROUND 100000

struct state {
    long long step;
    uint64_t x;
};

static FILE *open_state(const char *mode)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/state", belay_checkpoint_dir());
    return fopen(path, mode);
}

static int load(struct state *s)
{
    FILE *f = open_state("r");
    int ok = f && fscanf(f, "%lld %" SCNu64, &s->step, &s->x) == 2;

    if (f)
        fclose(f);
    return ok ? 0 : -1;
}

static int save(const struct state *s)
{
    FILE *f = open_state("w");
    int ok = f && fprintf(f, "%lld %" PRIu64 "\n", s->step, s->x) > 0;

    if (f && fclose(f))
        ok = 0;
    return ok ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct state s = {.x = 1};
    long long total = argc > 1 ? atoll(argv[1]) : 200000000;
    char error[256];

    if (belay_restored()) {
        if (load(&s)) {
            fprintf(stderr, "counter: the restored state cannot be read\n");
            return 1;
        }
    }
    printf("%s step %lld\n", belay_restored() ? "resumed at" : "from", s.step);
    fflush(stdout);
    while (s.step < total) {
        for (int i = 0; i < STEPS_PER_ROUND && s.step < total; i++, s.step++)
            s.x = s.x * 6364136223846793005u + 1442695040888963407u;
        belay_progress(s.step, total);
        if (!belay_should_checkpoint())
            continue;
        if (save(&s))
            fprintf(stderr, "counter: the state cannot be written, continuing\n");
        else if (belay_commit(s.step, total, error, sizeof(error)))
            fprintf(stderr, "counter: not saved, continuing: %s\n", error);
        if (belay_stopping())
            return BELAY_EXIT_CHECKPOINTED;
    }
    printf("step %lld x %" PRIu64 "\n", s.step, s.x);
    return 0;
}
