/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cloud/catalogue.h"
#include "cloud/http_date.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void a_known_type_is_found(void **state)
{
    const struct catalogue_type *t = catalogue_find("aws", "p4d.24xlarge");
    (void)state;
    assert_non_null(t);
    assert_int_equal(t->vcpus, 96);
    assert_int_equal(t->memory_mib, 1152 * 1024);
    assert_int_equal(t->gpus, 8);
    assert_string_equal(t->gpu_model, "A100");
    assert_int_equal(t->gpu_memory_mib, 40 * 1024);
    assert_int_equal(t->on_demand_uusd_h, 21957642);
    assert_int_equal(t->spot_uusd_h, 8000000);
    assert_null(catalogue_find("aws", "p4d.25xlarge"));
    assert_null(catalogue_find("gcp", "p4d.24xlarge"));
}

static void check_rows(const char *provider, size_t expected)
{
    const char *const *names = catalogue_names(provider);
    size_t n = 0;
    for (; names[n]; n++) {
        const struct catalogue_type *t = catalogue_find(provider, names[n]);
        assert_non_null(t);
        assert_string_equal(t->provider, provider);
        assert_string_equal(t->type, names[n]);
        assert_true(t->vcpus > 0 && t->memory_mib > 0 && t->on_demand_uusd_h > 0);
        assert_true(t->spot_uusd_h >= 0 && t->spot_uusd_h < t->on_demand_uusd_h);
        assert_int_equal(t->gpus > 0, t->gpu_memory_mib > 0);
        assert_int_equal(t->gpus > 0, *t->gpu_model != '\0');
    }
    assert_int_equal(n, expected);
}

static void every_row_makes_sense(void **state)
{
    (void)state;
    check_rows("aws", 29);
    check_rows("azure", 17);
    check_rows("gcp", 18);
    check_rows("lambda", 9);
    assert_null(*catalogue_names("none"));
    assert_string_equal(str_nearest("p5.48xlarg", catalogue_names("aws")), "p5.48xlarge");
}

static void http_dates_are_read(void **state)
{
    static const char *const wrong[] = {"", "Sat, 22 Aug 2026 12:00:00 UTC", "Sat, 22 Aut 2026 12:00:00 GMT",
        "Sat, 22 anF 2026 12:00:00 GMT", "Sat, 32 Aug 2026 12:00:00 GMT", "Sat, 22 Aug 2026 12:00:0x GMT",
        "2026-08-22T12:00:00Z", NULL};
    struct wall w;
    (void)state;
    assert_int_equal(http_date_parse("Sat, 22 Aug 2026 12:00:00 GMT", &w, NULL), 0);
    assert_int_equal(w.ms, 1787400000000);
    assert_int_equal(http_date_parse(NULL, &w, NULL), ERR_INVALID);
    for (size_t i = 0; wrong[i]; i++)
        assert_int_equal(http_date_parse(wrong[i], &w, NULL), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_type_is_found),
        cmocka_unit_test(every_row_makes_sense),
        cmocka_unit_test(http_dates_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
