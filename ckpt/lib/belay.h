/* SPDX-License-Identifier: Apache-2.0
 *
 * libbelay: how a program takes part in its checkpoints. Plain C99 and POSIX, no dependencies,
 * nothing to initialise. Outside belay (no BELAY_CONTROL_DIR in the environment) every call is
 * harmless and says "nothing to do", so a program needs no second way to run.
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
 * The functions may be called from one thread at a time. docs/reference/checkpoints.md is the whole
 * contract.
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

/* Where the state is written and, when restored, found. NULL outside belay. Valid for the life of
 * the process. */
const char *belay_checkpoint_dir(void);

/* In a job of several nodes: how many of them made the checkpoint that was restored; else 1. 0:
 * nothing was restored. */
int belay_restored_ranks(void);

/* The directory with what that rank has saved of the restored checkpoint, put into path, which is
 * returned. Every rank's is here if they were more or fewer than there are now, for a program to
 * share it out anew; else only this node's own. NULL: it is not here, or size bytes are too few for
 * it. */
const char *belay_restored_dir(int rank, char *path, size_t size);

/* 1 if belay wants a checkpoint: write one and call belay_commit. Cheap enough for every step: the
 * question is put to the file system at most once in 20 ms. */
int belay_should_checkpoint(void);

/* Seconds until the node is taken away or the save must be done, whichever is first; never
 * negative; INFINITY while there is no deadline. */
double belay_seconds_left(void);

/* Makes what is in belay_checkpoint_dir() the checkpoint: the directory must not change until this
 * returns. progress and total count the program's own steps (-1 = unknown). Returns 0 outside of
 * belay, and as soon as the checkpoint is accepted: a snapshot of the directory stands, and is
 * stored while the program goes on. Then new files may be written and renamed into place; a file of
 * over 1 MiB must not be written to in place before it is durable (on most file systems:
 * docs/reference/checkpoints.md), or the checkpoint is lost. When belay is to let go of the node (a
 * notice, an eviction), it returns when it is durable. In a job of several nodes all ranks tell
 * their progress, or none does and the commit is a barrier: it returns when the checkpoint of all
 * is durable. -1: it is not saved, the checkpoint before still stands, and error (may be NULL) says
 * why; going on is right. */
int belay_commit(long long progress, long long total, char *error, size_t error_size);

/* As belay_commit, but returns 0 when the checkpoint is durable. */
int belay_commit_wait(long long progress, long long total, char *error, size_t error_size);

/* Waits until the last commit of this process is durable: 0. -1: it was lost, or is not durable yet
 * after 600 seconds (or BELAY_COMMIT_TIMEOUT_S), and error (may be NULL) says which. */
int belay_wait(char *error, size_t error_size);

/* 1 if a commit of this process is known to be durable: *progress (may be NULL) is then what was
 * given to the newest such one. A program that may not forget what it needs before that (input it
 * has consumed, say) asks here. */
int belay_last_durable(long long *progress);

/* Tells belay how far the program is (total -1 = unknown). At most 5 times a second reach the disk;
 * the last one, done == total, always does. 0, or -1 with errno. */
int belay_progress(long long done, long long total);

/* Tells belay that this rank has waited so many seconds more for the others (in a barrier, an
 * all-reduce): `belay advise` then says which rank is waited for, or that all wait for the network.
 * Of the processes of one node, one tells. At most once a second it reaches the disk. Outside
 * belay, and for what is not above 0, nothing. 0, or -1 with errno. */
int belay_waited(double seconds);

/* 1 once the last belay_commit served a notice or an eviction: nothing more will be kept on this
 * node, and the program should exit with BELAY_EXIT_CHECKPOINTED. */
int belay_stopping(void);

#ifdef __cplusplus
}
#endif

#endif
