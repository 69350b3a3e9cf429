/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/gpu_devices.h"
#include "agent/gpu/gpus.h"
#include "agent/supervisor/limits.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define N(a) (sizeof(a) / sizeof *(a))

static const char *given(
    const struct gpus *g, int64_t n, const char *const *others, size_t n_others)
{
    static char out[GPUS_TEXT_MAX];
    struct err e;
    STR_COPY(out, "untouched");
    int rc = gpus_allot(g, &(struct gpus_ask){.whole = n}, others, n_others, out, &e);
    if (rc == 0)
        return out;
    assert_int_equal(rc, ERR_UNAVAILABLE);
    assert_string_equal(out, "untouched");
    return NULL;
}

static void each_is_given_to_one(void **state)
{
    struct gpus g = {0};
    const char *const some[] = {"0,2", "11"}, *const all[] = {GPUS_ALL};
    (void)state;
    gpus_number(&g, 12);
    assert_string_equal(given(&g, 2, NULL, 0), "0,1");
    assert_string_equal(given(&g, 3, some, N(some)), "1,3,4");
    assert_string_equal(given(&g, 9, some, N(some)), "1,3,4,5,6,7,8,9,10");
    assert_null(given(&g, 10, some, N(some)));
    assert_null(given(&g, 1, all, N(all)));
    assert_string_equal(given(&g, 0, all, N(all)), "");
}

static void a_request_for_too_many_gpus_names_how_many_there_are(void **state)
{
    struct gpus g = {0};
    const char *const others[] = {"1"};
    char out[GPUS_TEXT_MAX];
    struct err e;
    (void)state;
    gpus_number(&g, 2);
    gpus_allot(&g, &(struct gpus_ask){.whole = 2}, others, N(others), out, &e);
    assert_string_equal(e.text, "it needs 2 GPUs of this node, which has 2, of which 1 are free");
}

static void the_gpus_of_the_largest_node_fit_into_a_text(void **state)
{
    struct gpus g = {0};
    (void)state;
    gpus_number(&g, 1000);
    assert_int_equal(gpus_whole(&g), GPUS_MAX);
    assert_true(str_ends(given(&g, GPUS_MAX, NULL, 0), ",62,63"));
}

static const char listing[] = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaa)\n"
                              "  MIG 1g.10gb     Device  0: (UUID: MIG-0001)\n"
                              "  MIG 1g.10gb+me  Device  1: (UUID: MIG-0002)\n"
                              "  MIG 1g.10gb     Device  2: (UUID: MIG-GPU-aaaa/9/0)\n"
                              "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-bbbb)\n";

static const char *allotted(const struct gpus *g, const char *slices, bool all, const char *other)
{
    static char out[GPUS_TEXT_MAX];
    struct counts c;
    struct err e;
    assert_int_equal(counts_parse(slices, &c, &e), 0);
    return gpus_allot(g, &(struct gpus_ask){.slices = &c, .all = all}, &other, 1, out, &e) == 0
               ? out
               : NULL;
}

static void slices_are_given_by_their_profiles(void **state)
{
    struct gpus g = {0};
    struct counts c;
    char text[COUNTS_TEXT_MAX];
    const struct counts others = {.n = 2, .v = {{"1g.10gb", 9}, {"lego", 4}}};
    (void)state;
    gpus_read(&g, listing);
    assert_int_equal(gpus_whole(&g), 1);
    assert_string_equal(given(&g, 1, NULL, 0), "GPU-bbbb");
    gpus_count_slices(&g, &others, &c);
    counts_format(&c, text);
    assert_string_equal(text, "1g.10gb:2,1g.10gb.me:1,lego:4");
    assert_string_equal(allotted(&g, "1g.10gb:1", false, ""), "MIG-0001");
    assert_string_equal(allotted(&g, "1g.10gb:1,lego:3", false, "MIG-0001"), "MIG-GPU-aaaa/9/0");
    assert_string_equal(allotted(&g, "1g.10gb.me", false, "MIG-0001"), "MIG-0002");
    assert_null(allotted(&g, "1g.10gb:2", false, "MIG-0001"));
    assert_string_equal(allotted(&g, "", true, ""), "GPU-bbbb,MIG-0001,MIG-GPU-aaaa/9/0,MIG-0002");
    assert_null(allotted(&g, "", true, "MIG-0002"));
    gpus_number(&g, 2); /* as set by the configuration */
    assert_string_equal(allotted(&g, "", true, ""), "0,1,MIG-0001,MIG-GPU-aaaa/9/0,MIG-0002");
}

static void a_malformed_listing_has_no_gpus(void **state)
{
    static const char *const bad[] = {"", "\n\n", "GPU", "GPU 0",
        "GPU 0:", "GPU 0: x (UUID: ", "GPU 0: x (UUID: )", "GPU 0: x (UUID: a b)",
        "GPU x: y (UUID: GPU-1)", "GPU : y (UUID: GPU-1)", "GPU 12345: y (UUID: GPU-1)",
        "  MIG 1g.10gb Device 0: (UUID: MIG-1)",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "    ",
        "  MIG"};
    struct gpus g;
    (void)state;
    for (size_t i = 0; i < N(bad); i++) {
        gpus_read(&g, bad[i]);
        assert_int_equal(g.n, 0);
    }
    gpus_read(&g, "GPU 0: x (UUID: GPU-1)\nWarning: (UUID: 7)\nGPU 1: y (UUID: GPU-2)\n  MIG "
                  "eighth Device 0: (UUID: MIG-1)");
    assert_int_equal(g.n, 2);
    assert_string_equal(g.v[1].id, "1");
}

static void the_memory_of_a_gpu_is_what_the_driver_says_in_whole_gib(void **state)
{
    static const struct {
        const char *csv;
        int64_t mib;
    } cases[] = {{"143771\n", 144384}, {"81920\n", 81920}, {"23034\n23034\n15360\n", 15360},
        {"23034", 23552}, {"[N/A]\n", 0}, {"23034\n[N/A]\n", 0}, {"", 0}, {"\n", 0}, {"0\n", 0},
        {"-5\n", 0}, {"99999999999999999999\n", 1000000512}, {"No devices were found\n", 0}};
    (void)state;
    for (size_t i = 0; i < N(cases); i++)
        assert_int_equal(gpus_memory_mib(cases[i].csv), cases[i].mib);
}

static void put(const char *root, const char *path, const char *text)
{
    char *name = mem_printf("%s/%s", root, path), *slash = strrchr(name, '/');
    struct err e;
    *slash = '\0';
    assert_int_equal(fs_mkdirs(name, 0700, &e), 0);
    *slash = '/';
    assert_int_equal(fs_write_atomic(name, text, strlen(text), 0600, &e), 0);
    free(name);
}

static void a_task_is_kept_from_the_devices_of_others(void **state)
{
    char root[] = "/tmp/belay-gpus.XXXXXX";
    struct proc_device out[8];
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_int_equal(gpu_devices_denied(root, "", out, N(out)), 0);
    put(root, "dev/nvidia0", "");
    put(root, "dev/nvidia1", "");
    put(root, "dev/nvidia2", "");
    put(root, "dev/nvidiactl", "");
    put(root, "dev/nvidia1x", "");
    assert_int_equal(gpu_devices_denied(root, "", out, N(out)), 3);
    assert_int_equal(gpu_devices_denied(root, "0,2", out, N(out)), 1);
    assert_int_equal(out[0].major, 195);
    assert_int_equal(out[0].minor, 1);
    assert_int_equal(gpu_devices_denied(root, "", out, 2), 2);
    assert_int_equal(gpu_devices_denied(root, GPUS_ALL, out, N(out)), 0);
    assert_int_equal(gpu_devices_denied(root, "MIG-4b0c", out, N(out)), 0);
    /* First in bus order, last in the driver's order. */
    put(root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA A100\nDevice Minor: \t 2\n");
    put(root, "proc/driver/nvidia/gpus/0000:02:00.0/information", "Device Minor: \t 0\n");
    put(root, "proc/driver/nvidia/gpus/0000:03:00.0/information", "Device Minor: \t 1\n");
    assert_int_equal(gpu_devices_denied(root, "0", out, N(out)), 2);
    assert_int_equal(out[0].minor, 0);
    assert_int_equal(out[1].minor, 1);
    assert_int_equal(fs_remove_tree(root, &e), 0);
}

static void a_reserve_is_left_to_the_node(void **state)
{
    (void)state;
    assert_int_equal(limits_memory_default_mib(400), 300);
    assert_int_equal(limits_memory_default_mib(2048), 2048 - 256);
    assert_int_equal(limits_memory_default_mib(20000), 19000);
    assert_int_equal(limits_memory_default_mib(1 << 20), (1 << 20) - 4096);
}

static void put_file(const char *root, const char *dir, const char *name, const char *text)
{
    char *path = mem_printf("%s/%s", root, dir);
    struct err e;
    assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
    free(path);
    path = mem_printf("%s/%s/%s", root, dir, name);
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0600, &e), 0);
    free(path);
}

static void a_task_may_have_half_of_the_processes_of_its_machine(void **state)
{
    char root[] = "/tmp/belay-pids-XXXXXX";
    struct err e;
    (void)state;
    assert_int_equal(limits_pids_default(0, 0), 32768);
    assert_int_equal(limits_pids_default(4194304, 0), 32768);
    assert_int_equal(limits_pids_default(32768, 0), 16384);
    assert_int_equal(limits_pids_default(32768, 2048), 1024);
    assert_int_equal(limits_pids_default(4194304, 20), 16);
    assert_non_null(mkdtemp(root));
    assert_int_equal(limits_pids_measure(root), 32768);
    put_file(root, "proc/sys/kernel", "pid_max", "40000\n");
    assert_int_equal(limits_pids_measure(root), 20000);
    put_file(root, "proc/self", "mountinfo",
        "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    put_file(root, "proc/self", "cgroup", "3:cpu,cpuacct:/x\n0::/system.slice/belay\n");
    put_file(root, "sys/fs/cgroup/system.slice/belay", "pids.max", "max\n");
    assert_int_equal(limits_pids_measure(root), 20000);
    put_file(root, "sys/fs/cgroup/system.slice", "pids.max", "9000\n");
    assert_int_equal(limits_pids_measure(root), 4500);
    put_file(root, "sys/fs/cgroup/system.slice/belay", "pids.max", "8000\n");
    assert_int_equal(limits_pids_measure(root), 4000);
    /* the first version's */
    put_file(root, "proc/self", "mountinfo",
        "33 31 0:30 / /sys/fs/cgroup/pids rw,nosuid shared:9 - cgroup cgroup rw,pids\n");
    put_file(root, "proc/self", "cgroup", "8:pids:/docker/1\n0::/\n");
    put_file(root, "sys/fs/cgroup/pids/docker/1", "pids.max", "600\n");
    assert_int_equal(limits_pids_measure(root), 300);
    /* below a container's group, which is mounted in its place, and elsewhere than usual */
    put_file(root, "proc/self", "mountinfo",
        "612 611 0:27 /docker/1 /groups ro,nosuid - cgroup2 cgroup rw,nsdelegate\n");
    put_file(root, "proc/self", "cgroup", "0::/docker/1/belay\n");
    put_file(root, "groups/belay", "pids.max", "500\n");
    put_file(root, "groups", "pids.max", "700\n");
    put_file(root, "", "pids.max", "20\n"); /* above the mount point: another file */
    assert_int_equal(limits_pids_measure(root), 250);
    assert_int_equal(fs_remove_tree(root, &e), 0);
}

static void limits_survive_a_command_line(void **state)
{
    char text[LIMITS_TEXT_MAX], *words[LIMITS_WORDS_MAX];
    const struct limits l = {
        .memory_mib = INT64_MAX >> 20, .pids = 4194304, .hides_processes = true};
    struct limits back = {0};
    (void)state;
    limits_write(&l, text, words);
    assert_null(words[LIMITS_WORDS_MAX - 1]);
    assert_true(limits_read(LIMITS_WORDS_MAX - 1, words, &back));
    assert_int_equal(back.memory_mib, l.memory_mib);
    assert_int_equal(back.pids, l.pids);
    assert_true(back.hides_processes && !back.private_ipc && !back.no_new_privs);
    assert_false(limits_read(0, words, &back));
    words[1] = (char *)"-1";
    assert_false(limits_read(LIMITS_WORDS_MAX - 1, words, &back));
}

struct heard {
    int warnings;
    char last[512];
};

static void hear(void *ctx, enum log_level level, const char *line)
{
    struct heard *h = ctx;
    h->warnings += level == LOG_WARN;
    str_copy(h->last, sizeof(h->last), line);
}

/* Without cgroups no limit is in force. The agent's processes share which warnings were logged. */
static void limits_that_are_not_in_force_are_logged_once(void **state)
{
    static const struct proc_device denied[] = {{195, 1}};
    const struct proc_limits limits = {.memory_bytes = 1 << 20, .pids_max = 9},
                             gpus = {.denied = denied, .n_denied = 1};
    struct limits_warned *w = limits_warned_create();
    struct heard h = {0};
    struct proc_group *g[3];
    struct err e;
    (void)state;
    const struct proc_limits *const asked[] = {NULL, &limits, &gpus};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            proc_group_open_mode("belay-test", asked[i], PROC_SUBREAPER, &g[i], &e), 0);
    log_set_sink(hear, &h);
    limits_warn(w, g[0]);
    assert_int_equal(h.warnings, 0);
    limits_warn(w, g[1]);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.last, "Delegate=yes"));
    assert_non_null(strstr(h.last, "not_limited=\"memory (Operation not supported)"));
    assert_non_null(strstr(h.last, "processes (Operation not supported)"));
    pid_t pid = fork();
    if (pid == 0) {
        limits_warn(w, g[1]); /* already logged */
        limits_warn(w, g[2]);
        _exit(h.warnings == 2 && strstr(h.last, "access to each other's GPUs") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    limits_warn(w, g[1]);
    limits_warn(w, g[2]); /* by another process */
    assert_int_equal(h.warnings, 1);
    log_set_sink(NULL, NULL);
    for (size_t i = 0; i < 3; i++)
        proc_group_close(g[i], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_given_to_one),
        cmocka_unit_test(a_request_for_too_many_gpus_names_how_many_there_are),
        cmocka_unit_test(the_gpus_of_the_largest_node_fit_into_a_text),
        cmocka_unit_test(slices_are_given_by_their_profiles),
        cmocka_unit_test(a_malformed_listing_has_no_gpus),
        cmocka_unit_test(the_memory_of_a_gpu_is_what_the_driver_says_in_whole_gib),
        cmocka_unit_test(a_task_is_kept_from_the_devices_of_others),
        cmocka_unit_test(a_reserve_is_left_to_the_node),
        cmocka_unit_test(a_task_may_have_half_of_the_processes_of_its_machine),
        cmocka_unit_test(limits_survive_a_command_line),
        cmocka_unit_test(limits_that_are_not_in_force_are_logged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
