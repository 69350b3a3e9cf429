/* SPDX-License-Identifier: Apache-2.0
 *
 * walker METHOD STEPS STEP_MS BYTES [GATE]: the job of walks.py. It walks STEPS steps of a
 * generator and prints every step, every acknowledged commit, where it resumed, and its last
 * number. Its state is that number, the step, and BYTES derived from both: an incomplete state, or
 * one of another step, ends it with exit code 9. With GATE it waits before its end until a file of
 * that name exists.
 *
 * METHOD is none, coop (libbelay), or signal (on SIGUSR1 the state is written; then exit code 85).
 */
#include "ckpt/lib/belay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_BAD_STATE 9

struct state {
    int64_t step;
    uint64_t x;
};

static volatile sig_atomic_t wanted;

static uint64_t next(uint64_t x)
{
    return x * 6364136223846793005u + 1442695040888963407u;
}

static void fill(const struct state *s, unsigned char *bytes, size_t n)
{
    uint64_t x = s->x ^ (uint64_t)s->step;
    for (size_t i = 0; i < n; i++) {
        x = next(x);
        bytes[i] = (unsigned char)(x >> 56);
    }
}

static void fail(const char *what)
{
    fprintf(stderr, "walker: %s\n", what);
    exit(EXIT_BAD_STATE);
}

static FILE *open_file(const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", belay_checkpoint_dir(), name);
    FILE *f = fopen(path, mode);
    if (!f)
        fail("a file of the state cannot be opened");
    return f;
}

static void load(struct state *s, unsigned char *bytes, size_t n)
{
    FILE *f = open_file("state", "r");
    if (fscanf(f, "%" SCNd64 " %" SCNu64, &s->step, &s->x) != 2)
        fail("the restored state cannot be read");
    fclose(f);
    unsigned char *found = calloc(1, n + 1);
    f = open_file("bytes", "r");
    fill(s, bytes, n);
    if (!found || fread(found, 1, n + 1, f) != n || memcmp(found, bytes, n) != 0)
        fail("the restored bytes are not those of the restored step");
    fclose(f);
    free(found);
}

static void save(const struct state *s, unsigned char *bytes, size_t n)
{
    FILE *f = open_file("state", "w");
    fprintf(f, "%" PRId64 " %" PRIu64 "\n", s->step, s->x);
    if (fclose(f) != 0)
        fail("the state cannot be written");
    fill(s, bytes, n);
    f = open_file("bytes", "w");
    if (fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        fail("the bytes cannot be written");
}

static void on_signal(int signum)
{
    (void)signum;
    wanted = 1;
}

/* Reports durable commits, because accepted ones are not guaranteed. */
static void tell_durable(void)
{
    static long long told = -1;
    long long step;
    if (!belay_last_durable(&step) || step == told)
        return;
    told = step;
    printf("committed %lld\n", step);
    fflush(stdout);
}

static void commit(const struct state *s, int64_t steps)
{
    char why[256];
    if (belay_commit(s->step, steps, why, sizeof(why)) != 0)
        printf("not committed %" PRId64 ": %s\n", s->step, why);
    fflush(stdout);
    tell_durable();
    if (belay_stopping())
        exit(BELAY_EXIT_CHECKPOINTED);
}

static void save_if_wanted(
    const struct state *s, int64_t steps, const char *method, unsigned char *bytes, size_t n)
{
    if (wanted) {
        save(s, bytes, n);
        exit(BELAY_EXIT_CHECKPOINTED);
    }
    if (strcmp(method, "coop") == 0 && belay_should_checkpoint()) {
        save(s, bytes, n);
        commit(s, steps);
    }
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6)
        return 2;
    const char *method = argv[1];
    int64_t steps = atoll(argv[2]);
    long step_ms = atol(argv[3]);
    size_t n = (size_t)atol(argv[4]);
    const struct timespec pause = {.tv_sec = step_ms / 1000, .tv_nsec = step_ms % 1000 * 1000000};
    unsigned char *bytes = calloc(1, n + 1);
    struct state s = {.x = 1};
    if (strcmp(method, "signal") == 0)
        signal(SIGUSR1, on_signal);
    if (belay_restored())
        load(&s, bytes, n);
    printf("from %" PRId64 "\n", s.step);
    fflush(stdout);
    while (s.step < steps) {
        nanosleep(&pause, NULL);
        s.step++;
        s.x = next(s.x);
        printf("step %" PRId64 " %016" PRIx64 "\n", s.step, s.x);
        fflush(stdout);
        belay_progress(s.step, steps);
        tell_durable();
        save_if_wanted(&s, steps, method, bytes, n);
    }
    while (argc == 6 && access(argv[5], F_OK) != 0) {
        nanosleep(&pause, NULL);
        tell_durable();
        save_if_wanted(&s, steps, method, bytes, n);
    }
    printf("end %016" PRIx64 "\n", s.x);
    free(bytes);
    return 0;
}
