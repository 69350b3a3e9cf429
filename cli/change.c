/* SPDX-License-Identifier: Apache-2.0
 *
 * See change.h.
 */
#include "cli/change.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "42_7" or "42_[5-10,12]": tasks of an array, started or not. */
static int cancel_tasks(const char *word, bool json)
{
    size_t n = strcspn(word, "_");
    const char *tasks = word + n + 1;
    bool many = tasks[0] == '[' && str_ends(tasks, "]");
    char *array = mem_strndup(word, n),
         *text = many ? mem_strndup(tasks + 1, strlen(tasks) - 2) : mem_strdup(tasks);
    json_t *v = NULL, *body = json_pack("{s:o}", "tasks", json_text(text));
    int64_t id;
    int rc = cli_job_id(array, &id);
    if (rc == 0) {
        v = cli_post(CLI_PATH("/api/v1/jobs/%lld/cancel", (long long)id), body);
    }
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("tasks %s of job %lld are being cancelled\n", text, (long long)id);
    rc = v ? CLI_OK : rc == 0 ? CLI_FAILED : rc;
    json_decref(v);
    json_decref(body);
    free(array);
    free(text);
    return rc;
}

/* Whether the requeued job is being saved first. */
static bool is_saved_first(int64_t id)
{
    json_t *v = cli_get(CLI_PATH("/api/v1/jobs/%lld", (long long)id));
    bool is_first = json_is_string(json_object_get(json_object_get(v, "job"), "requeue_asked_at"));
    json_decref(v);
    return is_first;
}

/* word: the job as it was named, "42" or "42_7". */
static void print_change(const char *word, const char *action, int64_t id, const char *done)
{
    if (str_eq(action, "requeue") && is_saved_first(id))
        printf("job %s is being saved, then it is stopped and queued again. If the save fails it "
               "keeps running: belay show %s has the reason (--force stops it in any case)\n",
            word, word);
    else
        printf("job %s %s\n", word, done);
}

static int change_one(
    const char *word, const char *action, const json_t *body, const char *done, bool json)
{
    int64_t id;
    if (str_eq(action, "cancel") && strchr(word, '_'))
        return cancel_tasks(word, json);
    int rc = cli_job_id(word, &id);
    if (rc != 0)
        return rc;
    json_t *v = cli_post(CLI_PATH("/api/v1/jobs/%lld/%s", (long long)id, action), body);
    if (v && json)
        cli_print_json(v);
    else if (v)
        print_change(word, action, id, done);
    rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

int change_job(const char *word, const char *action, const char *done, bool json)
{
    return change_one(word, action, NULL, done, json);
}

enum { VAL_FROM_SCRATCH = 1, VAL_FORCE };

struct change_options {
    bool from_scratch, force;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct change_options *w = ctx;
    (void)arg;
    *(val == VAL_FORCE ? &w->force : &w->from_scratch) = true;
    return CLI_OK;
}

#define FROM_SCRATCH                                                                               \
    {                                                                                              \
        "from-scratch", 0, POPT_ARG_NONE, NULL, VAL_FROM_SCRATCH,                                  \
            "the job starts from the beginning: its checkpoints are no longer used", NULL          \
    }

const struct poptOption change_from_scratch[] = {FROM_SCRATCH, POPT_TABLEEND};

const struct poptOption change_requeue[] = {
    {"force", 0, POPT_ARG_NONE, NULL, VAL_FORCE,
        "stop the job even if it cannot be saved; the work since its last checkpoint is lost then",
        NULL},
    FROM_SCRATCH,
    POPT_TABLEEND,
};

int change_words(const struct cli_args *a, const char *action, const json_t *body, const char *done)
{
    int rc = CLI_OK;
    for (int i = 0; (rc == CLI_OK || rc == CLI_FAILED) && i < a->n_rest; i++) {
        int one = change_one(a->rest[i], action, body, done, a->json);
        rc = one > rc ? one : rc;
    }
    return rc;
}

int change_jobs(
    const struct verb *v, const char *action, const char *done, int argc, const char **argv)
{
    struct cli_args a;
    struct change_options w = {0};
    int rc = cli_parse(v, argc, argv, false, on_option, &w, &a);
    if (rc == 0 && a.n_rest == 0) {
        cli_error("expected a job: belay %s JOB...", v->name);
        rc = CLI_USAGE;
    }
    json_t *body = NULL;
    if (w.from_scratch || w.force)
        body = json_pack("{s:b}", w.from_scratch ? "from_scratch" : "force", 1);
    if (rc == 0)
        rc = change_words(
            &a, action, body, w.from_scratch ? "starts again from the beginning" : done);
    json_decref(body);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}
