/* SPDX-License-Identifier: Apache-2.0
 *
 * Which output of a task belayd has, and which it refuses. The test answers the posts instead of
 * belayd.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/task/log_shipper.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/uv/loop.h"
#include "base/vtimers.h"
#include "base/wire/wire.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_BYTES 100000

static struct post {
    http_done_fn done; /* NULL if no request is in progress */
    void *ctx;
    size_t n;
} post;

struct http_call *__wrap_peer_post(const struct peer *p, const char *path, const void *body,
    size_t n, int64_t timeout_ms, http_done_fn done, void *ctx);
struct http_call *__wrap_peer_post(const struct peer *p, const char *path, const void *body,
    size_t n, int64_t timeout_ms, http_done_fn done, void *ctx)
{
    (void)p, (void)path, (void)body, (void)timeout_ms;
    assert_null(post.done);
    post = (struct post){done, ctx, n};
    return (struct http_call *)&post;
}

struct world {
    char dir[64];
    char *path;
    uv_loop_t loop;
    struct vtimers vt;
    struct identity id;
    struct peer peer;
    struct prng prng;
    struct log_shipper s;
};

static void ignore(void *ctx)
{
    (void)ctx;
}

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof(*w));
    struct err e;
    char *text = mem_alloc(OUTPUT_BYTES);
    *state = w;
    strcpy(w->dir, "/tmp/belay-shipper-XXXXXX");
    if (uv_loop_init(&w->loop) != 0 || !mkdtemp(w->dir))
        return -1;
    memset(text, 'x', OUTPUT_BYTES);
    w->path = mem_printf("%s/output.log", w->dir);
    int rc = fs_write_atomic(w->path, text, OUTPUT_BYTES, 0600, &e);
    free(text);
    vtimers_init(&w->vt, 1000);
    prng_init(&w->prng, 1);
    w->id.node.node = 1;
    w->peer.id = &w->id;
    w->s = (struct log_shipper){.watches = watches_open(&w->loop, &w->vt.timers),
        .timers = &w->vt.timers,
        .prng = &w->prng,
        .peer = &w->peer,
        .job = 1,
        .attempt = 1,
        .path = w->path,
        .flushed = ignore,
        .moved = ignore};
    post = (struct post){0};
    log_shipper_start(&w->s, true);
    vtimers_advance(&w->vt, 0);
    return rc;
}

static int teardown(void **state)
{
    struct world *w = *state;
    struct err e;
    w->s.call = NULL;
    watch_stop(w->s.watch);
    timer_stop(&w->vt.timers, &w->s.retry);
    watches_close(w->s.watches);
    uv_loop_finish(&w->loop);
    vtimers_deinit(&w->vt);
    int rc = fs_remove_tree(w->dir, &e);
    free(w->path);
    free(w);
    return rc;
}

static void answer(int64_t size)
{
    struct post p = post;
    struct http_reply reply = {.status = 200};
    assert_non_null(p.done);
    post.done = NULL;
    buf_printf(&reply.body, "{\"size\": %lld, \"durable\": true}", (long long)size);
    p.done(p.ctx, NULL, &reply);
    buf_deinit(&reply.body);
}

static void output_on_belayds_disk_is_durable(void **state)
{
    struct world *w = *state;
    assert_int_equal(post.n, OUTPUT_BYTES);
    assert_int_equal(log_shipper_durable(&w->s), 0);
    answer(OUTPUT_BYTES / 2);
    assert_int_equal(log_shipper_durable(&w->s), OUTPUT_BYTES / 2);
    assert_int_equal(post.n, OUTPUT_BYTES / 2);
    answer(OUTPUT_BYTES);
    assert_int_equal(log_shipper_durable(&w->s), OUTPUT_BYTES);
    assert_true(log_shipper_is_complete(&w->s));
    assert_null(post.done);
}

/* Output printed after the truncation is sent once the file is longer than before. */
static void a_job_that_truncates_its_output_is_not_cut(void **state)
{
    struct world *w = *state;
    answer(OUTPUT_BYTES);
    assert_int_equal(truncate(w->path, 10), 0);
    log_shipper_kick(&w->s);
    assert_true(log_shipper_is_complete(&w->s));
    assert_int_equal(log_shipper_durable(&w->s), OUTPUT_BYTES);
    assert_int_equal(truncate(w->path, OUTPUT_BYTES + 10), 0);
    log_shipper_kick(&w->s);
    assert_int_equal(post.n, 10);
    answer(OUTPUT_BYTES + 10);
    assert_int_equal(log_shipper_durable(&w->s), OUTPUT_BYTES + 10);
}

static void no_more_of_a_cut_output_is_sent(void **state)
{
    struct world *w = *state;
    answer(WIRE_OUTPUT_CUT);
    assert_int_equal(log_shipper_durable(&w->s), INT64_MAX);
    assert_int_equal(truncate(w->path, 2 * OUTPUT_BYTES), 0);
    log_shipper_kick(&w->s);
    assert_true(log_shipper_is_complete(&w->s));
    assert_null(post.done);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(output_on_belayds_disk_is_durable),
        TEST(a_job_that_truncates_its_output_is_not_cut),
        TEST(no_more_of_a_cut_output_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
