/* SPDX-License-Identifier: Apache-2.0
 *
 * libbelay: lets a program take part in its checkpoints. Plain C99 and POSIX, no dependencies, no
 * initialisation. Outside belay (no BELAY_CONTROL_DIR in the environment) every call is a no-op
 * that reports "nothing to do", so a program needs no second code path.
 *
 *     load from belay_checkpoint_dir() if belay_restored();
 *     for (step = ...; step < total; step++) {
 *         work();
 *         belay_progress(step, total);
 *         if (belay_should_checkpoint()) {
 *             write the state to belay_checkpoint_dir();
 *             if (belay_commit(step, total, error, sizeof(error)))
 *                 fprintf(stderr, "not saved, continuing: %s\n", error);
 *             if (belay_stopping())
 *                 exit(BELAY_EXIT_CHECKPOINTED);
 *         }
 *     }
 *
 * The functions may be called from one thread at a time. The full contract is
 * docs/reference/checkpoints.md.
 */
#ifndef BELAY_H
#define BELAY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Exit code: checkpointed, continue this job elsewhere. */
#define BELAY_EXIT_CHECKPOINTED 85

/* 1 if belay_checkpoint_dir() holds a checkpoint to resume from. */
int belay_restored(void);

/* The directory where the program writes its state and, when restored, finds it. NULL outside
 * belay. Valid for the life of the process. */
const char *belay_checkpoint_dir(void);

/* In a job of several nodes: the number of nodes that made the restored checkpoint; otherwise 1. 0
 * = nothing was restored. */
int belay_restored_ranks(void);

/* Writes to path, and returns, the directory of that rank's part of the restored checkpoint. If the
 * number of ranks has changed, every rank's part is available, so that the program can redistribute
 * it; otherwise only this node's own. NULL if it is not available or path is too small. */
const char *belay_restored_dir(int rank, char *path, size_t size);

/* 1 if belay wants a checkpoint: write one and call belay_commit. Cheap enough for every step: it
 * accesses the file system at most once in 20 ms. */
int belay_should_checkpoint(void);

/* Seconds until the node is taken away or the save must be done, whichever is first; never
 * negative; INFINITY while there is no deadline. */
double belay_seconds_left(void);

/* Commits the content of belay_checkpoint_dir() as the checkpoint. The directory must not change
 * until this returns. progress and total count the program's own steps (-1 = unknown). Returns 0
 * outside belay, and otherwise as soon as the checkpoint is accepted: a snapshot of the directory
 * exists, and is stored while the program continues. Then new files may be written and renamed into
 * place; a file of over 1 MiB must not be written to in place before it is durable (on most file
 * systems: docs/reference/checkpoints.md), or the checkpoint is lost. When the node will be given
 * up (a notice, an eviction), it returns when the checkpoint is durable. In a job of several nodes
 * either all ranks report their progress, or none does and the commit is a barrier: it returns when
 * the checkpoint of all ranks is durable. Returns -1 if the checkpoint is not saved: the previous
 * one is kept, error (may be NULL) says why, and the program should continue. */
int belay_commit(long long progress, long long total, char *error, size_t error_size);

/* As belay_commit, but returns 0 when the checkpoint is durable. */
int belay_commit_wait(long long progress, long long total, char *error, size_t error_size);

/* Waits until the last commit of this process is durable, and returns 0. Returns -1 if it was lost,
 * or is not durable after 600 seconds (or BELAY_COMMIT_TIMEOUT_S); error (may be NULL) says
 * which. */
int belay_wait(char *error, size_t error_size);

/* 1 if a commit of this process is known to be durable; *progress (may be NULL) is then the
 * progress of the newest such commit. For a program that must keep data until its checkpoint is
 * durable (consumed input, for example). */
int belay_last_durable(long long *progress);

/* Reports the program's progress (total -1 = unknown). Written to disk at most 5 times a second;
 * the last one, done == total, always is. Returns 0, or -1 and errno. */
int belay_progress(long long done, long long total);

/* Reports that this rank has waited so many more seconds for the others (in a barrier, an
 * all-reduce): `belay advise` then says which rank the others wait for, or that all wait for the
 * network. One process per node should report. Written to disk at most once a second. No-op outside
 * belay and for values that are not above 0. Returns 0, or -1 and errno. */
int belay_waited(double seconds);

/* 1 once the last belay_commit served a notice or an eviction: no later checkpoint will be kept on
 * this node, and the program should exit with BELAY_EXIT_CHECKPOINTED. */
int belay_stopping(void);

#ifdef __cplusplus
}
#endif

#endif
