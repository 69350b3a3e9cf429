/* SPDX-License-Identifier: Apache-2.0
 *
 * Output formats, lists of hosts, times and file names from scripts: nothing exceeds a limit, and
 * an accepted value can be written.
 */
#include "base/mem.h"
#include "job/pattern.h"
#include "base/str.h"
#include "cli/slurm/scontrol_update.h"
#include "cli/slurm/slurm.h"
#include "cli/flags/updates.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct slurm_field fields[] = {{"jobid", 'i', "JOBID", -12, 0},
    {"name", 'j', "NAME", 10, 1}, {"state", 't', "ST", 10, 2}, {NULL, 0, NULL, 0, 0}};

static void value(const void *row, int what, struct buf *out)
{
    buf_adds(out, what == 1 ? row : "42");
}

static void formats(const char *text)
{
    int (*const parsers[])(const char *, const struct slurm_field *, struct slurm_format *,
        struct err *) = {slurm_format_letters, slurm_format_names, slurm_format_sacct};
    for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++) {
        struct slurm_format f;
        struct buf out = {0};
        struct err e;
        if (parsers[i](text, fields, &f, &e) == 0) {
            size_t most = SLURM_FORMAT_MAX + SLURM_FIELDS_MAX * (4 * SLURM_WIDTH_MAX + 64);
            assert(f.n <= SLURM_FIELDS_MAX);
            slurm_format_line(&f, value, "tr\xc3\xa4ining", &out);
            assert(out.len <= most && out.data[out.len - 1] == '\n');
            slurm_format_line(&f, value, NULL, &out);
            slurm_format_plain(&f, "|", true, value, text, &out);
        }
        slurm_format_deinit(&f);
        buf_deinit(&out);
    }
}

static void words(const char *text)
{
    struct buf out = {0};
    struct wall at;
    struct err e;
    char *name = NULL;
    if (slurm_hosts_expand(text, &out, &e) == 0)
        assert(out.len == 0 || out.data[out.len - 1] == '\n');
    if (slurm_time_parse(text, (struct wall){1790000000000}, &at, &e) == 0)
        assert(wall_is_set(at));
    assert(slurm_job_number(text) >= 0);
    char tasks[SLURM_TASKS_MAX];
    int64_t id;
    if (slurm_job_name(text, &id, tasks))
        assert(id > 0 && strlen(tasks) < SLURM_TASKS_MAX);
    slurm_list_has(text, "running");
    const struct pattern_values v = {.job = 42, .name = "n", .user = "u", .node = "h.x", .rank = 1};
    if (pattern_expand(text, &v, &name, &e) == 0)
        assert(strlen(name) <= PATTERN_PATH_MAX);
    pattern_has_rank(text);
    free(name);
    buf_deinit(&out);
}

/* A word of scontrol update. */
static void update(const char *text)
{
    json_t *job = json_pack(
               "{s:i,s:i,s:I}", "nodes", 2, "cpus", 4, "time_limit_ms", (json_int_t)3600000),
           *changes = json_object();
    struct err e = {0};
    char *warning;
    int rc = scontrol_update_word(text, job, changes, &warning, &e);
    assert(rc == 0 || e.text[0]);
    if (rc == 0)
        updates_finish(changes, NULL, NULL, &e);
    free(warning);
    json_decref(changes);
    json_decref(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    formats(text);
    if (size < 4096) {
        words(text);
        update(text);
    }
    free(text);
    return 0;
}
