/* SPDX-License-Identifier: Apache-2.0
 *
 * See workdir_scan.h. Files listed by git are visited by name, with their directories; a directory
 * in that list (a nested repository) is walked recursively.
 */
#include "cli/workdir/workdir_scan.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "base/uv/runner.h"
#include "cli/workdir/ignore.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LIST_BYTES_MAX (64u << 20)
#define GIT_MS 120000
#define FOUND_MAX 500000 /* stop counting beyond this */
#define LARGEST 5

struct scanning {
    const char *dir;
    struct ignore ignore;
    struct workdir_scan s;
    size_t cap;
    struct smap seen; /* paths */
    workdir_warn_fn warn;
    void *ctx;
    struct err *e;
};

void workdir_scan_deinit(struct workdir_scan *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].path);
    free(s->v);
    *s = (struct workdir_scan){0};
}

static void warn_of(const struct scanning *g, const char *path, const char *why)
{
    char shown[STR_SHOW_MAX];
    char *text = mem_printf("%s is not sent: %s", str_show(path, shown), why);
    g->warn(g->ctx, text);
    free(text);
}

/* ---- one entry ---- */

static bool is_git(const char *path)
{
    const char *slash = strrchr(path, '/');
    return str_eq(slash ? slash + 1 : path, ".git");
}

static bool is_left_out(const struct scanning *g, const char *path, bool is_dir)
{
    enum ignored decision = ignore_match(&g->ignore, path, is_dir);
    return decision == IGNORED_YES || (is_git(path) && decision != IGNORED_REINCLUDED);
}

static int add(struct scanning *g, const char *path, const struct stat *st)
{
    struct workdir_scan *s = &g->s;
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode)) {
        warn_of(g, path, "it is neither a file nor a directory nor a link");
        return 0;
    }
    if (!workdir_is_path(path)) {
        char shown[STR_SHOW_MAX];
        return err_set(g->e, ERR_INVALID,
            "%s cannot be sent: a path is UTF-8 without control characters, at most %d bytes long "
            "and %d directories deep; rename "
            "it, or leave it out with .belayignore",
            str_show(path, shown), WORKDIR_PATH_MAX, WORKDIR_DEPTH_MAX);
    }
    if (smap_get(&g->seen, path))
        return 0;
    if (s->n == FOUND_MAX)
        return err_set(g->e, ERR_INVALID,
            "more than %d entries: leave some out with .belayignore (at most %d can be sent)",
            FOUND_MAX, WORKDIR_ENTRIES_MAX);
    if (s->n == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 256;
        s->v = mem_resize(s->v, g->cap, sizeof(*s->v));
    }
    s->v[s->n++] = (struct found){.path = mem_strdup(path), .st = *st};
    smap_put(&g->seen, path, g);
    return 0;
}

static int stat_entry(const struct scanning *g, const char *path, struct stat *ret_stat)
{
    char *whole = mem_printf("%s/%s", g->dir, path);
    int rc = lstat(whole, ret_stat) == 0 ? 0 : errno;
    free(whole);
    return rc;
}

/* ---- walking a directory ---- */

static int walk(struct scanning *g, const char *path, size_t depth);

static int visit(struct scanning *g, const char *path, size_t depth)
{
    struct stat st;
    int errnum = stat_entry(g, path, &st);
    if (errnum == ENOENT) /* git lists a tracked file that is gone */
        return 0;
    if (errnum)
        return err_errno(g->e, errnum, "looking at %s/%s", g->dir, path);
    if (is_left_out(g, path, S_ISDIR(st.st_mode)))
        return 0;
    int rc = add(g, path, &st);
    return rc == 0 && S_ISDIR(st.st_mode) ? walk(g, path, depth + 1) : rc;
}

static int walk(struct scanning *g, const char *path, size_t depth)
{
    char *whole = mem_printf("%s%s%s", g->dir, *path ? "/" : "", path);
    DIR *d = depth > WORKDIR_DEPTH_MAX ? NULL : opendir(whole);
    int rc = 0;
    if (!d)
        rc = depth > WORKDIR_DEPTH_MAX
                 ? err_set(g->e, ERR_INVALID,
                       "%s is deeper than %d directories: leave it out with .belayignore", whole,
                       WORKDIR_DEPTH_MAX)
                 : err_errno(g->e, errno, "listing %s", whole);
    for (struct dirent *x; rc == 0 && d && (x = readdir(d));) {
        if (str_eq(x->d_name, ".") || str_eq(x->d_name, ".."))
            continue;
        char *below = mem_printf("%s%s%s", path, *path ? "/" : "", x->d_name);
        rc = visit(g, below, depth);
        free(below);
    }
    if (d)
        closedir(d);
    free(whole);
    return rc;
}

/* ---- what git lists ---- */

static bool is_in_work_tree(const char *dir)
{
    char *at = mem_strdup(dir);
    bool found = false;
    while (!found && *at) {
        char *git = mem_printf("%s/.git", at), *head = mem_printf("%s/HEAD", git);
        struct stat st;
        found = fs_exists(head) ||
                /* in a linked work tree .git is a file */
                (stat(git, &st) == 0 && S_ISREG(st.st_mode));
        free(git);
        free(head);
        char *slash = strrchr(at, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    free(at);
    return found;
}

struct git_list {
    bool is_over;
    int rc;
    struct err *e;
    struct buf list;
};

static void on_git(void *ctx, const struct err *e, const struct runner_result *r)
{
    struct git_list *a = ctx;
    char shown[STR_SHOW_MAX];
    a->is_over = true;
    if (e) {
        *a->e = *e;
        a->rc = err_wrap(a->e, "git, which applies .gitignore");
    } else if (r->exit_code != 0) {
        a->rc = err_set(a->e, ERR_INVALID, "git ls-files, which applies .gitignore, failed: %s",
            str_show(buf_str(&r->errors), shown));
    } else {
        buf_add(&a->list, r->output.data, r->output.len);
    }
}

static int run_git(const char *dir, struct buf *ret_list, struct err *e)
{
    const char *const argv[] = {
        "git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard", NULL};
    const struct runner_command command = {
        .argv = argv, .timeout_ms = GIT_MS, .max_output_bytes = LIST_BYTES_MAX};
    struct git_list a = {.e = e};
    uv_loop_t loop;
    /* git may exit before it reads its input */
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    struct runner *r = uv_runner_create(&loop);
    runner_start(r, &command, on_git, &a);
    while (!a.is_over)
        uv_run(&loop, UV_RUN_ONCE);
    uv_runner_destroy(r);
    uv_loop_finish(&loop);
    signal(SIGPIPE, before);
    if (a.rc != 0)
        buf_deinit(&a.list);
    else
        *ret_list = a.list;
    return a.rc;
}

/* Adds the path's parent directories, outermost first. False if one of them is excluded, or after
 * an error in *ret_rc. */
static bool add_parents(struct scanning *g, const char *path, int *ret_rc)
{
    struct stat st;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *parent = mem_strndup(path, (size_t)(slash - path));
        bool out = is_left_out(g, parent, true);
        int errnum = out || smap_get(&g->seen, parent) ? 0 : stat_entry(g, parent, &st);
        if (!out && !smap_get(&g->seen, parent) && errnum == 0 && S_ISDIR(st.st_mode))
            *ret_rc = add(g, parent, &st);
        /* not added: it is gone, or no longer a directory */
        out = out || (!smap_get(&g->seen, parent) && *ret_rc == 0);
        free(parent);
        if (out || *ret_rc != 0)
            return false;
    }
    return true;
}

static int take_list(struct scanning *g, struct buf *list)
{
    int rc = 0;
    for (char *p = list->data, *end = p + list->len; rc == 0 && p < end; p += strlen(p) + 1) {
        char *path = mem_strdup(p);
        size_t n = strlen(path);
        if (n > 0 && path[n - 1] == '/')
            path[n - 1] = '\0';
        if (add_parents(g, path, &rc))
            rc = visit(g, path, 0);
        free(path);
    }
    return rc;
}

static int scan_git(struct scanning *g)
{
    struct buf list = {0};
    int rc = run_git(g->dir, &list, g->e);
    if (rc == 0 && list.len > 0)
        rc = take_list(g, &list);
    buf_deinit(&list);
    if (rc == 0 && ignore_match(&g->ignore, ".git", true) == IGNORED_REINCLUDED)
        rc = visit(g, ".git", 0);
    return rc;
}

/* ---- size limits ---- */

struct share {
    char *name; /* of a top-level entry */
    size_t entries;
    int64_t bytes;
};

static int by_bytes(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    return x->bytes != y->bytes      ? (x->bytes < y->bytes ? 1 : -1)
           : x->entries < y->entries ? 1
           : x->entries > y->entries ? -1
                                     : 0;
}

static int by_entries(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    return x->entries != y->entries ? (x->entries < y->entries ? 1 : -1) : by_bytes(a, b);
}

static size_t sum_up(const struct workdir_scan *s, struct share **ret_shares)
{
    struct share *v = mem_array(s->n, sizeof(*v));
    struct smap by_name = {0};
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        char *top = mem_strndup(s->v[i].path, strcspn(s->v[i].path, "/"));
        struct share *x = smap_get(&by_name, top);
        if (!x) {
            x = &v[n++];
            x->name = mem_strdup(top);
            smap_put(&by_name, top, x);
        }
        x->entries++;
        x->bytes += S_ISREG(s->v[i].st.st_mode) ? (int64_t)s->v[i].st.st_size : 0;
        free(top);
    }
    smap_deinit(&by_name);
    *ret_shares = v;
    return n;
}

static int refuse_size(const struct workdir_scan *s, int64_t bytes, struct err *e)
{
    struct share *v;
    struct buf list = {0};
    size_t n = sum_up(s, &v);
    char size[32], shown[STR_SHOW_MAX];
    qsort(v, n, sizeof(*v), bytes > WORKDIR_BYTES_MAX ? by_bytes : by_entries);
    for (size_t i = 0; i < n; i++) {
        str_format_bytes((uint64_t)v[i].bytes, size, sizeof(size));
        if (i < LARGEST)
            buf_printf(&list, "%s%s %s in %zu", i ? ", " : "", str_show(v[i].name, shown), size,
                v[i].entries);
        free(v[i].name);
    }
    str_format_bytes((uint64_t)bytes, size, sizeof(size));
    int rc = err_set(e, ERR_INVALID,
        "%s in %zu entries are too much to send (at most 2 GiB in %d). The largest: %s. Name in "
        ".belayignore what the job does not "
        "need, and put data where the nodes can read it",
        size, s->n, WORKDIR_ENTRIES_MAX, buf_str(&list));
    buf_deinit(&list);
    free(v);
    return rc;
}

static int check_size(const struct workdir_scan *s, struct err *e)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < s->n; i++)
        bytes += S_ISREG(s->v[i].st.st_mode) ? (int64_t)s->v[i].st.st_size : 0;
    return bytes > WORKDIR_BYTES_MAX || s->n > WORKDIR_ENTRIES_MAX ? refuse_size(s, bytes, e) : 0;
}

/* ---- main ---- */

static int read_ignore(struct scanning *g)
{
    char *path = mem_printf("%s/.belayignore", g->dir);
    struct buf text = {0};
    int rc = fs_read(path, IGNORE_BYTES_MAX, &text, g->e);
    if (rc == 0 && (rc = ignore_parse(buf_str(&text), text.len, &g->ignore, g->e)) != 0)
        err_wrap(g->e, "%s", path);
    buf_deinit(&text);
    free(path);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

int workdir_scan(
    const char *dir, workdir_warn_fn warn, void *ctx, struct workdir_scan *ret_scan, struct err *e)
{
    struct scanning g = {.dir = dir, .warn = warn, .ctx = ctx, .e = e};
    int rc = read_ignore(&g);
    if (rc == 0)
        rc = is_in_work_tree(dir) ? scan_git(&g) : walk(&g, "", 0);
    if (rc == 0)
        rc = check_size(&g.s, e);
    if (rc == 0 && g.s.n > 0)
        qsort(g.s.v, g.s.n, sizeof(*g.s.v), by_path);
    if (rc != 0)
        workdir_scan_deinit(&g.s);
    else
        *ret_scan = g.s;
    smap_deinit(&g.seen);
    ignore_deinit(&g.ignore);
    return rc;
}
