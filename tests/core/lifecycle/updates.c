/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/core/lifecycle/updates.h"

#include "scheduler/core/model/model_access.h"
#include <string.h>

struct event updates_event(int64_t job, uint64_t fields, const struct job_row *to)
{
    return (struct event){
        .type = EV_UPDATE, .update = {.job = job, .by = "ann", .fields = fields, .to = to}};
}

struct event updates_depends(int64_t job, const struct depend_ask *asks, size_t n, bool any)
{
    static const struct job_row on_all = {0}, on_any = {.spec.depends_any = true};
    struct event ev = updates_event(job, BIT(DEPENDS), any ? &on_any : &on_all);
    ev.update.depends = asks;
    ev.update.n_depends = n;
    return ev;
}

void updates_apply(struct lab *l, int64_t job, uint64_t fields, struct job_row to)
{
    lab_apply(l, updates_event(job, fields, &to));
}

void updates_refuse_event(struct lab *l, struct event ev, int kind, const char *why)
{
    const struct job *j = model_job(l->m, ev.update.job);
    const struct job_row before = j ? j->row : (struct job_row){0};
    const size_t n_history = model_final_rows(l->m)->n_history;
    assert_int_equal(lab_try(l, &ev, NULL), kind);
    if (!strstr(l->e.text, why))
        fail_msg("\"%s\" is not in: %s", why, l->e.text);
    assert_true(!j || memcmp(&before, &j->row, sizeof before) == 0);
    assert_int_equal(model_final_rows(l->m)->n_history, n_history);
}

void updates_refuse(
    struct lab *l, int64_t job, uint64_t fields, struct job_row to, int kind, const char *why)
{
    updates_refuse_event(l, updates_event(job, fields, &to), kind, why);
}

int64_t updates_submit_array(struct lab *l, const char *tasks, int32_t at_once)
{
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct job_row r = lab_job(1);
    struct ranges set;
    assert_int_equal(ranges_parse(tasks, &set, &l->e), 0);
    return lab_apply(
        l, (struct event){.type = EV_SUBMIT,
               .submit = {.job = &r, .texts = &texts, .tasks = &set, .at_once = at_once}});
}

bool updates_waits(const struct lab *l, int64_t job)
{
    return model_job(l->m, job)->is_waiting;
}
