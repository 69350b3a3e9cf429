/* SPDX-License-Identifier: Apache-2.0
 *
 * Random options of jobs, by walking the table: an option that is not listed here gets, in some
 * jobs, any value of its range. So a new option is submitted, stored, loaded and sent to agents in
 * the simulation as soon as it has a row.
 *
 * Listed are options that users.c sets itself, because most of their values would keep a job from
 * ever ending, or need something that no world has: GPUs, windows, other teams.
 */
#include "simtest/options.h"

#include "base/json.h"
#include "base/str.h"
#include "simtest/world.h"

static const char *const with_rules[] = {"name", "pool", "cpus", "gpus", "memory_mib",
    "time_limit_ms", "market", "checkpoint.method", "checkpoint.every_ms", "checkpoint.at",
    "checkpoint.after", "team", "qos", "nice", "begin_at_ms", "kill_on_invalid_dep",
    "deadline_at_ms", "finish_by_ms", "work_ms", "max_uusd", "max_uusd_per_hour", "window", "nodes",
    "nodes_min", "on_loss", "script_on"};

/* Uses a random sequence of its own: a new row, or one more job with an option, does not change the
 * worlds of all other seeds. */
static bool chance(struct world *w, double p)
{
    return prng_chance(&w->options, p);
}

static bool has_rule(const struct job_attribute *a)
{
    bool is_listed = a->member_type == JOB_MEMBER_NONE || a->member_type == JOB_MEMBER_TEXT;
    for (size_t i = 0; !is_listed && i < sizeof(with_rules) / sizeof(with_rules[0]); i++)
        is_listed = str_eq(with_rules[i], a->name);
    return is_listed;
}

/* Half of the numbers are small, half are any number of the range. */
static int64_t some_number(struct world *w, const struct job_attribute *a)
{
    int64_t max = a->words ? -1 : a->max;
    while (a->words && a->words[max + 1])
        max++;
    if (max - a->min > 100 && chance(w, 0.5))
        max = a->min + 100;
    return prng_range(&w->options, a->min, max);
}

void options_random(struct world *w, struct job_spec *s)
{
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (has_rule(a) || !chance(w, 0.05))
            continue;
        if (job_member_is_number(a))
            job_member_set_number(a, s, some_number(w, a));
        else
            job_member_set_truth(a, s, chance(w, 0.5));
    }
}

uint64_t options_fields(struct world *w)
{
    uint64_t fields = 0;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        const bool has_field = a->field != JOB_FIELD_NONE && !(a->masks & JOB_ALIAS);
        if (has_field && (!has_rule(a) || (a->masks & JOB_IN_DOCUMENT)) && chance(w, 0.05))
            fields |= UPDATE_BIT(a->field);
    }
    return fields;
}

static json_t *stored_value(struct world *w, const struct job_attribute *a)
{
    switch (a->type) {
    case JOB_TYPE_URL:
    case JOB_TYPE_TEXT:
        return json_sprintf("https://example.org/%d", (int)prng_range(&w->options, 1, 9));
    case JOB_TYPE_NAME:
        return json_string("some");
    case JOB_TYPE_ENUM:
        return json_string(a->words[some_number(w, a)]);
    case JOB_TYPE_BOOL:
    case JOB_TYPE_TRUE:
    case JOB_TYPE_FALSE:
        return json_boolean(chance(w, 0.5));
    default:
        return json_integer(some_number(w, a));
    }
}

char *options_document(struct world *w)
{
    json_t *o = json_object();
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if ((a->masks & JOB_IN_DOCUMENT) && chance(w, 0.1))
            json_object_set_new(o, a->name, stored_value(w, a));
    }
    char *text = json_object_size(o) > 0 ? json_dump_text(o) : NULL;
    json_decref(o);
    return text;
}

/* ---- checks ---- */

void options_committed(struct world *w, const struct changes *c)
{
    for (size_t i = 0; i < c->n_jobs; i++)
        world_job(w, c->jobs[i].id)->spec = c->jobs[i].spec;
}

/* Returns the first row whose member differs, or NULL. */
static const struct job_attribute *difference(
    const struct job_spec *s, const struct job_spec *other)
{
    const struct job_attribute *a;
    for (size_t i = 0; (a = job_member_row(i)); i++)
        if (a->member_type != JOB_MEMBER_NONE && !job_member_is_equal(a, s, other))
            return a;
    return NULL;
}

void options_loaded(struct world *w)
{
    for (int64_t id = 1; id <= SIM_JOBS_MAX; id++) {
        const struct job *j = model_job(w->model, id);
        const struct job_attribute *a =
            j ? difference(&j->row.spec, &world_job(w, id)->spec) : NULL;
        if (a)
            world_fail(w, "job %lld was loaded with a %s that differs from the committed one",
                (long long)id, a->name);
    }
}

/* Tolerates, in a message, an older value of an option that updates can change. A rank without a
 * script of its own is not saved. */
void options_sent(struct world *w, const struct wire_desired_attempt *d)
{
    const struct job_spec *spec = &world_job(w, d->job)->spec;
    const bool no_script = d->script_on_first && d->rank > 0;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (a->wire && a->field == JOB_FIELD_NONE && !job_member_is_equal(a, spec, &d->options) &&
            !(no_script && a->member_type == JOB_MEMBER_TEXT))
            world_fail(w, "an agent received a %s of job %lld that differs from the committed one",
                a->name, (long long)d->job);
    }
}
