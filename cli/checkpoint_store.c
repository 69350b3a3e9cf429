/* SPDX-License-Identifier: Apache-2.0
 *
 * See checkpoint_store.h. The store decides what a user may do. belayd is only asked for the
 * store's address and, before a deletion, whether the job is still alive.
 */
#include "cli/checkpoint_store.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/store/layout.h"
#include "ckpt/master.h"
#include "cli/keys.h"
#include "cli/workdir/tar.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct call {
    const struct checkpoints_options *o;
    struct ckpt_job job;
    struct ckpt_crypt crypt; /* of the job */
    struct ckpt_id id;       /* attempt 0 = none */
    const char *path;        /* the second word; may be NULL */
    int64_t progress;        /* set by get_newest; -1 = unknown */
};

struct action {
    const char *name;
    const char *words; /* the words that follow */
    bool takes_path;
    /* takes_id: accepts @ATTEMPT.SEQUENCE; needs_id: requires it, instead of the newest */
    bool takes_id, needs_id;
    int (*run)(struct call *c, struct err *e);
};

static void print_id(const struct call *c, const char *done)
{
    printf("checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64 " %s\n", c->id.attempt,
        c->id.sequence, c->job.job, done);
}

static json_t *json_id(const struct call *c)
{
    return json_pack("{s:I,s:I,s:I}", "job", (json_int_t)c->job.job, "attempt",
        (json_int_t)c->id.attempt, "sequence", (json_int_t)c->id.sequence);
}

/* Prints the result of an action that only reports success. */
static int print_done(const struct call *c, const char *done, json_t *more)
{
    json_t *o = json_id(c);
    json_object_update(o, more);
    if (c->o->json)
        cli_print_json(o);
    else
        print_id(c, done);
    json_decref(more);
    json_decref(o);
    return 0;
}

/* ---- list ---- */

static int add_info(void *ctx, const struct ckpt_info *info)
{
    char saved[TIME_ISO_MAX];
    if (info->unreadable) {
        json_array_append_new(
            ctx, json_pack("{s:I,s:I,s:b,s:b}", "attempt", (json_int_t)info->id.attempt, "sequence",
                     (json_int_t)info->id.sequence, "pinned", (int)info->pinned, "unreadable", 1));
        return 0;
    }
    time_format_iso(info->saved_at, saved);
    json_array_append_new(
        ctx, json_pack("{s:I,s:I,s:s,s:I,s:I,s:o,s:b}", "attempt", (json_int_t)info->id.attempt,
                 "sequence", (json_int_t)info->id.sequence, "saved_at", saved, "bytes",
                 (json_int_t)info->bytes, "files", (json_int_t)info->files, "progress",
                 info->progress < 0 ? json_null() : json_integer(info->progress), "pinned",
                 (int)info->pinned));
    return 0;
}

static void print_list(const json_t *all)
{
    struct table *t = table_create();
    size_t i;
    json_t *row;
    char text[32];
    table_column(t, "CHECKPOINT", false);
    table_column(t, "SAVED", true);
    table_column(t, "SIZE", true);
    table_column(t, "FILES", true);
    table_column(t, "STEP", true);
    table_column(t, "PINNED", false);
    json_array_foreach(all, i, row)
    {
        table_row(t);
        table_cell(t, "%lld.%lld", (long long)cli_int(row, "attempt", 0),
            (long long)cli_int(row, "sequence", 0));
        if (json_is_true(json_object_get(row, "unreadable"))) {
            table_cell(t, "unreadable");
            table_cell(t, "-");
            table_cell(t, "-");
        } else {
            table_cell(t, "%s", cli_ago(row, "saved_at", text, sizeof(text)));
            str_format_bytes((uint64_t)cli_int(row, "bytes", 0), text, sizeof(text));
            table_cell(t, "%s", text);
            table_cell(t, "%lld", (long long)cli_int(row, "files", 0));
        }
        if (cli_int(row, "progress", -1) < 0)
            table_cell(t, "-");
        else
            table_cell(t, "%lld", (long long)cli_int(row, "progress", 0));
        table_cell(t, "%s", json_is_true(json_object_get(row, "pinned")) ? "yes" : "-");
    }
    table_print(t);
}

static int list(struct call *c, struct err *e)
{
    json_t *all = json_array(),
           *o = json_pack("{s:I,s:o}", "job", (json_int_t)c->job.job, "checkpoints", all);
    int rc = ckpt_list(&c->job, add_info, all, e);
    if (rc == 0 && c->o->json)
        cli_print_json(o);
    else if (rc == 0 && json_array_size(all) == 0)
        cli_print_empty("no checkpoints");
    else if (rc == 0)
        print_list(all);
    json_decref(o);
    return rc;
}

/* ---- show ---- */

static const struct {
    const char *name;
    char letter;
} types[] = {
    [MANIFEST_DIR] = {"dir", 'd'},
    [MANIFEST_FILE] = {"file", '-'},
    [MANIFEST_LINK] = {"link", 'l'},
    [MANIFEST_HARD] = {"hard", 'h'},
};

static json_t *json_entry(const struct manifest_entry *entry)
{
    return json_pack("{s:s,s:s,s:s?,s:i,s:I,s:I}", "path", entry->path, "type",
        types[entry->type].name, "target", entry->target, "mode", (int)entry->mode, "size",
        (json_int_t)entry->size, "mtime_ns", (json_int_t)entry->mtime_ns);
}

/* The program that saved chose the names. */
static void print_path(struct table *t, const struct manifest_entry *entry)
{
    char *text = entry->target ? mem_printf("%s -> %s", entry->path, entry->target)
                               : mem_strdup(entry->path);
    str_sanitize(text, strlen(text));
    table_cell(t, "%s", text);
    free(text);
}

static void print_entries(const struct manifest *m)
{
    char saved[CLI_LOCAL_MAX], size[32], files[CLI_COUNT_MAX], chunks[CLI_COUNT_MAX];
    struct table *t = table_create();
    str_format_bytes((uint64_t)manifest_bytes(m), size, sizeof(size));
    printf("checkpoint    %" PRId64 ".%" PRId64 " of job %" PRId64 " of cluster %s\n",
        m->id.attempt, m->id.sequence, m->job, m->cluster);
    printf("saved         %s\n", cli_local(m->saved_at, true, saved));
    printf("holds         %s in %s, %s\n", size, cli_count(manifest_files(m), "file", files),
        cli_count((int64_t)m->n_chunks, "chunk", chunks));
    if (m->progress >= 0)
        printf("step          %" PRId64 "\n", m->progress);
    putchar('\n');
    table_column(t, "MODE", false);
    table_column(t, "SIZE", true);
    table_column(t, "PATH", false);
    for (size_t i = 0; i < m->n_entries; i++) {
        const struct manifest_entry *entry = &m->entries[i];
        table_row(t);
        table_cell(t, "%c%04o", types[entry->type].letter, (unsigned int)entry->mode);
        str_format_bytes((uint64_t)entry->size, size, sizeof(size));
        table_cell(t, "%s", entry->type == MANIFEST_FILE ? size : "-");
        print_path(t, entry);
    }
    table_print(t);
}

static int show(struct call *c, struct err *e)
{
    struct manifest m = {0};
    int rc = layout_read_manifest(&c->job, c->id, &m, e);
    if (rc != 0)
        return rc;
    if (c->o->json) {
        json_t *o = json_id(c), *entries = json_array();
        add_info(entries, &(struct ckpt_info){.id = m.id,
                              .bytes = manifest_bytes(&m),
                              .files = manifest_files(&m),
                              .progress = m.progress,
                              .saved_at = m.saved_at});
        json_object_del(json_array_get(entries, 0), "pinned");
        json_object_update(o, json_array_get(entries, 0));
        json_array_clear(entries);
        for (size_t i = 0; i < m.n_entries; i++)
            json_array_append_new(entries, json_entry(&m.entries[i]));
        json_object_set_new(o, "entries", entries);
        cli_print_json(o);
        json_decref(o);
    } else {
        print_entries(&m);
    }
    manifest_deinit(&m);
    return 0;
}

/* ---- get, verify, pin, delete ---- */

static int print_copied(const struct call *c, const struct ckpt_stats *stats, const char *where)
{
    char text[PATH_MAX + 64];
    snprintf(text, sizeof(text), "is in %s: %" PRId64 " files", where, stats->files);
    return print_done(c, text,
        json_pack("{s:s,s:I,s:I}", "path", where, "files", (json_int_t)stats->files, "bytes",
            (json_int_t)stats->bytes));
}

static int get(struct call *c, struct err *e)
{
    struct ckpt_stats stats;
    char *dir = fs_absolute(c->path);
    int rc = ckpt_get(&c->job, c->id, dir, NULL, &stats, e);
    if (rc == 0)
        print_copied(c, &stats, dir);
    free(dir);
    return rc;
}

static int verify(struct call *c, struct err *e)
{
    int rc = ckpt_verify(&c->job, c->id, e);
    return rc ? rc
              : print_done(c, "is intact: every byte was verified", json_pack("{s:b}", "whole", 1));
}

static int pin(struct call *c, struct err *e)
{
    int rc = ckpt_pin(&c->job, c->id, e);
    return rc ? rc : print_done(c, "is pinned", json_pack("{s:b}", "pinned", 1));
}

static int unpin(struct call *c, struct err *e)
{
    int rc = ckpt_unpin(&c->job, c->id, e);
    return rc ? rc : print_done(c, "is not pinned", json_pack("{s:b}", "pinned", 0));
}

/* Whether no attempt can still save there, according to the store or belayd. */
static int has_ended(const struct call *c, bool *ret_ended, struct err *e)
{
    struct client *client;
    struct err ignored;
    json_t *v = NULL;
    int rc = ckpt_is_closed(&c->job, ret_ended, e);
    if (rc != 0 || *ret_ended || c->o->location.store || c->o->location.config ||
        client_create(&client, &ignored) != 0)
        return rc;
    const char *path = CLI_PATH("/api/v1/jobs/%" PRId64, c->job.job);
    if (client_json(client, "GET", path, NULL, &v, &ignored) == 0)
        *ret_ended = str_eq(cli_text(json_object_get(v, "job"), "state"), "ended");
    json_decref(v);
    client_destroy(client);
    return 0;
}

static int check_delete(const struct call *c, struct err *e)
{
    struct layout_ids ids = {0};
    bool ended = c->o->force;
    int rc = ended ? 0 : layout_list_ids(&c->job, &ids, e);
    if (rc == 0 && ids.n > 0 && layout_compare_ids(ids.v[0], c->id) == 0) {
        rc = has_ended(c, &ended, e);
        if (rc == 0 && !ended)
            rc = err_set(e, ERR_CONFLICT,
                "the job may be running and would resume from it, its newest checkpoint: --force "
                "deletes it anyway");
    }
    layout_ids_deinit(&ids);
    return rc;
}

static int remove_one(struct call *c, struct err *e)
{
    int rc = check_delete(c, e);
    if (rc == 0)
        rc = ckpt_remove(&c->job, c->id, e);
    return rc ? rc : print_done(c, "is removed", json_object());
}

/* ---- export ---- */

static bool is_archive(const char *path)
{
    return str_eq(path, "-") || str_ends(path, ".tar");
}

/* Written under a temporary name first; never replaces an existing file. */
static int write_archive(const char *tree, const char *file, struct err *e)
{
    char *temp = mem_printf("%s.part", tree);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int rc = fd < 0 ? err_errno(e, errno, "make %s", temp) : tar_write(fd, tree, e);
    if (fd >= 0 && close(fd) != 0 && rc == 0)
        rc = err_errno(e, errno, "write %s", temp);
    if (rc == 0 && link(temp, file) != 0)
        rc = errno == EEXIST ? err_set(e, ERR_CONFLICT, "%s already exists", file)
                             : err_errno(e, errno, "make %s", file);
    if (fd >= 0)
        unlink(temp);
    free(temp);
    return rc;
}

/* Everything is verified before the first byte of the archive is written. For that it is unpacked
 * for a while next to the archive, or in TMPDIR. */
static int export_archive(struct call *c, struct err *e)
{
    bool to_stdout = str_eq(c->path, "-");
    const char *base = getenv("TMPDIR");
    struct ckpt_stats stats;
    struct err ignored;
    char unique[17];
    if (to_stdout && isatty(STDOUT_FILENO))
        return err_set(e, ERR_INVALID,
            "will not write an archive to a terminal: name a file, or pipe it to tar");
    random_hex(8, unique);
    char *file = to_stdout ? mem_printf("%s/belay-export", base && base[0] ? base : "/tmp")
                           : fs_absolute(c->path);
    char *tree = mem_printf("%s.%s", file, unique);
    int rc =
        !to_stdout && fs_exists(file) ? err_set(e, ERR_CONFLICT, "%s already exists", file) : 0;
    if (rc == 0)
        rc = ckpt_get(&c->job, c->id, tree, NULL, &stats, e);
    if (rc == 0)
        rc = to_stdout ? tar_write(STDOUT_FILENO, tree, e) : write_archive(tree, file, e);
    fs_remove_tree(tree, &ignored);
    if (rc == 0 && !to_stdout)
        print_copied(c, &stats, file);
    free(tree);
    free(file);
    return rc;
}

static int export(struct call *c, struct err *e)
{
    return is_archive(c->path) ? export_archive(c, e) : get(c, e);
}

/* ---- dispatch ---- */

#define ANY "JOB[@ATTEMPT.SEQUENCE]"
#define ONE "JOB@ATTEMPT.SEQUENCE"

static const struct action actions[] = {
    {"list", "JOB", false, false, false, list},
    {"show", ANY, false, true, false, show},
    {"get", ANY " DIR", true, true, false, get},
    {"verify", ANY, false, true, false, verify},
    {"pin", ANY, false, true, false, pin},
    {"unpin", ONE, false, true, true, unpin},
    {"remove", ONE, false, true, true, remove_one},
    {"export", ANY " DIR|FILE.tar|-", true, true, false, export},
};

static const struct action *find_action(const char *name)
{
    if (cli_is_remove(name))
        name = "remove";
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (str_eq(actions[i].name, name))
            return &actions[i];
    return NULL;
}

bool checkpoints_has(const char *action)
{
    return find_action(action) != NULL;
}

/* "42" or "42@3.7". */
static bool parse_word(const struct action *a, const char *word, struct call *c)
{
    const char *at = strchr(word, '@'), *dot = at ? strchr(at, '.') : NULL;
    char *job = mem_strndup(word, at ? (size_t)(at - word) : strlen(word));
    char *attempt = dot ? mem_strndup(at + 1, (size_t)(dot - at - 1)) : NULL;
    bool good = str_to_i64(job, 1, INT64_MAX, "job", &c->job.job, NULL) == 0;
    if (at)
        good = good && a->takes_id && dot &&
               str_to_i64(attempt, 1, CKPT_NUMBER_MAX - 1, "attempt", &c->id.attempt, NULL) == 0 &&
               str_to_i64(dot + 1, 1, CKPT_NUMBER_MAX, "sequence", &c->id.sequence, NULL) == 0;
    good = good && (at || !a->needs_id);
    free(attempt);
    free(job);
    if (!good)
        cli_error("expected %s, found \"%.100s\" (belay checkpoint list JOB lists them)",
            a->needs_id   ? ONE
            : a->takes_id ? ANY
                          : "JOB",
            word);
    return good;
}

static int newest(struct call *c, struct err *e)
{
    struct layout_ids ids = {0};
    int rc = layout_check_job(&c->job, e);
    if (rc == 0)
        rc = layout_list_ids(&c->job, &ids, e);
    if (rc == 0 && ids.n == 0)
        rc = err_set(e, ERR_NOT_FOUND, "job %" PRId64 " has no checkpoint there", c->job.job);
    else if (rc == 0)
        c->id = ids.v[0];
    layout_ids_deinit(&ids);
    return rc;
}

static int take_keys(struct call *c, const struct store_location *location, struct err *e)
{
    struct master master;
    int rc = location->key_file ? master_read(location->key_file, &master, e) : 0;
    if (location->key_file && rc == 0) {
        master_job_crypt(&master, c->job.job, &c->crypt);
        master_wipe(&master);
    }
    c->job.crypt = &c->crypt;
    return rc;
}

/* Which checkpoint an object's error is about, and what else there is. */
static int name_checkpoint(const struct call *c, struct err *e)
{
    const struct err inner = *e;
    return err_set(e, inner.kind,
        "checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64
        " cannot be used: %s. belay checkpoint list %" PRId64 " shows the others",
        c->id.attempt, c->id.sequence, c->job.job, inner.text, c->job.job);
}

static int with_store(const struct action *a, struct call *c, struct err *e)
{
    struct store_location location;
    struct store_net *net = NULL;
    int rc = store_location_find(&c->o->location, &location, e);
    if (rc == 0)
        rc = take_keys(c, &location, e);
    if (rc == 0)
        rc = keys_get(location.store, &net, e);
    if (rc == 0)
        rc = store_open(location.store, &(struct store_options){.net = net, .existing = true},
            &c->job.store, e);
    if (rc == 0) {
        c->job.cluster = location.cluster;
        if (a->takes_id && c->id.attempt == 0)
            rc = newest(c, e);
        if (rc == 0)
            rc = a->run(c, e);
        if (rc == ERR_CORRUPT && a->takes_id)
            rc = name_checkpoint(c, e);
        store_close(c->job.store);
    }
    store_net_destroy(net);
    crypt_wipe(&c->crypt);
    store_location_deinit(&location);
    return rc;
}

static int get_newest(struct call *c, struct err *e)
{
    struct manifest m = {0};
    struct ckpt_stats stats;
    int rc = layout_read_manifest(&c->job, c->id, &m, e);
    if (rc == 0) {
        c->progress = m.progress;
        rc = ckpt_get(&c->job, c->id, c->path, NULL, &stats, e);
    }
    manifest_deinit(&m);
    return rc;
}

int checkpoints_get_newest(int64_t job, const char *dir, int64_t *ret_progress, struct err *e)
{
    static const struct action a = {.name = "get", .takes_id = true, .run = get_newest};
    struct checkpoints_options o = {0};
    struct call c = {.o = &o, .path = dir};
    c.job.job = job;
    int rc = with_store(&a, &c, e);
    if (rc == 0)
        *ret_progress = c.progress;
    return rc;
}

int checkpoints_run(
    const struct checkpoints_options *o, const char *action, const char *const *words, int n_words)
{
    const struct action *a = find_action(action);
    struct call c = {.o = o};
    struct err e;
    if (n_words != 1 + a->takes_path) {
        cli_error("expected belay checkpoint %s %s", a->name, a->words);
        return CLI_USAGE;
    }
    if (!parse_word(a, words[0], &c))
        return CLI_USAGE;
    c.path = a->takes_path ? words[1] : NULL;
    if (c.path && !c.path[0]) {
        cli_error("expected a path, found nothing: belay checkpoint %s %s", a->name, a->words);
        return CLI_USAGE;
    }
    if (with_store(a, &c, &e) == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_FAILED;
}
