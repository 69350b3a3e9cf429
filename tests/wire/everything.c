/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/wire/everything.h"

#include "base/mem.h"

static struct wire_kept *kept_of(int64_t job)
{
    struct wire_kept *k = mem_array(1, sizeof(*k));
    k->job = job;
    return k;
}

static struct wire_task_load *task_load_of_everything(void)
{
    struct wire_task_load *l = mem_array(1, sizeof(*l));
    *l = (struct wire_task_load){.no = 3, .at = 1760000000000, .job = 42, .attempt = 2};
    for (size_t i = 0; i < sizeof(l->load) / sizeof(int64_t); i++)
        ((int64_t *)&l->load)[i] = (int64_t)i + 1;
    l->load.net_is_nodes = 1;
    return l;
}

static struct wire_gpu_load *gpu_loads_of_everything(void)
{
    struct wire_gpu_load *l = mem_array(2, sizeof(*l));
    l[0] = (struct wire_gpu_load){
        .no = 1, .at = 1760000000000, .gpu = "GPU-1", .index = 7, .job = 42, .attempt = 2};
    for (size_t i = 0; i < sizeof(l->load) / sizeof(int64_t); i++)
        ((int64_t *)&l[0].load)[i] = (int64_t)i + 1;
    l[1] = (struct wire_gpu_load){.no = 2, .at = 1, .gpu = "MIG-1", .is_slice = true};
    return l;
}

static struct wire_tail *tails_of_everything(void)
{
    struct wire_tail *t = mem_array(1, sizeof(*t));
    *t = (struct wire_tail){.job = 43, .attempt = 1, .offset = 70, .hex = mem_strdup("00ff0a")};
    return t;
}

struct wire_status status_of_everything(void)
{
    struct wire_checkpoint *c = mem_array(2, sizeof(*c));
    c[0] = (struct wire_checkpoint){.sequence = 3,
        .bytes = 10,
        .stored_bytes = 4,
        .took_ms = 7,
        .pause_ms = 3,
        .progress = 0,
        .saved_at = 1760000000000,
        .cause = WIRE_CAUSE_PERIODIC};
    c[1] =
        (struct wire_checkpoint){.sequence = 4, .progress = WIRE_NONE, .saved_at = 1760000000500};
    struct wire_attempt_status *a = mem_array(2, sizeof(*a));
    a[0] = (struct wire_attempt_status){.job = 42,
        .attempt = 2,
        .phase = WIRE_SAVING,
        .started_at = 1,
        .restored_attempt = 1,
        .restored_sequence = 9,
        .restored_progress = 100,
        .restore_ms = 5,
        .damaged = 1,
        .restored_bytes = 1000,
        .reused_bytes = 400,
        .first_done = 100,
        .first_done_ms = 1700,
        .done = 101,
        .total = 1000,
        .usage = {123456, 100000, 1875, 1 << 20, 2 << 20},
        .checkpoints = c,
        .n_checkpoints = 2,
        .failed_saves = 3,
        .failed_restores = 2,
        .save_error = "no space",
        .restore_error = "cannot be resumed here",
        .store_tries = 4,
        .store_error = "403 AccessDenied",
        .output_bytes = 77,
        .kept_bytes = 78,
        .secrets = 3};
    a[1] = (struct wire_attempt_status){.job = 43,
        .attempt = 1,
        .phase = WIRE_ENDED,
        .started_at = WIRE_NONE,
        .restored_progress = WIRE_NONE,
        .first_done = WIRE_NONE,
        .done = WIRE_NONE,
        .total = WIRE_NONE,
        .end = WIRE_END_FAILED,
        .user_refused = true,
        .exit_code = 255,
        .text = "exit code 255"};
    return (struct wire_status){.incarnation = 1760000000000,
        .seq = 9,
        .have_rev = 5,
        .wait_ms = 25000,
        .load_milli = 1500,
        .cpu_mw = 182500,
        .disk_full = "1.2 MiB of 16 MiB are free",
        .fault = "GPU 1 (GPU-a): Xid 79 (2026-11-28T04:00:00Z)",
        .notice = {.kind = WIRE_NOTICE_RECLAIM, .deadline = 1760000120000, .seen = 1760000000000},
        .attempts = a,
        .n_attempts = 2,
        .kept = kept_of(7),
        .n_kept = 1,
        .prefetched = {.job = 8, .attempt = 2, .sequence = 3, .text = "403 AccessDenied"},
        .task_loads = task_load_of_everything(),
        .n_task_loads = 1,
        .gpu_loads = gpu_loads_of_everything(),
        .n_gpu_loads = 2,
        .tails = tails_of_everything(),
        .n_tails = 1};
}

static struct wire_prefetch prefetch_of_everything(void)
{
    return (struct wire_prefetch){.job = 8,
        .attempt = 2,
        .sequence = 4,
        .from_attempt = 1,
        .store_uid = "0123456789abcdef",
        .needs_secrets = true,
        .secrets = {.version = 3, .store_token = mem_strdup("t"), .store_left_ms = 3600000}};
}

struct wire_desired desired_of_everything(void)
{
    struct wire_desired_attempt *a = mem_array(2, sizeof(*a));
    a[0] = (struct wire_desired_attempt){.job = 42,
        .attempt = 2,
        .want = WIRE_RUN,
        .options.name = "train",
        .user = "ann",
        .script = mem_strdup("#!/bin/sh\necho \"h\xc3\xa9\"\n"),
        .cwd = "/home/ann",
        .cpus = 4,
        .gpus = 1,
        .memory_mib = 1024,
        .options.time_limit_ms = 60000,
        .grace_signal = 12,
        .grace_ms = 30000,
        .grace_to_script = true,
        .method = WIRE_METHOD_COOP,
        .options.ckpt_signal = 10,
        .ckpt_every_ms = 600000,
        .options.ckpt_keep = 3,
        .options.ckpt_keep_every = 10,
        .options.ckpt_at = "04:00,16:00",
        .store_uid = "0123456789abcdef",
        .ckpt_identity = "0123456789abcdef-1790000000000",
        .expect_attempt = 2,
        .expect_sequence = 9,
        .from_attempt = 2,
        .saves_asked = 2,
        .limit_ms = 120000,
        .gang_ended = true,
        .kill_wait_ms = 30000,
        .save_ms = 1234,
        .slurm_env = true,
        .output = mem_strdup("%x-%j.out"),
        .error = mem_strdup("%j.err"),
        .input = mem_strdup("in.txt"),
        .open_mode = WIRE_OPEN_APPEND,
        .tasks = 4,
        .cpus_per_task = 2,
        .cluster = "lab",
        .pool = "burst",
        .needs_secrets = true,
        .secrets = {.version = 3, .encrypts = true, .refuses_plain = true}};
    a[0].secrets.checkpoint_keys = mem_array(2, sizeof(char *));
    a[0].secrets.n_checkpoint_keys = 2;
    a[0].secrets.checkpoint_keys[0] = mem_strdup("0123456789abcdef");
    a[0].secrets.checkpoint_keys[1] = mem_strdup("fedcba9876543210");
    a[0].secrets.store_access_key = mem_strdup("ASIA1");
    a[0].secrets.store_secret_key = mem_strdup("s");
    a[0].secrets.store_token = mem_strdup("t");
    a[0].secrets.store_left_ms = 3600000;
    a[0].job_token = mem_strdup("j1.2.abc");
    a[0].args = mem_array(2, sizeof(char *));
    a[0].n_args = 2;
    a[0].args[0] = mem_strdup("--lr");
    a[0].args[1] = mem_strdup("");
    a[0].env = mem_array(1, sizeof(struct wire_env));
    a[0].n_env = 1;
    a[0].env[0] = (struct wire_env){.name = mem_strdup("SEED"), .value = mem_strdup("1 2\n3")};
    a[1] = (struct wire_desired_attempt){.job = 43,
        .attempt = 1,
        .want = WIRE_SAVE_STOP,
        .reason = WIRE_END_DRAINED,
        .acked_sequence = 4};
    return (struct wire_desired){.rev = 7,
        .task_loads_taken = 12,
        .gpu_loads_taken = 13,
        .sync_ms = 10000,
        .lease_ms = 30000,
        .attempts = a,
        .n_attempts = 2,
        .unneeded = kept_of(9),
        .n_unneeded = 1,
        .prefetch = prefetch_of_everything()};
}
