/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/crew.h"
#include "base/uv/timers.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MANY 100

struct piece {
    struct crew *crew;
    pthread_t loop_thread, worker;
    int worked, done;
    struct piece *next; /* requested when this one is done */
};

static void work(void *ctx)
{
    struct piece *p = ctx;
    p->worker = pthread_self();
    p->worked++;
}

static void done(void *ctx)
{
    struct piece *p = ctx;
    assert_true(pthread_equal(pthread_self(), p->loop_thread));
    assert_int_equal(p->worked, 1);
    p->done++;
    if (p->next)
        crew_run(p->crew, work, done, p->next);
}

static size_t count_changes_of_thread(const struct piece *p, size_t n)
{
    size_t changes = 0;
    for (size_t i = 1; i < n; i++)
        changes += !pthread_equal(p[i].worker, p[i - 1].worker);
    return changes;
}

static void each_item_is_done_once_and_the_items_of_a_turn_share_threads(void **state)
{
    uv_loop_t loop;
    struct piece pieces[MANY], last = {0};
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct timers *timers = uv_timers_create(&loop);
    struct crew *c = crew_create(&loop, timers);
    for (size_t i = 0; i < MANY; i++) {
        pieces[i] = (struct piece){.crew = c, .loop_thread = pthread_self()};
        crew_run(c, work, done, &pieces[i]);
    }
    last = (struct piece){.crew = c, .loop_thread = pthread_self()};
    pieces[0].next = &last;
    assert_int_equal(pieces[0].done, 0); /* never inside */
    uv_run(&loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < MANY; i++) {
        assert_false(pthread_equal(pieces[i].worker, pieces[i].loop_thread));
        assert_int_equal(pieces[i].done, 1);
    }
    assert_int_equal(last.done, 1);
    assert_true(count_changes_of_thread(pieces, MANY) < MANY / 10);
    crew_destroy(c);
    crew_destroy(NULL);
    uv_timers_destroy(timers);
    uv_loop_finish(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_done_once_and_the_items_of_a_turn_share_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
