/* SPDX-License-Identifier: Apache-2.0
 *
 * libbelay: how a program takes part in its checkpoints. Plain C99 and POSIX, no dependencies, nothing to
 * initialise. Outside belay (no BELAY_CONTROL_DIR in the environment) every call is harmless and says
 * "nothing to do", so a program needs no second way to run.
 *
 *     load from belay_checkpoint_dir() if belay_restored();
 *     for (step = ...; step < total; step++) {
 *         work();
 *         belay_progress(step, total);
 *         if (belay_should_checkpoint()) {
 *             write the state to belay_checkpoint_dir();
 *             if (belay_commit(step, total, error, sizeof(error)))
 *                 fprintf(stderr, "not saved, going on: %s\n", error);
 *             if (belay_stopping())
 *                 exit(BELAY_EXIT_CHECKPOINTED);
 *         }
 *     }
 *
 * The functions may be called from one thread at a time. docs/checkpoints.md is the whole contract.
 */
#ifndef BELAY_H
#define BELAY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The exit code that means "checkpointed: continue me elsewhere". */
#define BELAY_EXIT_CHECKPOINTED 85

/* 1 if belay_checkpoint_dir() holds a checkpoint to resume from. */
int belay_restored(void);

/* Where the state is written and, when restored, found. NULL outside belay. Valid for the life of the
 * process. */
const char *belay_checkpoint_dir(void);

/* 1 if belay wants a checkpoint: write one and call belay_commit. Cheap enough for every step: the question
 * is put to the file system at most once in 20 ms. */
int belay_should_checkpoint(void);

/* Seconds until the node is taken away or the save must be done, whichever is first; never negative; INFINITY
 * while there is no deadline. */
double belay_seconds_left(void);

/* Makes what is in belay_checkpoint_dir() the checkpoint, and waits until it is stored: the directory must
 * not change meanwhile. progress and total count the program's own steps (-1: unknown). Returns 0 when it is
 * durable, or outside belay. -1: it is not, the checkpoint before still stands, and error (may be NULL) says
 * why; going on is right. */
int belay_commit(long long progress, long long total, char *error, size_t error_size);

/* Tells belay how far the program is (total -1: unknown). At most 5 times a second reach the disk; the last
 * one, done
 * == total, always does. 0, or -1 with errno. */
int belay_progress(long long done, long long total);

/* 1 once the last belay_commit served a notice or an eviction: nothing more will be kept on this node, and
 * the program should exit with BELAY_EXIT_CHECKPOINTED. */
int belay_stopping(void);

#ifdef __cplusplus
}
#endif

#endif
