/* SPDX-License-Identifier: Apache-2.0
 *
 * belay update JOB KEY=VALUE...
 */
#include "base/mem.h"
#include "base/str.h"
#include "cli/inside.h"
#include "cli/slurm/slurm.h"
#include "cli/flags/updates.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_warning(void *ctx, const char *text)
{
    (void)ctx;
    cli_warn("%s", text);
}

static int read_change(json_t *changes, const char *word, struct err *e)
{
    const char *eq = strchr(word, '=');
    char shown[STR_SHOW_MAX];
    if (!eq || eq == word)
        return err_set(
            e, ERR_INVALID, "expected KEY=VALUE, such as time=2h, found %s", str_show(word, shown));
    char *key = mem_strndup(word, (size_t)(eq - word));
    int rc = updates_put(changes, key, eq + 1, false, on_warning, NULL, e);
    free(key);
    return rc;
}

static int read_changes(json_t *changes, const char **words, int n, struct err *e)
{
    int rc =
        n > 0 ? 0 : err_set(e, ERR_INVALID, "nothing to change: belay update JOB KEY=VALUE...");
    for (int i = 0; rc == 0 && i < n; i++)
        rc = read_change(changes, words[i], e);
    return rc ? rc : updates_finish(changes, on_warning, NULL, e);
}

/* Sends the changes with the token of the attempt that this process runs in. False if there is no
 * token, or it does not allow these changes. */
static bool send_inside(int64_t id, const char *path, const json_t *changes, json_t **ret_answer)
{
    struct client *c;
    struct err e;
    if (inside_job() != id || !inside_allows(changes) || inside_client(&c, &e) != 0)
        return false;
    if (client_json(c, "POST", path, changes, ret_answer, &e) != 0)
        cli_error("%s", e.text);
    client_destroy(c);
    return true;
}

/* Returns the exit code. */
static int send_as_user(int64_t id, const char *path, const json_t *changes, json_t **ret_answer)
{
    struct buf keys = {0};
    struct client *c = NULL;
    struct err e = {0};
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = client_json(c, "POST", path, changes, ret_answer, &e);
    client_destroy(c);
    if (rc != 0)
        cli_error("%s", e.text);
    if (rc != 0 && inside_job() == id && !inside_allows(changes)) {
        inside_keys(&keys);
        cli_error(
            "without the user's credentials a job can change only its own %s", buf_str(&keys));
    }
    buf_deinit(&keys);
    return rc == 0 ? CLI_OK : rc == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
}

static int change(const char *word, int64_t id, const json_t *changes, bool json)
{
    const char *path = CLI_PATH("/api/v1/jobs/%lld/update", (long long)id);
    json_t *v = NULL;
    int rc = CLI_FAILED;
    if (send_inside(id, path, changes, &v))
        rc = v ? CLI_OK : CLI_FAILED;
    else
        rc = send_as_user(id, path, changes, &v);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("job %s is changed\n", word);
    json_decref(v);
    return rc;
}

static int run_words(const struct cli_args *a)
{
    char tasks[SLURM_TASKS_MAX] = "", shown[STR_SHOW_MAX];
    int64_t id;
    struct err e;
    const char *own = getenv("BELAY_JOB_ID"), **changed = a->rest + 1;
    int n_changed = a->n_rest - 1;
    const char *job = a->n_rest > 0 ? a->rest[0] : NULL;
    if (job && strchr(job, '=') && own) { /* the job that this process runs in */
        job = own;
        changed--;
        n_changed++;
    }
    if (!job) {
        cli_error("expected a job: belay update JOB KEY=VALUE...");
        return CLI_USAGE;
    }
    if (!slurm_job_name(job, &id, tasks)) {
        cli_error("expected a job's number, 42, or a task, 42_7, found %s", str_show(job, shown));
        return CLI_USAGE;
    }
    json_t *changes = json_object();
    int rc = read_changes(changes, changed, n_changed, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    if (*tasks)
        json_object_set_new(changes, "tasks", json_text(tasks));
    rc = rc != 0 ? CLI_USAGE : change(job, id, changes, a->json);
    json_decref(changes);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_update, argc, argv, false, NULL, NULL, &a);
    if (rc == 0)
        rc = run_words(&a);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_update = {"update", "[OPTION...] [JOB] KEY=VALUE...",
    "change options of submitted jobs", run, NULL, false, true,
    .examples = "belay update 42 time=12h\n"
                "belay update 42 priority=50 market=spot\n"};
