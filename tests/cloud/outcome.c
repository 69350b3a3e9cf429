/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome.h"
#include "base/str.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

void outcome_done(void *ctx, const struct err *e)
{
    struct outcome *o = ctx;
    o->completions++;
    o->e = e ? *e : (struct err){0};
}

void outcome_launch(void *ctx, const struct err *e, const struct cloud_instance *i)
{
    struct outcome *o = ctx;
    outcome_done(o, e);
    if (!e)
        o->instance = *i;
}

void outcome_refused(void *ctx, const struct cloud_target *p, const struct err *e)
{
    struct outcome *o = ctx;
    size_t n = strlen(o->refused);
    assert_int_equal(o->completions, 0);
    snprintf(o->refused + n, sizeof(o->refused) - n, "%s %s %s;", p->zone, p->type,
        err_kind_name(e->kind));
}

void outcome_list(void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct outcome *o = ctx;
    outcome_done(o, e);
    assert_true(n <= OUTCOME_ROWS_MAX);
    o->n = n;
    if (n > 0)
        memcpy(o->list, list, n * sizeof(*list));
}

void outcome_prices(void *ctx, const struct err *e, const struct cloud_price *list, size_t n)
{
    struct outcome *o = ctx;
    outcome_done(o, e);
    assert_true(n <= OUTCOME_ROWS_MAX);
    o->n = n;
    if (n > 0)
        memcpy(o->prices, list, n * sizeof(*list));
}

void outcome_quotas(void *ctx, const struct err *e, const struct cloud_quota *list, size_t n)
{
    struct outcome *o = ctx;
    outcome_done(o, e);
    assert_true(n <= OUTCOME_ROWS_MAX);
    o->n = n;
    if (n > 0)
        memcpy(o->quotas, list, n * sizeof(*list));
}

void outcome_volumes(void *ctx, const struct err *e, const struct cloud_volume *list, size_t n)
{
    struct outcome *o = ctx;
    outcome_done(o, e);
    assert_true(n <= OUTCOME_ROWS_MAX);
    o->n = n;
    if (n > 0)
        memcpy(o->volumes, list, n * sizeof(*list));
}

void outcome_console(void *ctx, const struct err *e, const char *text)
{
    struct outcome *o = ctx;
    outcome_done(o, e);
    assert_int_equal(e == NULL, text != NULL);
    if (!e)
        assert_true(STR_COPY(o->console, text));
}

void outcome_finish(struct outcome *o, struct vtimers *vt, int expected)
{
    assert_int_equal(o->completions, 0);
    while (vtimers_run_next(vt))
        ;
    assert_int_equal(o->completions, 1);
    o->completions = 0;
    if (o->e.kind != (enum err_kind)expected)
        fail_msg("expected %s, got %s: %s", err_kind_name(expected), err_kind_name(o->e.kind),
            o->e.text);
}
