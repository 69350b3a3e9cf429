/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that a program writes in its control directory: numbers of commits and progress, and
 * names. Lines up to the first empty one name the files, the rest is their content. Every commit is
 * answered once.
 */
#include "agent/task/control.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_numbers(int rc, const struct control_numbers *n, const struct err *e)
{
    if (rc == 0)
        assert((n->done >= 0 || n->done == CONTROL_NONE) &&
               (n->total >= 0 || n->total == CONTROL_NONE));
    else
        check_error(rc, e);
}

static void parse(const char *text, size_t n, const char *first_key)
{
    struct control_numbers numbers;
    struct err e = {0};
    int rc = control_parse_numbers(text, n, first_key, &numbers, &e);
    check_numbers(rc, &numbers, &e);
}

/* Prefix of a name: '>' makes a directory, '|' a named pipe, '@' a symbolic link to `progress`. */
static int make_other(int dir, const char *name)
{
    if (name[0] == '>')
        return mkdirat(dir, name + 1, 0700) == 0;
    if (name[0] == '|')
        return mkfifoat(dir, name + 1, 0600) == 0;
    return symlinkat("progress", dir, name + 1) == 0;
}

static int make_file(int dir, const char *name, const char *text)
{
    if (strchr(">|@", name[0]))
        return make_other(dir, name);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0; /* not usable as a name */
    struct err e;
    int rc = fs_write_all(fd, text, strlen(text), &e);
    assert(rc == 0);
    (void)rc;
    close(fd);
    return 1;
}

static int make_files(int dir, char *text)
{
    char *rest = text, *names[FILES_MAX];
    size_t n = 0;
    int made = 0;
    for (char *line; n < FILES_MAX && (line = strsep(&rest, "\n")) && line[0]; n++)
        names[n] = line;
    for (size_t i = 0; i < n; i++)
        if (!strchr(names[i], '/'))
            made += make_file(dir, names[i], rest ? rest : "");
    return made;
}

static bool is_there(int dir, const char *what, int64_t k)
{
    char name[40];
    snprintf(name, sizeof(name), "%s.%lld", what, (long long)k);
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void answer_all(struct control *c, int n_files)
{
    const int dir = c->fd;
    struct control_numbers numbers;
    struct err e = {0};
    int64_t k, last = 0;
    for (; control_next_commit(c, &k) == CONTROL_COMMIT; n_files--) {
        assert(
            k > last && n_files > 0 && is_there(dir, "commit", k) && !is_there(dir, "result", k));
        int rc = control_read_commit(c, k, &numbers, &e);
        check_numbers(rc, &numbers, &e);
        control_answer(c, k, &(struct control_answer){.attempt = 1, .sequence = k});
        assert(!is_there(dir, "commit", k) && is_there(dir, "result", k));
        last = k;
    }
    int rc = control_read_progress(c, &numbers, &e);
    if (rc != ERR_NOT_FOUND)
        check_numbers(rc, &numbers, &e);
    int64_t waited_ms = control_read_waited(c);
    assert(waited_ms >= -1);
    (void)waited_ms;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/belay-fuzz-control-XXXXXX", *text = mem_strndup((const char *)data, size);
    struct err e;
    log_set_level(LOG_ERROR);
    parse((const char *)data, size, "progress");
    parse((const char *)data, size, "done");
    char *control = mem_printf("%s/control", mkdtemp(path));
    struct control c;
    control_init(&c);
    int made = mkdir(control, 0700);
    control_open(&c, path);
    assert(made == 0 && c.fd >= 0);
    (void)made;
    answer_all(&c, make_files(c.fd, text));
    control_settle(&c, 1, 1);
    control_close(&c);
    free(control);
    fs_remove_tree(path, &e);
    free(text);
    return 0;
}
