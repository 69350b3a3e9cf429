/* SPDX-License-Identifier: Apache-2.0
 *
 * Where cgroups are: texts recorded on machines of three kinds, and malformed ones.
 */
#include "base/cgroup.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Ubuntu 24.04, systemd 255, in a service */
static const char v2_mounts[] =
    "24 29 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "29 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw,discard,errors=remount-ro\n"
    "36 24 0:31 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n"
    "37 24 0:32 / /sys/fs/pstore rw,nosuid,nodev,noexec,relatime shared:10 - pstore pstore rw\n";
static const char v2_groups[] = "0::/system.slice/belay-agent.service\n";

/* Debian 10, systemd 241: controllers in v1, processes in both */
static const char hybrid_mounts[] =
    "27 22 0:24 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755\n"
    "28 27 0:25 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:10 - cgroup2 "
    "cgroup2 rw,nsdelegate\n"
    "29 27 0:26 / /sys/fs/cgroup/systemd rw,nosuid,nodev,noexec,relatime shared:11 - cgroup "
    "cgroup rw,xattr,name=systemd\n"
    "33 27 0:30 / /sys/fs/cgroup/net_cls,net_prio rw,nosuid,nodev,noexec,relatime shared:15 - "
    "cgroup cgroup rw,net_cls,net_prio\n"
    "34 27 0:31 / /sys/fs/cgroup/cpuset rw,nosuid,nodev,noexec,relatime shared:16 - cgroup "
    "cgroup rw,cpuset\n"
    "35 27 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:17 - cgroup "
    "cgroup rw,cpu,cpuacct\n"
    "36 27 0:33 / /sys/fs/cgroup/pids rw,nosuid,nodev,noexec,relatime shared:18 - cgroup cgroup "
    "rw,pids\n"
    "37 27 0:34 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:19 - cgroup "
    "cgroup rw,memory\n";
static const char hybrid_groups[] = "8:memory:/\n"
                                    "7:pids:/user.slice/user-0.slice/session-1.scope\n"
                                    "6:cpu,cpuacct:/\n"
                                    "5:cpuset:/\n"
                                    "4:net_cls,net_prio:/\n"
                                    "1:name=systemd:/user.slice/user-0.slice/session-1.scope\n"
                                    "0::/user.slice/user-0.slice/session-1.scope\n";

/* CentOS 7, in a container of Docker 19 without a cgroup namespace: its own groups are mounted */
static const char v1_mounts[] =
    "508 507 0:66 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755\n"
    "509 508 0:22 /docker/5e1f /sys/fs/cgroup/systemd ro,nosuid,nodev,noexec,relatime master:9 - "
    "cgroup cgroup rw,xattr,name=systemd\n"
    "510 508 0:24 /docker/5e1f /sys/fs/cgroup/pids ro,nosuid,nodev,noexec,relatime master:10 - "
    "cgroup cgroup rw,pids\n"
    "511 508 0:25 /docker/5e1f /sys/fs/cgroup/cpuacct,cpu ro,nosuid,nodev,noexec,relatime "
    "master:11 - cgroup cgroup rw,cpuacct,cpu\n"
    "512 508 0:26 /docker/5e1f /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:12 - "
    "cgroup cgroup rw,memory\n"
    "513 508 0:27 /docker/5e1f /sys/fs/cgroup/freezer ro,nosuid,nodev,noexec,relatime master:13 "
    "- cgroup cgroup rw,freezer\n";
static const char v1_groups[] = "11:freezer:/docker/5e1f\n"
                                "9:memory:/docker/5e1f/part\n"
                                "4:cpuacct,cpu:/docker/5e1f\n"
                                "3:pids:/docker/77\n"
                                "1:name=systemd:/docker/5e1f\n";

/* name, dir: NULL = there is none */
static void assert_at(const char *mounts, const char *groups, enum cgroup_kind kind,
    const char *name, const char *dir)
{
    struct cgroup_found at;
    char *found = cgroup_name(groups, kind);
    cgroup_find(mounts, kind, found, &at);
    if (name && found)
        assert_string_equal(found, name);
    else
        assert_ptr_equal(found, name);
    if (dir && at.dir)
        assert_string_equal(at.dir, dir);
    else
        assert_ptr_equal(at.dir, dir);
    free(found);
    free(at.dir);
}

static void in_v2_there_is_one_hierarchy(void **state)
{
    (void)state;
    assert_at(v2_mounts, v2_groups, CGROUP_V2, "/system.slice/belay-agent.service",
        "/sys/fs/cgroup/system.slice/belay-agent.service");
    assert_at(v2_mounts, "0::/\n", CGROUP_V2, "/", "/sys/fs/cgroup");
    for (enum cgroup_kind k = CGROUP_V2 + 1; k < CGROUP_KINDS; k++)
        assert_at(v2_mounts, v2_groups, k, NULL, NULL);
}

static void on_a_hybrid_machine_each_controller_has_its_own(void **state)
{
    (void)state;
    assert_at(hybrid_mounts, hybrid_groups, CGROUP_V2, "/user.slice/user-0.slice/session-1.scope",
        "/sys/fs/cgroup/unified/user.slice/user-0.slice/session-1.scope");
    assert_at(hybrid_mounts, hybrid_groups, CGROUP_PIDS, "/user.slice/user-0.slice/session-1.scope",
        "/sys/fs/cgroup/pids/user.slice/user-0.slice/session-1.scope");
    assert_at(hybrid_mounts, hybrid_groups, CGROUP_MEMORY, "/", "/sys/fs/cgroup/memory");
    assert_at(hybrid_mounts, hybrid_groups, CGROUP_CPU, "/", "/sys/fs/cgroup/cpu,cpuacct");
    assert_at(hybrid_mounts, hybrid_groups, CGROUP_FREEZER, NULL, NULL);
    assert_at(hybrid_mounts, "3:freezer:/\n", CGROUP_FREEZER, "/", NULL); /* not mounted */
}

static void in_a_container_names_are_longer_than_directories(void **state)
{
    (void)state;
    assert_at(v1_mounts, v1_groups, CGROUP_FREEZER, "/docker/5e1f", "/sys/fs/cgroup/freezer");
    assert_at(
        v1_mounts, v1_groups, CGROUP_MEMORY, "/docker/5e1f/part", "/sys/fs/cgroup/memory/part");
    assert_at(v1_mounts, v1_groups, CGROUP_CPU, "/docker/5e1f", "/sys/fs/cgroup/cpuacct,cpu");
    assert_at(v1_mounts, v1_groups, CGROUP_V2, NULL, NULL);
    /* not below what is mounted */
    assert_at(v1_mounts, v1_groups, CGROUP_PIDS, "/docker/77", NULL);
    assert_at(v1_mounts, "3:pids:/docker/5e1f7\n", CGROUP_PIDS, "/docker/5e1f7", NULL);
    assert_at(v1_mounts, "3:pids:/docker\n", CGROUP_PIDS, "/docker", NULL);
    assert_at(v1_mounts, "3:pids:/\n", CGROUP_PIDS, "/", NULL);
}

static void a_hierarchy_is_mounted_also_where_the_group_cannot_be_seen(void **state)
{
    static const char *const names[] = {"/docker/77", NULL};
    struct cgroup_found at;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        cgroup_find(v1_mounts, CGROUP_PIDS, names[i], &at);
        assert_true(at.is_mounted);
        assert_null(at.dir);
    }
    cgroup_find(v1_mounts, CGROUP_MEMORY, "/docker/5e1f/part", &at);
    assert_int_equal(at.top_len, strlen("/sys/fs/cgroup/memory"));
    free(at.dir);
    cgroup_find(v1_mounts, CGROUP_V2, "/", &at);
    assert_false(at.is_mounted);
}

static void a_group_outside_of_the_namespace_has_no_directory_and_a_removed_one_says_so(
    void **state)
{
    (void)state;
    assert_at(v2_mounts, "0::/../other\n", CGROUP_V2, "/../other", NULL);
    assert_at(v2_mounts, "0::/..\n", CGROUP_V2, "/..", NULL);
    assert_at(v2_mounts, "0::/belay/job-1 (deleted)\n", CGROUP_V2, "/belay/job-1 (deleted)",
        "/sys/fs/cgroup/belay/job-1 (deleted)");
}

static void malformed_lines_are_skipped(void **state)
{
    static const char *const mounts[] = {"", "\n\n", "x", "36 24 0:31 / /sys - cgroup2",
        "36 24 0:31 / - cgroup2 cgroup2 rw\n", "36 24 0:31 / /g rw cgroup2 cgroup2 rw\n",
        "36 24 0:31 / /g rw - cgroup2 cgroup2\n", "36 24 0:31 / /g rw - cgroup2\n",
        "36 24 0:31 / /g rw - \n", " - cgroup2 cgroup2 rw\n",
        "36 24 0:31 / /a\\040b rw - cgroup2 cgroup2 rw\n",
        "36 24 0:31 / /g rw - cgroup3 cgroup2 rw\n"};
    static const char *const groups[] = {
        "", "\n", "0", "0:", "0::", "0::\n", "0::a\n", "::", "0:cpu:/a\n", "/a\n"};
    struct cgroup_found at;
    (void)state;
    for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
        char *text = malloc(strlen(mounts[i]) + sizeof(v2_mounts) + 1);
        cgroup_find(mounts[i], CGROUP_V2, "/", &at);
        assert_false(at.is_mounted);
        assert_null(at.dir);
        strcpy(text, mounts[i]);
        strcat(strcat(text, "\n"), v2_mounts);
        assert_at(text, "0::/\n", CGROUP_V2, "/", "/sys/fs/cgroup");
        free(text);
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
        assert_null(cgroup_name(groups[i], CGROUP_V2));
    assert_null(cgroup_name("1:cpu:/a\n", CGROUP_V2));
    assert_at(v2_mounts, "3:cpu:/x\n0::/belay/job-1\n", CGROUP_V2, "/belay/job-1",
        "/sys/fs/cgroup/belay/job-1");
    assert_at(hybrid_mounts, "0:cpu\n1:cpusets:/a\n2:xcpu:/b\n3:acct,cpu:/c\n", CGROUP_CPU, "/c",
        "/sys/fs/cgroup/cpu,cpuacct/c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_v2_there_is_one_hierarchy),
        cmocka_unit_test(on_a_hybrid_machine_each_controller_has_its_own),
        cmocka_unit_test(in_a_container_names_are_longer_than_directories),
        cmocka_unit_test(a_hierarchy_is_mounted_also_where_the_group_cannot_be_seen),
        cmocka_unit_test(
            a_group_outside_of_the_namespace_has_no_directory_and_a_removed_one_says_so),
        cmocka_unit_test(malformed_lines_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
