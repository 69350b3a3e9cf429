/* SPDX-License-Identifier: Apache-2.0
 *
 * The checkpoint of a job that will run here next is fetched while the job runs elsewhere. The test
 * plays that other node: it saves into the store.
 */
#include "saving.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/store/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONSTANT_BYTES ((size_t)2 * CKPT_CHUNK_BYTES)

static void write_constant(const char *dir)
{
    char *path = mem_printf("%s/constant", dir);
    uint64_t *p = mem_array(CONSTANT_BYTES / sizeof(*p), sizeof(*p));
    struct prng r;
    struct err e;
    prng_init(&r, 1);
    for (size_t i = 0; i < CONSTANT_BYTES / sizeof(*p); i++)
        p[i] = prng_u64(&r);
    assert_int_equal(fs_write_atomic(path, p, CONSTANT_BYTES, 0600, &e), 0);
    free(p);
    free(path);
}

/* Attempt 1 of job 1 saves much that stays the same, and this state. */
static void save_sealed(
    struct world *w, int64_t sequence, const char *state, const struct ckpt_crypt *crypt)
{
    char *dir = mem_printf("%s/elsewhere", w->dir), *path = mem_printf("%s/state", dir);
    struct store *store;
    struct ckpt_stats stats;
    struct err e;
    if (!fs_exists(dir)) {
        assert_int_equal(fs_mkdirs(dir, 0700, &e), 0);
        write_constant(dir);
    }
    world_write(path, state);
    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1, .crypt = crypt};
    if (ckpt_save(&j, (struct ckpt_id){1, sequence}, dir, sequence, NULL, &stats, &e) != 0)
        fail_msg("%s", e.text);
    store_close(store);
    free(path);
    free(dir);
}

static void save(struct world *w, int64_t sequence, const char *state)
{
    save_sealed(w, sequence, state, NULL);
}

static void remove_chunks(struct world *w)
{
    char *chunks = mem_printf("%s/store/lab/jobs/1/chunks", w->dir);
    struct err e;
    assert_true(fs_exists(chunks));
    assert_int_equal(fs_remove_tree(chunks, &e), 0);
    free(chunks);
}

static void want_prefetch(struct world *w, int64_t sequence)
{
    w->prefetch = (struct wire_prefetch){.job = 1, .attempt = 1, .sequence = sequence};
    world_go(w);
}

static bool is_prefetched(struct world *w, int64_t sequence)
{
    return w->status.prefetched.job == 1 && w->status.prefetched.sequence == sequence;
}

static bool has_failed(struct world *w, int64_t job)
{
    return w->status.prefetched.job == job && w->status.prefetched.text[0];
}

static bool is_ordered(struct world *w, int64_t job)
{
    return w->status.prefetched.job == job;
}

static char *kept_tree(struct world *w)
{
    return mem_printf("%s/node/kept/1-1", w->dir);
}

static bool is_removed(struct world *w, int64_t job)
{
    (void)job;
    char *path = kept_tree(w);
    bool there = fs_exists(path);
    free(path);
    return !there;
}

static void start_with_checkpoint(struct world *w)
{
    save(w, 1, "one\n");
    world_start_agent(w);
    want_prefetch(w, 1);
    world_until(w, is_prefetched, 1, "the checkpoint is fetched");
}

/* belayd places the job here: it sends the attempt, and nothing more to fetch. */
static void restore_here(struct world *w, const char *output)
{
    w->prefetch.sequence = 0;
    want_coop(w, 2, resume_script);
    world_go(w);
    world_until(w, has_ended, 1, "the next attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), output);
}

static void the_restore_fetches_nothing_after_a_prefetch(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct stat st;
    start_with_checkpoint(w);
    char *tree = kept_tree(w), *kept = mem_printf("%s/node/kept", w->dir);
    assert_true(stat(kept, &st) == 0 && (st.st_mode & 0777) == 0700);
    assert_true(stat(tree, &st) == 0 && st.st_uid == w->uid && (st.st_mode & 0777) == 0700);
    free(tree);
    free(kept);
    remove_chunks(w);
    restore_here(w, "1 one\n");
    assert_int_equal(world_reported(w, 1)->restored_sequence, 1);
    assert_int_equal(world_reported(w, 1)->restored_bytes, (int64_t)CONSTANT_BYTES + 4);
    assert_int_equal(world_reported(w, 1)->reused_bytes, (int64_t)CONSTANT_BYTES + 4);
}

/* The job has saved again before it moved, as it does at every move. */
static void a_stale_prefetch_is_not_taken_for_the_newest_checkpoint(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    start_with_checkpoint(w);
    save(w, 2, "two\n");
    restore_here(w, "1 two\n");
    assert_int_equal(world_reported(w, 1)->restored_sequence, 2);
    assert_int_equal(world_reported(w, 1)->reused_bytes, (int64_t)CONSTANT_BYTES);
}

static void a_newer_checkpoint_is_fetched_too(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    start_with_checkpoint(w);
    save(w, 2, "two\n");
    want_prefetch(w, 2);
    world_until(w, is_prefetched, 2, "the newer checkpoint is fetched");
    remove_chunks(w);
    restore_here(w, "1 two\n");
    assert_int_equal(world_reported(w, 1)->reused_bytes, (int64_t)CONSTANT_BYTES + 4);
}

static void a_failure_is_reported_and_the_job_starts_without_it(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    save(w, 1, "one\n");
    remove_chunks(w);
    world_start_agent(w);
    want_prefetch(w, 1);
    world_until(w, has_failed, 1, "the failure is reported");
    assert_int_equal(w->status.prefetched.sequence, 0);
    assert_false(world_log_has(w, "set aside"));
    save(w, 2, "two\n");
    want_prefetch(w, 2); /* there is more to fetch: another try */
    world_until(w, is_prefetched, 2, "the newer checkpoint is fetched");
    restore_here(w, "1 two\n");
}

static void what_was_fetched_goes_when_the_job_runs_elsewhere(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    start_with_checkpoint(w);
    assert_false(is_removed(w, 1));
    w->prefetch = (struct wire_prefetch){0};
    world_go(w);
    world_until(w, is_removed, 1, "it is removed");
    assert_int_equal(w->status.prefetched.job, 0);
}

static void an_encrypted_checkpoint_waits_for_the_jobs_keys(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    static char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    static char *keys[] = {key};
    const struct wire_secrets secrets = {
        .version = 7, .checkpoint_keys = keys, .n_checkpoint_keys = 1, .encrypts = true};
    struct ckpt_crypt crypt = {.encrypts = true};
    struct err e;
    assert_int_equal(crypt_add(&crypt, key, &e), 0);
    save_sealed(w, 1, "one\n", &crypt);
    crypt_wipe(&crypt);
    world_start_agent(w);
    w->prefetch = (struct wire_prefetch){.job = 1, .attempt = 1, .sequence = 1};
    w->prefetch.needs_secrets = true;
    world_go(w);
    world_until(w, is_ordered, 1, "the agent has the order");
    assert_int_equal(w->status.prefetched.sequence, 0);
    assert_string_equal(w->status.prefetched.text, "");
    w->prefetch.secrets = secrets;
    world_go(w);
    world_until(w, is_prefetched, 1, "the checkpoint is fetched");
    assert_false(world_log_has(w, key));
    remove_chunks(w);
    struct wire_desired_attempt *a = want_coop(w, 2, resume_script);
    a->needs_secrets = true;
    a->secrets = secrets;
    world_go(w);
    world_until(w, has_ended, 1, "the next attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 one\n");
    assert_int_equal(world_reported(w, 1)->reused_bytes, (int64_t)CONSTANT_BYTES + 4);
}

static void a_prefetch_survives_a_restart_of_the_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    start_with_checkpoint(w);
    world_kill_agent(w, SIGKILL);
    remove_chunks(w);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, is_prefetched, 1, "the next agent finds everything here");
    restore_here(w, "1 one\n");
    assert_int_equal(world_reported(w, 1)->reused_bytes, (int64_t)CONSTANT_BYTES + 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(the_restore_fetches_nothing_after_a_prefetch),
        world_test(a_stale_prefetch_is_not_taken_for_the_newest_checkpoint),
        world_test(a_newer_checkpoint_is_fetched_too),
        world_test(a_failure_is_reported_and_the_job_starts_without_it),
        world_test(what_was_fetched_goes_when_the_job_runs_elsewhere),
        world_test(an_encrypted_checkpoint_waits_for_the_jobs_keys),
        world_test(a_prefetch_survives_a_restart_of_the_agent),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
