/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/store_threads.h"
#include "base/mem.h"

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define PLACES 16
#define MANY 40

struct piece {
    struct store_work w;
    sem_t answer; /* of its store */
    struct rig *rig;
    bool is_done;
};

struct rig {
    uv_loop_t loop;
    pthread_t loop_thread;
    struct store_threads *threads;
    struct piece pieces[MANY];
    int n_done;
};

/* ---- a system without threads ---- */

static int (*create_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return create_thread(t, attr, fn, arg);
}

static int refuse_thread(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    (void)t, (void)attr, (void)fn, (void)arg;
    return EAGAIN;
}

/* ---- the rig ---- */

static void work(void *ctx)
{
    struct piece *p = ctx;
    assert_false(pthread_equal(pthread_self(), p->rig->loop_thread));
    sem_wait(&p->answer);
}

static void done(void *ctx)
{
    struct piece *p = ctx;
    assert_true(pthread_equal(pthread_self(), p->rig->loop_thread));
    assert_false(p->is_done);
    p->is_done = true;
    p->rig->n_done++;
}

static struct rig *begin(void)
{
    struct rig *r = mem_alloc(sizeof(*r));
    create_thread = __real_pthread_create;
    assert_int_equal(uv_loop_init(&r->loop), 0);
    r->loop_thread = pthread_self();
    r->threads = store_threads_create(&r->loop);
    for (size_t i = 0; i < MANY; i++) {
        struct piece *p = &r->pieces[i];
        p->w = (struct store_work){.work = work, .done = done, .ctx = p, .user = "ann"};
        p->rig = r;
        sem_init(&p->answer, 0, 0);
    }
    return r;
}

static void run(struct rig *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        store_threads_run(r->threads, &r->pieces[i].w);
    assert_int_equal(r->n_done, 0); /* never inside */
}

static void answer(struct rig *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        sem_post(&r->pieces[i].answer);
}

static void await_done(struct rig *r, int n)
{
    while (r->n_done < n)
        uv_run(&r->loop, UV_RUN_ONCE);
}

static void silence(struct rig *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        store_threads_note(r->threads, &r->pieces[i].w, true);
}

static int count_under_way(const struct rig *r, size_t from, size_t to)
{
    int n = 0;
    for (size_t i = from; i < to; i++)
        n += r->pieces[i].w.has_begun;
    return n;
}

static void end(struct rig *r, int n)
{
    await_done(r, n);
    store_threads_destroy(r->threads);
    store_threads_destroy(NULL);
    uv_loop_finish(&r->loop);
    for (size_t i = 0; i < MANY; i++)
        sem_destroy(&r->pieces[i].answer);
    free(r);
}

/* ---- */

static void work_beyond_the_places_waits_in_order(void **state)
{
    (void)state;
    struct rig *r = begin();
    run(r, MANY);
    assert_int_equal(count_under_way(r, 0, PLACES), PLACES);
    assert_int_equal(count_under_way(r, PLACES, MANY), 0);
    answer(r, 0, 3);
    await_done(r, 3);
    assert_int_equal(count_under_way(r, PLACES, PLACES + 3), 3);
    assert_int_equal(count_under_way(r, PLACES + 3, MANY), 0);
    answer(r, 3, MANY);
    end(r, MANY);
}

static void silent_work_takes_no_place_until_its_store_answers(void **state)
{
    (void)state;
    struct rig *r = begin();
    run(r, MANY);
    silence(r, MANY - 1, MANY); /* it waits without using the store */
    assert_int_equal(count_under_way(r, 0, MANY), PLACES);
    silence(r, 0, PLACES);
    silence(r, 0, PLACES); /* as already known */
    assert_int_equal(count_under_way(r, PLACES, 2 * PLACES), PLACES);
    assert_int_equal(count_under_way(r, 2 * PLACES, MANY), 0);
    store_threads_note(r->threads, &r->pieces[0].w, false);
    answer(r, 1, 2); /* its end frees no place */
    answer(r, PLACES, PLACES + 1);
    await_done(r, 2); /* its place now belongs to the first piece */
    assert_int_equal(count_under_way(r, 2 * PLACES, MANY), 0);
    answer(r, 0, 1);
    await_done(r, 3);
    assert_int_equal(count_under_way(r, 2 * PLACES, MANY), 1);
    answer(r, 2, PLACES);
    answer(r, PLACES + 1, MANY);
    end(r, MANY);
}

static void a_user_with_much_work_leaves_places_to_others(void **state)
{
    (void)state;
    struct rig *r = begin();
    for (size_t i = MANY - 4; i < MANY; i++)
        r->pieces[i].w.user = "bob";
    run(r, MANY);
    assert_int_equal(count_under_way(r, MANY - 4, MANY), 0);
    silence(r, 0, PLACES);
    assert_int_equal(count_under_way(r, MANY - 4, MANY), 4);
    assert_int_equal(count_under_way(r, PLACES, MANY - 4), PLACES - 4); /* no other piece waits */
    answer(r, 0, MANY);
    end(r, MANY);
}

static void without_threads_those_of_the_pool_do_the_work(void **state)
{
    (void)state;
    struct rig *r = begin();
    create_thread = refuse_thread;
    run(r, PLACES + 1);
    assert_int_equal(count_under_way(r, 0, MANY), PLACES);
    answer(r, 0, PLACES + 1);
    end(r, PLACES + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_beyond_the_places_waits_in_order),
        cmocka_unit_test(silent_work_takes_no_place_until_its_store_answers),
        cmocka_unit_test(a_user_with_much_work_leaves_places_to_others),
        cmocka_unit_test(without_threads_those_of_the_pool_do_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
