/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's spec as JSON, as stored: values that, written out again, are read as the same; or an
 * error, and nothing else. What is read without a tree of values is the same. As of a submit:
 * values in their ranges.
 */
#include "fuzz/check.h"
#include "job/spec_json.h"
#include "job/spec_plain.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct job_spec *s)
{
    struct job_spec again = job_spec_default;
    struct err e;
    json_t *o = job_spec_to_json(s, 0), *shown = json_object();
    job_spec_show(s, shown);
    if (o) {
        int rc = job_spec_from_json(o, &again, &e);
        assert(rc == 0);
        (void)rc;
    }
    json_t *o2 = job_spec_to_json(&again, 0);
    assert(o ? json_equal(o, o2) : !o2);
    json_decref(o);
    json_decref(o2);
    json_decref(shown);
}

static void check_asked(const json_t *v)
{
    struct job_spec s = job_spec_default;
    struct json_reader r;
    struct err e = {0};
    json_reader_init(&r, v, "", &e);
    job_spec_read(&r, "", &s);
    if (json_reader_finish(&r) != 0)
        check_error(r.rc, &e);
    else
        round_trip(&s);
    assert(s.need.cpus >= 1 && s.need.cpus <= 4096 && s.nodes >= 1 && s.need.memory_mib >= 0);
    assert(s.market <= WISH_ON_DEMAND && s.script_on <= SCRIPT_ON_FIRST && s.work_ms >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_spec s, fast;
    struct err e = {0};
    json_t *v;
    const bool is_plain = job_spec_read_plain((const char *)data, size, &fast);
    if (json_parse((const char *)data, size, 1 << 20, &v, &e) != 0) {
        assert(!is_plain);
        return 0;
    }
    memset(&s, CHECK_PATTERN, sizeof(s));
    check_asked(v);
    int rc = job_spec_from_json(v, &s, &e);
    json_decref(v);
    assert(!is_plain || (rc == 0 && memcmp(&s, &fast, sizeof(s)) == 0));
    if (rc == 0) {
        round_trip(&s);
    } else {
        check_error(rc, &e);
        check_untouched(&s, sizeof(s));
    }
    return 0;
}
