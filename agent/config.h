/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's configuration file, strict YAML:
 *
 *     server: https://belayd.lab:7443
 *     ca: |                      # the only certificate authority trusted
 *       -----BEGIN CERTIFICATE-----
 *     token: abc...              # one-use; or token_file: FILE, deleted after the join
 *     dir: /var/lib/belay-agent  # keys and tasks
 *     provider: aws              # azure, or none (default): source of reclaim notices
 *     metadata: http://169.254.169.254
 *     name: node7                # default: the host's
 *     cpus: 8                    # default: measured
 *     memory: 16G
 *     orphan_timeout: 1h         # elastic nodes: save, stop and power off after this long
 *                                # without belayd
 *     shutdown_timeout: 120s     # for saves when the machine shuts down; below TimeoutStopSec
 *     sigterm_notice: 30s        # SIGTERM announces that the node goes in this time; default: it
 *                                # restarts the agent, or announces a shutdown of the machine
 *     notice_reserve: 20s        # default: at a notice of a reclaim jobs save and stop at once
 *     power_off: /sbin/poweroff  # default: the agent just exits
 *     prolog: /etc/belay/prolog  # run before each job's program; epilog: after it
 *     hook_timeout: 1m           # of either
 *     criu: /usr/sbin/criu       # default: searched for; no: not used
 *     gpus: 2                    # default: counted
 *     gpu_model: a100            # default: as the driver says
 *     gpu_memory: 40G            # of one GPU; default: as the driver says
 *     features: [avx512, ib]     # that jobs may ask for with --constraint
 *     resources: {lego: 4}       # that jobs may ask for with --gres lego:2
 *     metadata_guard: required   # best-effort, off: whether only root reaches the metadata service
 *     task_pids: 32768           # processes and threads of one task; default: limits.h
 *     private_ipc: yes           # each task has its own shared memory and /dev/shm
 *     no_new_privs: yes          # set-uid programs give tasks nothing
 *     hide_processes: tasks      # of users from each other; no, yes: on the whole node
 *     system_users: [root]       # default: no jobs of root and of system users
 *     telemetry: {look: 5s, every: 60s}   # sampling of tasks and GPUs; every 0s: off
 */
#ifndef BELAY_AGENT_CONFIG_H
#define BELAY_AGENT_CONFIG_H

#include "job/counts.h"
#include "base/err.h"
#include "job/feature.h"
#include "job/gpu.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a root agent guards the machine's metadata service (node_guard.h). */
enum metadata_guard {
    METADATA_OPEN,
    METADATA_GUARDED,       /* guard if possible; log if not */
    METADATA_GUARD_REQUIRED /* refuse to start if it cannot be guarded */
};

/* Whether a root agent hides other users' processes in /proc. */
enum process_hiding {
    PROCESSES_SHOWN,
    PROCESSES_HIDDEN_IN_TASKS,
    PROCESSES_HIDDEN /* on the whole node, tasks included */
};

struct config {
    char server[512]; /* without a slash at the end */
    char *ca_pem;
    char token[129];   /* "" = none, or not yet read from token_file */
    char *token_file;  /* NULL if none */
    char *dir;         /* absolute */
    char provider[16]; /* one of notice_provider_names */
    char metadata[512];
    char name[64];
    int64_t cpus, memory_mib; /* 0 = measured */
    int64_t gpus;             /* -1 = counted */
    struct gpu_kind gpu;      /* fields that are "" or 0 come from the driver */
    /* sampling and reporting intervals of telemetry; telemetry_ms 0 = no reports */
    int64_t sample_ms, telemetry_ms;
    int64_t orphan_timeout_ms;
    int64_t shutdown_timeout_ms; /* time for saves during a shutdown of the machine */
    /* SIGTERM is a notice of a reclaim in this time: another scheduler sends it. 0 = it is not. */
    int64_t sigterm_notice_ms;
    /* At a notice tasks work on until this long, and the time of their saves, before the deadline
     * (agent_notice.c). 0 = they stop at once. */
    int64_t notice_reserve_ms;
    char *power_off;                  /* NULL if none */
    char *prolog, *epilog;            /* absolute paths of programs (task_hooks.h); NULL if none */
    int64_t hook_timeout_ms;          /* of either */
    char criu[256];                   /* absolute path, "no", or "" = search for it */
    char features[FEATURES_TEXT_MAX]; /* job/feature.h */
    enum metadata_guard metadata_guard;
    bool no_new_privs; /* of tasks */
    bool private_ipc;  /* of tasks */
    int64_t task_pids; /* processes and threads of one */
    enum process_hiding hiding;
    /* users below UID_MIN, root included, whose jobs a root agent runs; a set like features */
    char system_users[FEATURES_TEXT_MAX];
    /* job/counts.h; in a running agent, GPU slices included */
    char resources[COUNTS_TEXT_MAX];
};

/* Reads and checks the file. It holds a secret, so others must not be able to read it.
 * BELAY_NODE_DIR, BELAY_METADATA, BELAY_NODE_GPUS and BELAY_NODE_TELEMETRY ("LOOK EVERY") in the
 * environment override dir, metadata, gpus and telemetry; users named in BELAY_NODE_SYSTEM_USERS
 * are added to system_users. */
int config_read(const char *path, struct config *ret_config, struct err *e);
/* Same for a file's n bytes of text; `file` is its name in errors. ERR_INVALID with file and
 * line. */
int config_parse(
    const char *file, const char *text, size_t n, struct config *ret_config, struct err *e);
void config_deinit(struct config *c);

/* Whether the node came from a provider, which can take it back. Such a node ends itself when
 * belayd no longer knows it. */
bool config_is_elastic(const struct config *c);

/* The join token, from the configuration or its token_file. ERR_NOT_FOUND: none is configured. */
int config_token(const struct config *c, char *ret_token, size_t size, struct err *e);

/* After a join: deletes the token_file, since its token is used up. */
void config_forget_token(const struct config *c);

#endif
