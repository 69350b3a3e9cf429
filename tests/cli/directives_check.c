/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cli/directives_check.h"

#include "base/json.h"
#include "cli/flags/directives.h"
#include <stdlib.h>
#include <string.h>

void result_add_warning(void *ctx, const char *text)
{
    struct buf *all = ctx;
    buf_printf(all, "%s\n", text);
}

/* The script has no NUL after it, so that reading too far is detected. */
static struct result apply_as(const char *script, size_t n, bool repeated)
{
    struct result r = {0};
    json_t *spec = json_object();
    char *exact = malloc(n ? n : 1);
    memcpy(exact, script, n);
    r.rc =
        directives_apply_script("train.sh", exact, n, spec, result_add_warning, &r.warnings, &r.e);
    if (repeated)
        directives_keep_time_of_day(spec);
    if (r.rc == 0)
        r.rc = directives_finish(spec, result_add_warning, &r.warnings, &r.e);
    r.spec = json_dump_text(spec);
    json_decref(spec);
    free(exact);
    return r;
}

struct result result_of(const char *script, size_t n)
{
    return apply_as(script, n, false);
}

void result_deinit(struct result *r)
{
    buf_deinit(&r->warnings);
    free(r->spec);
}

static void check_result(struct result *r, const char *expected)
{
    if (r->rc != 0)
        fail_msg("%s", r->e.text);
    assert_string_equal(r->spec, expected);
    assert_string_equal(buf_str(&r->warnings), "");
    result_deinit(r);
}

void check_spec(const char *script, const char *expected)
{
    struct result r = result_of(script, strlen(script));
    check_result(&r, expected);
}

/* For a cron entry. */
void check_repeated(const char *script, const char *expected)
{
    struct result r = apply_as(script, strlen(script), true);
    check_result(&r, expected);
}

void check_warned(const char *script, const char *expected, const char *warning)
{
    struct result r = result_of(script, strlen(script));
    if (r.rc != 0)
        fail_msg("%s", r.e.text);
    assert_string_equal(r.spec, expected);
    if (!strstr(buf_str(&r.warnings), warning))
        fail_msg("\"%s\" is not in \"%s\"", warning, buf_str(&r.warnings));
    result_deinit(&r);
}

void check_refused(const char *script, const char *expected)
{
    struct result r = result_of(script, strlen(script));
    if (r.rc >= 0 || r.rc != (int)r.e.kind || !strstr(r.e.text, expected))
        fail_msg("%d: \"%s\" is not in \"%s\", for %s", r.rc, expected, r.e.text, script);
    result_deinit(&r);
}
