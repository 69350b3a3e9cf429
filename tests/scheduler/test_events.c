/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events show their text to users other than the job's owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduler/api/api_private.h"

static bool is_private(const char *kind, int64_t job)
{
    struct history_row h = {.job = job};
    STR_COPY(h.kind, kind);
    return api_event_is_private(&h);
}

/* They quote commands, scripts, files, addresses and results. */
static void events_with_words_of_agents_and_users_are_private(void **state)
{
    static const char *const kinds[] = {"enter", "ended", "save-failed", "restore-failed",
        "store-refused", "no-credentials", "requeue-dropped", "not-told", "clean-failed",
        "drill-passed", "drill-compared", "drill-failed", "drill-interrupted"};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!is_private(kinds[i], 1))
            fail_msg("%s", kinds[i]);
}

static void events_with_words_of_belayd_are_public(void **state)
{
    static const char *const kinds[] = {
        "submitted", "placed", "started", "saved", "requeued", "notice", "time-limit"};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (is_private(kinds[i], 1))
            fail_msg("%s", kinds[i]);
}

static void a_kind_that_nobody_has_judged_is_private(void **state)
{
    (void)state;
    assert_true(is_private("brand-new", 1));
    assert_true(is_private("", 1));
}

static void events_of_no_job_are_public(void **state)
{
    (void)state;
    for (size_t i = 0; history_kinds[i]; i++)
        assert_false(is_private(history_kinds[i], CORE_ID_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_with_words_of_agents_and_users_are_private),
        cmocka_unit_test(events_with_words_of_belayd_are_public),
        cmocka_unit_test(a_kind_that_nobody_has_judged_is_private),
        cmocka_unit_test(events_of_no_job_are_public),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
