/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of the kernel while a program is started.
 */
#include "agent/supervisor/launch.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Every fork of this process fails from now on, as one into a cpuset without processors does. */
static bool let_forks_fail(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(*code), .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Returns the error's kind, negated; or 99. */
static int start_without_forks(void)
{
    struct proc_group *group;
    struct launched launched;
    struct err e = {0};
    const struct proc_limits none = {0};
    if (proc_group_open_mode("belay-test-launch", &none, PROC_SUBREAPER, &group, &e) ||
        !let_forks_fail())
        return 99;
    const struct launch l = {.group = group};
    return launch_start(&l, &launched, &e) && strstr(e.text, "No space left on device") ? -e.kind
                                                                                        : 99;
}

/* A fork that fails with ENOSPC is not a full disk: the job must not be tried elsewhere for
 * ever. */
static void a_kernel_that_has_no_space_is_no_full_disk(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(start_without_forks());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(-WEXITSTATUS(status), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_has_no_space_is_no_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
