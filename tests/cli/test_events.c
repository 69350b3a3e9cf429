/* SPDX-License-Identifier: Apache-2.0
 *
 * The English names of belayd's events.
 */
#include "base/str.h"
#include "cli/events.h"
#include "scheduler/core/model/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static bool is_kind(const char *kind)
{
    for (size_t i = 0; history_kinds[i]; i++)
        if (str_eq(history_kinds[i], kind))
            return true;
    return false;
}

static void every_kind_of_event_has_words_of_its_own(void **state)
{
    (void)state;
    size_t n = 0;
    for (; history_kinds[n]; n++) {
        size_t found = 0;
        for (size_t i = 0; i < event_names_count; i++)
            found += str_eq(event_names[i].kind, history_kinds[n]);
        if (found != 1)
            fail_msg("%s has %zu lines in cli/events.c", history_kinds[n], found);
    }
    assert_int_equal(event_names_count, n);
    for (size_t i = 0; i < event_names_count; i++) {
        const struct event_name *a = &event_names[i];
        if (!is_kind(a->kind))
            fail_msg("%s is no event of belayd", a->kind);
        assert_string_equal(event_words(a->kind), a->words);
        assert_in_range(strlen(a->words), 1, EVENT_WORDS_MAX);
        assert_null(strchr(a->words, '-'));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(a->words, event_names[k].words);
    }
}

static void a_kind_of_a_newer_belayd_is_printed_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(event_words("paged-out"), "paged-out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_event_has_words_of_its_own),
        cmocka_unit_test(a_kind_of_a_newer_belayd_is_printed_as_it_is),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
