/* SPDX-License-Identifier: Apache-2.0
 *
 * A script's #BELAY and #SBATCH lines; or, if the input begins with '-', one flag of the command
 * line. An accepted input gives a specification that can be sent, and applying it again changes
 * nothing.
 */
#include "base/mem.h"
#include "cli/flags/directives.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_warning(void *ctx, const char *text)
{
    assert(str_starts(text, ctx));
    check_line(text);
}

static int apply_script(const char *text, size_t n, json_t *spec, struct err *e)
{
    return directives_apply_script(
        "train.sh", text, n, spec, on_warning, (void *)(uintptr_t) "train.sh:", e);
}

/* "-name=value" or "-name" */
static int apply_flag(const char *text, size_t n, json_t *spec, struct err *e)
{
    char *name = mem_strndup(text + 1, n - 1), *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    int rc = directives_apply_flag("command line", name, value, false, spec, on_warning,
        (void *)(uintptr_t) "command line:", e);
    free(name);
    return rc;
}

static void check_range(const json_t *o, const char *key, int64_t min, int64_t max)
{
    const json_t *v = json_object_get(o, key);
    assert(
        !v || (json_is_integer(v) && json_integer_value(v) >= min && json_integer_value(v) <= max));
    (void)v, (void)min, (void)max;
}

static void check_spec(const json_t *spec)
{
    const json_t *c = json_object_get(spec, "checkpoint");
    const json_t *grace = json_object_get(json_object_get(spec, "launch"), "grace");
    char *text = json_dump_text(spec);
    json_t *again;
    struct err e;
    int rc = json_parse(text, strlen(text), SIZE_MAX, &again, &e);
    assert(rc == 0 && json_equal(spec, again));
    (void)rc;
    check_range(spec, "cpus", 1, 4096);
    check_range(spec, "gpus", 0, 64);
    check_range(spec, "memory_mib", 1, INT64_MAX);
    check_range(spec, "time_limit_ms", 0, INT64_MAX);
    check_range(json_object_get(spec, "retry"), "failed", 0, 1000);
    check_range(spec, "nice", 0, 10000000);
    check_range(c, "keep", 1, 1000);
    check_range(c, "signal", 1, 64);
    check_range(c, "every_ms", 0, INT64_MAX);
    check_range(grace, "signal", 1, 64);
    check_range(grace, "before_ms", 0, 65535000);
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int (*apply)(const char *text, size_t n, json_t *spec, struct err *e) =
        size > 0 && data[0] == '-' ? apply_flag : apply_script;
    json_t *spec = json_object();
    struct err e = {0};
    int rc = apply((const char *)data, size, spec, &e);
    check_spec(spec);
    if (rc == 0) {
        json_t *once = json_deep_copy(spec);
        rc = apply((const char *)data, size, spec, &e);
        assert(rc == 0 && json_equal(once, spec));
        json_decref(once);
        rc = directives_finish(spec, NULL, NULL, &e);
        check_spec(spec);
        if (rc != 0)
            check_error(rc, &e);
        else
            assert(!json_object_get(spec, "mib_per_cpu"));
    } else {
        check_error(rc, &e);
        assert(str_starts(e.text, apply == apply_flag ? "command line: " : "train.sh:"));
    }
    json_decref(spec);
    return 0;
}
