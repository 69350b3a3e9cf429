/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

bool dies(void (*fn)(void *arg), void *arg)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL); /* because cmocka catches it */
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        fn(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

void check_err(
    const struct err *e, enum err_kind kind, const char *part, const char *file, int line)
{
    if (e->kind == kind && strstr(e->text, part))
        return;
    print_error("%s:%d: expected %s \"%s\", found %s \"%s\"\n", file, line, err_kind_name(kind),
        part, err_kind_name(e->kind), e->text);
    _fail(file, line);
}

int scratch_setup(void **state)
{
    char path[] = "/tmp/belay-test-base-XXXXXX";
    if (!mkdtemp(path))
        return -1;
    *state = strdup(path);
    return *state ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* Not with fs_remove_tree, which is under test. */
int scratch_teardown(void **state)
{
    int rc = nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return rc;
}
