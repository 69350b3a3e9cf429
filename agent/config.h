/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's configuration file, strict YAML:
 *
 *     server: https://belayd.lab:7443
 *     ca: |                      # the only certificate authority that is trusted
 *       -----BEGIN CERTIFICATE-----
 *     token: abc...              # one-use; or token_file: FILE, deleted after the join
 *     dir: /var/lib/belay-agent  # keys and tasks
 *     provider: aws              # azure, or none (default): where notices of a reclaim are read
 *     metadata: http://169.254.169.254
 *     name: node7                # default: the host's
 *     cpus: 8                    # default: measured
 *     memory: 16G
 *     orphan_timeout: 1h         # elastic nodes: save, stop and power off after this long
 *                                # without belayd
 *     shutdown_timeout: 120s     # for saves when the machine shuts down; below TimeoutStopSec
 *     power_off: /sbin/poweroff  # default: the agent just exits
 *     criu: /usr/sbin/criu       # default: looked for; no: not used
 *     gpus: 2                    # default: counted
 *     gpu_model: a100            # default: as the driver says
 *     gpu_memory: 40G            # of one; default: likewise
 *     features: [avx512, ib]     # that jobs may ask for with --constraint
 *     resources: {lego: 4}       # that jobs may ask for with --gres lego:2
 *     metadata_guard: required   # best-effort, off: whether only root reaches the metadata service
 *     task_pids: 32768           # processes and threads of one task
 *     private_ipc: yes           # each task has its own shared memory and /dev/shm
 *     no_new_privs: yes          # set-uid programs give tasks nothing
 *     hide_processes: tasks      # of users from each other; no, yes: on the whole node
 *     system_users: [root]       # default: no jobs of root and of system users
 *     telemetry: {look: 5s, every: 60s}   # what tasks and GPUs do; every 0s: not looked at
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

/* What an agent that is root does about the machine's metadata service (node_guard.h). */
enum metadata_guard {
    METADATA_OPEN,
    METADATA_GUARDED,       /* where it can be; else that is logged */
    METADATA_GUARD_REQUIRED /* else it does not start */
};

/* What an agent that is root does about processes of other users, which /proc shows. */
enum process_hiding {
    PROCESSES_SHOWN,
    PROCESSES_HIDDEN_IN_TASKS,
    PROCESSES_HIDDEN /* on the node, tasks included */
};

struct config {
    char server[512]; /* without a slash at the end */
    char *ca_pem;
    char token[129];   /* "": none, or not read yet from token_file */
    char *token_file;  /* NULL: none */
    char *dir;         /* absolute */
    char provider[16]; /* one of notice_provider_names */
    char metadata[512];
    char name[64];
    int64_t cpus, memory_mib; /* 0: measured */
    int64_t gpus;             /* -1: counted */
    struct gpu_kind gpu;      /* what is "" or 0 is as the driver says */
    /* between looks at what tasks do; of what is told of them, 0: nothing is */
    int64_t look_ms, telemetry_ms;
    int64_t orphan_timeout_ms;
    int64_t shutdown_timeout_ms;      /* that a shutdown of the machine leaves for saves */
    char *power_off;                  /* NULL: none */
    char criu[256];                   /* absolute, "no", or "": to be looked for */
    char features[FEATURES_TEXT_MAX]; /* job/feature.h */
    enum metadata_guard metadata_guard;
    bool no_new_privs; /* of tasks */
    bool private_ipc;  /* of tasks */
    int64_t task_pids; /* processes and threads of one */
    enum process_hiding hiding;
    /* root, and others below UID_MIN, whose jobs a root agent runs; a set as above */
    char system_users[FEATURES_TEXT_MAX];
    /* job/counts.h; in a running agent with the slices of its GPUs */
    char resources[COUNTS_TEXT_MAX];
};

/* Reads and checks the file, which must not be readable by others (it holds a secret).
 * BELAY_NODE_DIR, BELAY_METADATA, BELAY_NODE_GPUS and BELAY_NODE_TELEMETRY ("LOOK EVERY") in the
 * environment override dir, metadata, gpus and telemetry; what BELAY_NODE_SYSTEM_USERS names is
 * added to system_users. */
int config_read(const char *path, struct config *ret_config, struct err *e);
/* The same of the n bytes of a file; file is for error texts. ERR_INVALID with file and line. */
int config_parse(
    const char *file, const char *text, size_t n, struct config *ret_config, struct err *e);
void config_deinit(struct config *c);

/* A node that a provider gave and can take: it ends itself when belayd has forgotten it. */
bool config_is_elastic(const struct config *c);

/* The token to join with, from the configuration or its token_file. ERR_NOT_FOUND: there is
 * none. */
int config_token(const struct config *c, char *ret_token, size_t size, struct err *e);

/* After a join: deletes the token_file, which is of no more use. */
void config_forget_token(const struct config *c);

#endif
