/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a submit: a job specification within its limits that is read back unchanged after it
 * was written; or an error.
 */
#include "base/mem.h"
#include "fuzz/check.h"
#include "scheduler/api/jobspec.h"
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *parse_own(const char *text, json_type type)
{
    json_t *v = NULL;
    struct err e;
    int rc = json_parse(text, strlen(text), JOBSPEC_BYTES_MAX * 8, &v, &e);
    assert(rc == 0 && json_typeof(v) == type);
    (void)rc, (void)type;
    return v;
}

static void check_limits(const struct jobspec *s)
{
    const struct job_row *r = &s->row;
    check_line(r->spec.name);
    assert(!r->spec.pool[0] || str_is_name(r->spec.pool, CORE_NAME_MAX - 1));
    assert(r->user[0] == '\0' && r->spec.need.cpus >= 1 && r->spec.need.gpus >= 0 &&
           r->spec.need.memory_mib >= 0);
    assert(r->spec.time_limit_ms >= 0 && r->spec.ckpt_keep >= 1);
    assert(r->spec.ckpt_every_ms == CKPT_EVERY_AUTO || r->spec.ckpt_every_ms >= 1000);
    assert(r->spec.ckpt_signal >= 1 && r->spec.ckpt_signal <= 64 &&
           r->spec.ckpt_signal != SIGKILL && r->spec.ckpt_signal != SIGSTOP);
    assert(str_starts(s->texts.script, "#!") && strlen(s->texts.script) <= JOBSPEC_SCRIPT_MAX);
    assert(s->texts.cwd[0] == '/');
}

/* Converts the specification to a body. */
static json_t *to_json(const struct jobspec *s)
{
    const struct job_row *r = &s->row;
    json_t *o = json_object(), *c = json_object(), *retry = json_object();
    json_object_set_new(o, "script", json_text(s->texts.script));
    json_object_set_new(o, "cwd", json_text(s->texts.cwd));
    json_object_set_new(o, "name", json_text(r->spec.name));
    json_object_set_new(o, "pool", json_text(r->spec.pool));
    json_object_set_new(o, "cpus", json_integer(r->spec.need.cpus));
    json_object_set_new(o, "gpus", json_integer(r->spec.need.gpus));
    json_object_set_new(o, "memory_mib", json_integer(r->spec.need.memory_mib));
    json_object_set_new(o, "time_limit_ms", json_integer(r->spec.time_limit_ms));
    json_object_set_new(o, "market", json_string(market_wish_names[r->spec.market]));
    for (int k = 0; k < RETRY_KINDS; k++)
        if (r->spec.retries.n[k] != 0 && r->spec.retries.n[k] != RETRIES_DEFAULT)
            json_object_set_new(retry, retry_kind_names[k],
                r->spec.retries.n[k] == RETRIES_UNLIMITED
                    ? json_null()
                    : json_integer(
                          r->spec.retries.n[k] == RETRIES_NEVER ? 0 : r->spec.retries.n[k]));
    json_object_set_new(o, "retry", retry);
    json_object_set_new(o, "team", json_text(r->spec.team));
    json_object_set_new(o, "qos", json_text(r->spec.qos));
    json_object_set_new(o, "nice", json_integer(r->spec.nice));
    json_object_set_new(c, "method", json_string(ckpt_method_names[r->spec.method]));
    json_object_set_new(c, "every_ms",
        json_integer(r->spec.ckpt_every_ms == CKPT_EVERY_AUTO ? 0 : r->spec.ckpt_every_ms));
    json_object_set_new(c, "at", json_string(r->spec.ckpt_at));
    json_object_set_new(c, "keep", json_integer(r->spec.ckpt_keep));
    json_object_set_new(c, "after", json_string(ckpt_after_names[r->spec.ckpt_after]));
    json_object_set_new(c, "keep_every", json_integer(r->spec.ckpt_keep_every));
    json_object_set_new(c, "signal", json_integer(r->spec.ckpt_signal));
    json_object_set_new(o, "checkpoint", c);
    json_object_set_new(o, "args", parse_own(s->texts.args_json, JSON_ARRAY));
    json_object_set_new(o, "env", parse_own(s->texts.env_json, JSON_OBJECT));
    json_object_set_new(o, "labels", parse_own(s->texts.labels_json, JSON_OBJECT));
    json_object_set_new(o, "launch", parse_own(s->texts.launch_json, JSON_OBJECT));
    if (s->texts.notify_json)
        json_object_set_new(o, "notify", parse_own(s->texts.notify_json, JSON_OBJECT));
    return o;
}

static void round_trip(const struct jobspec *s)
{
    struct jobspec again;
    struct err e;
    json_t *o = to_json(s), *o2;
    int rc = jobspec_parse(o, &again, &e);
    assert(rc == 0);
    (void)rc;
    o2 = to_json(&again);
    assert(json_equal(o, o2));
    json_decref(o);
    json_decref(o2);
    jobspec_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobspec s;
    struct err e = {0};
    json_t *v;
    if (json_parse((const char *)data, size, JOBSPEC_BYTES_MAX, &v, &e) != 0)
        return 0;
    memset(&s, CHECK_PATTERN, sizeof(s));
    int rc = jobspec_parse(v, &s, &e);
    json_decref(v);
    if (rc == 0) {
        check_limits(&s);
        round_trip(&s);
        jobspec_deinit(&s);
    } else {
        check_error(rc, &e);
        check_untouched(&s, sizeof(s));
    }
    return 0;
}
