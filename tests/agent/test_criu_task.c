/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks with the method criu under a real agent. A script of the test stands in for criu: it dumps
 * nothing, and restores a shell. Sandboxes are real, so this needs root and namespaces, and is
 * skipped otherwise.
 */
#include "criu_image.h"
#include "rights.h"
#include "world.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The file `mode` in its directory selects what it does at a dump and at a restore. */
static const char player[] =
    "#!/bin/sh\n"
    "sandbox=/run/belay-task\n"
    "case \"$1\" in\n"
    "--version) echo 'Version: 4.1'; exit ;;\n"
    "check | pre-dump) exit 0 ;;\n"
    "esac\n"
    /* The agent's trial at its start (criu_trial.h): the text of the program is in its
     * arguments. */
    "case \"$1 $(ls $sandbox)\" in\n"
    "dump*output.log* | restore*output.log*) ;;\n"
    "dump*) tr '\\0' '\\n' </proc/1000/cmdline | tail -n 1 >$sandbox/text; exit 0 ;;\n"
    "restore*)\n"
    "  echo 999 >/proc/sys/kernel/ns_last_pid\n"
    "  (cd $sandbox; while [ ! -e go ]; do sleep 0.05; done; mv text answer) &\n"
    "  exit 0 ;;\n"
    "esac\n"
    "mode=$(cat \"$(dirname \"$0\")/mode\")\n"
    "echo \"$*\" >>\"$(dirname \"$0\")/calls\"\n"
    "case \"$1 $mode\" in\n"
    "'dump fails')\n"
    "  echo '(00.01) Error (criu/ptrace.c:1): cannot seize 1000' >$sandbox/dump.log\n"
    "  echo '(00.02) Error (criu/cr-dump.c:2): Dumping FAILED.' >>$sandbox/dump.log\n"
    "  exit 1 ;;\n"
    "'dump hookless') CRTOOLS_SCRIPT_ACTION=pre-dump $sandbox/hook ;;\n"
    "dump*)\n"
    "  readlink /proc/1000/fd/1 >\"$(dirname \"$0\")/pipe\"\n"
    "  echo image >$sandbox/checkpoint/images/dump/core-1000.img\n"
    "  here=$(dirname \"$0\")\n"
    "  [ \"$mode\" != removed ] || cp \"$here\"/*.img $sandbox/checkpoint/images/dump\n"
    "  CRTOOLS_SCRIPT_ACTION=post-dump $sandbox/hook >$sandbox/dump.log 2>&1 || exit 1\n"
    "  [ \"$mode\" != unlooked ] || cp \"$here\"/*.img $sandbox/checkpoint/images/dump ;;\n"
    "'restore missing')\n"
    "  echo '(00.01) Error (criu/image.c:1): Unable to open inventory.img: No such file' "
    ">$sandbox/restore.log\n"
    "  exit 1 ;;\n"
    "'restore dies') kill -9 $$ ;;\n"
    "restore*)\n"
    "  cd /\n"
    "  case \"$*\" in *\"--inherit-fd fd[3]:$(cat \"$(dirname \"$0\")/pipe\") \"*) ;; *) exit 9 ;; "
    "esac\n"
    "  [ \"$mode\" != secret ] || exec 5<\"$(dirname \"$0\")/secret\"\n"
    "  echo 999 >/proc/sys/kernel/ns_last_pid\n"
    "  sh -c 'kill -STOP $$; echo back with $(cat /run/belay-task/scratch/state); exec sleep 1000' "
    "</dev/null >&3 2>&1 3>&- &\n"
    "  exec 3>&- 5<&-\n"
    "  until grep -q ' T ' /proc/1000/stat; do sleep 0.05; done\n"
    "  if [ \"$mode\" != unhooked ]; then\n"
    "    CRTOOLS_SCRIPT_ACTION=post-restore $sandbox/hook >>$sandbox/restore.log 2>&1 || {\n"
    "      echo '(00.1) Error (criu/cr-restore.c:1): Aborting restore' >>$sandbox/restore.log\n"
    "      kill -9 1000\n"
    "      exit 1\n"
    "    }\n"
    "  fi\n"
    "  [ \"$mode\" = ungiven ] || CRTOOLS_SCRIPT_ACTION=pre-resume $sandbox/hook || exit 1\n"
    "  echo continue >>\"$(dirname \"$0\")/calls\"\n"
    "  kill -CONT 1000\n"
    "  ;;\n"
    "esac\n";

static const char script[] = "#!/bin/sh\n"
                             "echo \"start $$ in $TMPDIR, ${BELAY_CONTROL_DIR%/*}\"\n"
                             "echo something >\"$BELAY_CHECKPOINT_DIR/state\"\n"
                             "while [ ! -e \"$BELAY_CONTROL_DIR/end\" ]; do sleep 0.05; done\n"
                             "exit 85\n";

static bool can_have_sandboxes(void)
{
    return geteuid() == 0 && access("/proc/sys/kernel/ns_last_pid", W_OK) == 0 &&
           may_unshare(CLONE_NEWPID | CLONE_NEWNS);
}

static char home[64]; /* of the player, for one test */

/* Valid until the fourth next call. */
static const char *at_home(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", home, name);
    return path;
}

static void set_mode(const char *mode)
{
    struct err e;
    assert_int_equal(fs_write_atomic(at_home("mode"), mode, strlen(mode), 0644, &e), 0);
}

static const char *user; /* of the job; "": root, as the agent */

static struct world *begin(void **state, const char *mode)
{
    struct err e;
    if (!can_have_sandboxes())
        skip();
    STR_COPY(home, "/tmp/belay-test-criu-XXXXXX");
    assert_non_null(mkdtemp(home));
    assert_int_equal(chmod(home, 0755), 0);
    assert_int_equal(fs_write_atomic(at_home("criu"), player, sizeof(player) - 1, 0755, &e), 0);
    set_mode(mode);
    user = "";
    char *config = mem_printf("token: t\ncriu: %s\n", at_home("criu"));
    struct world *w = world_create(state, config);
    free(config);
    return w;
}

static int end(void **state)
{
    struct err e;
    return fs_remove_tree(home, &e) | world_teardown(state);
}

static char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static char *keys[] = {key};
static const struct wire_secrets secrets = {
    .version = 7, .checkpoint_keys = keys, .n_checkpoint_keys = 1, .encrypts = true};

static struct wire_desired_attempt *want_criu(struct world *w, int64_t attempt, int64_t every_ms)
{
    struct wire_desired_attempt *a = world_want(w, 1, attempt, script);
    a->method = WIRE_METHOD_CRIU;
    STR_COPY(a->user, user);
    a->ckpt_every_ms = every_ms;
    a->needs_secrets = true;
    a->secrets = secrets;
    return a;
}

static bool has_started(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "start 1000 ") != NULL;
}

static bool is_back(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "back with something\n") != NULL;
}

static bool was_called(const char *words)
{
    char *calls = world_read(at_home("calls"));
    bool found = calls && strstr(calls, words);
    free(calls);
    return found;
}

static void drain(struct world *w)
{
    struct wire_desired_attempt *a = &world_find(w, 1)->a;
    a->want = WIRE_SAVE_STOP;
    a->reason = WIRE_END_DRAINED;
    world_go(w);
}

static void save_and_stop(struct world *w)
{
    want_criu(w, 1, 0);
    world_start_agent(w);
    world_until(w, has_started, 1, "the program runs, as process 1000");
    drain(w);
    world_until(w, has_ended, 1, "it was saved and stopped");
    const struct wire_attempt_status *s = world_reported(w, 1);
    assert_int_equal(s->end, WIRE_END_DRAINED);
    assert_int_equal(s->n_checkpoints, 1);
    assert_int_equal(s->checkpoints[0].cause, WIRE_CAUSE_DRAIN);
    assert_true(was_called("--leave-stopped"));
}

static void next_attempt(struct world *w)
{
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is cleared away");
    want_criu(w, 2, 0);
    world_go(w);
}

static void a_dump_is_stored_and_restored(void **state)
{
    struct world *w = begin(state, "");
    save_and_stop(w);
    assert_non_null(strstr(world_output(w, 1), " in /run/belay-task/scratch, /run/belay-task\n"));
    next_attempt(w);
    world_until(w, is_back, 1, "it is back");
    world_until(w, is_running, 1, "and is reported as running");
    assert_int_equal(world_reported(w, 1)->restored_attempt, 1);
    assert_int_equal(world_reported(w, 1)->failed_saves, 0);
    assert_true(world_reported(w, 1)->started_at != WIRE_NONE);
    assert_true(was_called("--action-script /run/belay-task/hook --inherit-fd fd[3]:pipe:[") &&
                was_called("] -d\n"));
}

static void files_that_the_user_has_rights_to_are_restored(void **state)
{
    struct world *w = begin(state, "");
    user = "nobody";
    save_and_stop(w);
    next_attempt(w);
    world_until(w, is_back, 1, "it is back");
    world_until(w, is_running, 1, "and is reported as running");
    assert_int_equal(world_reported(w, 1)->restored_attempt, 1);
    assert_int_equal(world_reported(w, 1)->failed_saves, 0);
    char *mark = world_task_path(w, 1, 2, "rights");
    assert_true(fs_exists(mark));
    free(mark);
}

static void a_failed_dump_is_reported_and_the_program_continues(void **state)
{
    struct world *w = begin(state, "fails");
    want_criu(w, 1, 1000);
    world_start_agent(w);
    world_until(w, has_failed_save, 1, "the failure is reported");
    assert_string_equal(
        world_reported(w, 1)->save_error, "criu dump failed with exit code 1: cannot seize 1000");
    assert_true(was_called("--leave-running"));
    /* The dump reports success but lacks the job's files: it is stored, and the restore fails. */
    set_mode("hookless");
    world_until(w, has_checkpoint, 1, "the next one is stored");
    set_mode("");
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, is_running, 1, "the agent that came back has it");
    world_task_write(w, 1, 1, "control/end", "");
    world_until(w, has_ended, 1, "it ended");
    assert_int_equal(world_reported(w, 1)->end,
        WIRE_END_FAILED); /* for a program that was not asked to save, 85 is a failure */
    assert_int_equal(world_reported(w, 1)->exit_code, 85);
    next_attempt(w);
    world_until(w, has_failed_save, 1, "the failed restore is reported");
    assert_non_null(strstr(world_reported(w, 1)->save_error, "files.json"));
}

/* ---- its output ---- */

static bool has_own_mounts;

static char *node_of(const struct world *w)
{
    return mem_printf("%s/node", w->dir);
}

static struct world *begin_on_small_disk(void **state)
{
    struct world *w = begin(state, "");
    char *node = node_of(w);
    assert_true(has_own_mounts);
    assert_int_equal(mkdir(node, 0711), 0);
    assert_int_equal(mount("belay-test", node, "tmpfs", 0, "size=16m"), 0);
    free(node);
    return w;
}

static int end_on_small_disk(void **state)
{
    struct world *w = *state;
    char *node = node_of(w);
    w->deaf_to_output = false;
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is cleared away");
    world_kill_agent(w, SIGTERM);
    umount2(node, MNT_DETACH);
    free(node);
    return end(state);
}

static int64_t free_bytes(const struct world *w)
{
    struct statvfs v;
    char *node = node_of(w);
    assert_int_equal(statvfs(node, &v), 0);
    free(node);
    return (int64_t)(v.f_bavail * v.f_frsize);
}

static bool is_cut_or_full(struct world *w, int64_t unused)
{
    (void)unused;
    return free_bytes(w) < 1 << 20 || world_log_has(w, "a task's output is cut");
}

/* belayd accepts no output meanwhile. */
static void what_it_prints_leaves_the_agent_its_space(void **state)
{
    static char floods[] = "#!/bin/sh\n"
                           "yes aaaa & while [ ! -e \"$BELAY_CONTROL_DIR/end\" ]; do sleep 0.05; "
                           "done\nkill $!; wait; echo; echo over\n";
    struct world *w = begin_on_small_disk(state);
    w->deaf_to_output = true;
    user = "nobody";
    struct wire_desired_attempt *a = want_criu(w, 1, 0);
    STR_COPY(a->cwd, "/");
    a->script = floods;
    world_start_agent(w);
    world_until(w, is_cut_or_full, 1, "its output is cut");
    if (free_bytes(w) < 2 << 20)
        fail_msg("%lld KiB are free", (long long)free_bytes(w) >> 10);
    w->deaf_to_output = false;
    world_task_write(w, 1, 1, "control/end", "");
    world_until(w, has_ended, 1, "it goes on, and ends");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_non_null(strstr(world_output(w, 1), " bytes of output are missing here ----\n"));
}

/* Ignores the last status of the previous agent. */
static bool has_reported_criu(struct world *w, int64_t is_full)
{
    return w->status.criu_text[0] && (w->status.disk_full[0] != '\0') == (is_full != 0);
}

/* Otherwise its jobs by CRIU would find no node until another restart of the agent. */
static void an_agent_on_a_full_disk_still_has_criu(void **state)
{
    static char chunk[1 << 16];
    struct world *w = begin_on_small_disk(state);
    for (int is_full = 0; is_full < 2; is_full++) {
        world_forget_reports(w);
        world_start_agent(w);
        world_until(w, has_reported_criu, is_full, "it reports what it can");
        if (w->status.criu != WIRE_CRIU_CPU)
            fail_msg("with a %s disk: %s", is_full ? "full" : "new", w->status.criu_text);
        world_kill_agent(w, SIGTERM);
        char *path = mem_printf("%s/node/ballast", w->dir);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        for (size_t n = sizeof(chunk); n >= 1; n /= 2)
            while (write(fd, chunk, n) == (ssize_t)n)
                continue;
        close(fd);
        assert_int_equal(free_bytes(w), 0);
        free(path);
    }
    world_start_agent(w);
}

/* ---- what does not come back ---- */

static void put_secret(void)
{
    struct err e;
    assert_int_equal(fs_write_atomic(at_home("secret"), "x", 1, 0600, &e), 0);
}

/* The text with home in place of its "%s", if it has one. */
static char *with_home(const char *text)
{
    const char *mark = strstr(text, "%s");
    return mark ? mem_printf("%.*s%s%s", (int)(mark - text), text, home, mark + 2)
                : mem_strdup(text);
}

/* Its only checkpoint cannot be restored: only its user can discard that work. */
static struct world *check_refused(
    void **state, const char *mode, const char *as_user, const char *why)
{
    struct world *w = begin(state, "");
    user = as_user;
    put_secret();
    save_and_stop(w);
    set_mode(mode);
    next_attempt(w);
    world_until(w, has_ended, 1, "it ended");
    const struct wire_attempt_status *s = world_reported(w, 1);
    assert_int_equal(s->end, WIRE_END_STORE);
    assert_non_null(
        strstr(s->text, "it has no other checkpoint: checkpoint 1.1 cannot be resumed"));
    assert_non_null(strstr(s->text, "belay release 1 (--from-scratch: begin again)"));
    assert_int_equal(s->restored_attempt, 0);
    assert_int_equal(s->failed_saves, 1);
    assert_int_equal(s->failed_restores, 1);
    char *expected = with_home(why);
    assert_string_equal(s->save_error, expected);
    assert_string_equal(s->restore_error, expected);
    free(expected);
    assert_null(strstr(world_output(w, 1), "start "));
    return w;
}

static void a_job_that_cannot_be_restored_is_held(void **state)
{
    check_refused(state, "missing", "",
        "checkpoint 1.1 cannot be resumed here: criu restore failed with exit code 1: Unable to "
        "open inventory.img: No such file");
}

/* Its user discarded what attempts before `from` had saved. */
static void a_job_whose_checkpoints_were_given_up_begins_again(void **state)
{
    struct world *w = check_refused(state, "dies", "",
        "checkpoint 1.1 cannot be resumed here: criu restore was killed by signal 9");
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is cleared away");
    want_criu(w, 3, 0)->from_attempt = 3;
    world_go(w);
    world_until(w, has_started, 1, "it begins again");
}

static void a_criu_that_is_killed_is_no_end_of_the_job(void **state)
{
    check_refused(state, "dies", "",
        "checkpoint 1.1 cannot be resumed here: criu restore was killed by signal 9");
}

static void a_file_that_the_user_has_no_right_to_is_refused_before_the_program_runs(void **state)
{
    struct world *w = check_refused(state, "secret", "nobody",
        "checkpoint 1.1 cannot be resumed here: criu restore failed with exit code 1: "
        "%s/secret is open for reading in process 1000, and nobody has no right to that");
    assert_false(was_called("continue"));
    assert_null(strstr(world_output(w, 1), "back with"));
}

static void a_criu_that_has_no_rights_compared_restores_nothing(void **state)
{
    check_refused(state, "unhooked", "nobody",
        "checkpoint 1.1 cannot be resumed here: criu restore ended without calling its action "
        "script, which compares rights");
}

/* ---- open files whose name was removed ---- */

static void put_images_of(const char *path)
{
    struct err e;
    assert_int_equal(image_write_ghost(home, path, &e), 0);
}

static void a_removed_file_where_the_user_can_write_is_not_saved(void **state)
{
    struct world *w = begin(state, "removed");
    user = "nobody";
    put_images_of("/tmp/belay-test-criu-gone");
    want_criu(w, 1, 1000);
    world_start_agent(w);
    world_until(w, has_failed_save, 1, "the failure is reported");
    assert_string_equal(world_reported(w, 1)->save_error,
        "criu dump failed with exit code 1: /tmp/belay-test-criu-gone was removed while open: CRIU "
        "restores such a file safely only below $TMPDIR");
    /* which is accessible only to root during a restore */
    put_images_of("/run/belay-task/scratch/gone");
    world_until(w, has_checkpoint, 1, "the next one is stored");
}

/* The checkpoint of an agent whose version did not check. */
static void a_removed_file_of_an_older_checkpoint_is_not_recreated(void **state)
{
    struct world *w = begin(state, "unlooked");
    user = "nobody";
    put_images_of("/tmp/belay-test-criu-gone");
    save_and_stop(w);
    set_mode("");
    next_attempt(w);
    world_until(w, has_ended, 1, "it ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_STORE);
    assert_non_null(strstr(world_reported(w, 1)->save_error,
        "checkpoint 1.1 cannot be resumed here: /tmp/belay-test-criu-gone was removed while"));
    assert_false(was_called("restore"));
}

static void files_removed_in_the_scratch_directory_are_restored(void **state)
{
    struct world *w = begin(state, "removed");
    user = "nobody";
    put_images_of("/run/belay-task/scratch/gone");
    save_and_stop(w);
    next_attempt(w);
    world_until(w, is_back, 1, "it is back");
    world_until(w, is_running, 1, "and is reported as running");
}

static void a_criu_that_does_not_give_the_scratch_restores_nothing(void **state)
{
    check_refused(state, "ungiven", "nobody",
        "checkpoint 1.1 cannot be resumed here: the job's BELAY_CHECKPOINT_DIR was not given to "
        "nobody");
}

static void a_removed_file_of_a_job_of_root_is_restored(void **state)
{
    struct world *w = begin(state, "removed");
    put_images_of("/tmp/belay-test-criu-gone");
    save_and_stop(w);
    next_attempt(w);
    world_until(w, is_back, 1, "it is back");
}

static void check_held(struct world *w, const char *text)
{
    world_until(w, has_ended, 1, "it ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_STORE);
    assert_non_null(strstr(world_reported(w, 1)->text, text));
    assert_false(was_called("restore"));
}

static void without_encryption_nothing_starts(void **state)
{
    struct world *w = begin(state, "");
    struct wire_desired_attempt *a = want_criu(w, 1, 0);
    a->needs_secrets = false;
    a->secrets = (struct wire_secrets){0};
    world_start_agent(w);
    check_held(w, "it needs encrypted checkpoints");
}

/* Replaces a checkpoint, as an attacker with write access to the store can. */
static void forge(struct world *w)
{
    struct ckpt_job j = {.cluster = "lab", .job = 1};
    struct ckpt_stats stats;
    struct err e;
    char *tree = mem_printf("%s/forged", w->dir), *images = mem_printf("%s/images/dump", tree);
    assert_int_equal(store_open(w->store_url, NULL, &j.store, &e), 0);
    assert_int_equal(fs_mkdirs(images, 0700, &e), 0);
    assert_int_equal(ckpt_save(&j, (struct ckpt_id){1, 9}, tree, -1, NULL, &stats, &e), 0);
    store_close(j.store);
    free(images);
    free(tree);
}

static void an_unencrypted_checkpoint_is_not_restored(void **state)
{
    struct world *w = begin(state, "");
    forge(w);
    want_criu(w, 2, 0);
    world_start_agent(w);
    check_held(w, "it is not encrypted");
    char *manifest = mem_printf("%s/store/lab/jobs/1/manifests/0000000001-0000000009.json", w->dir);
    assert_true(fs_exists(manifest)); /* nothing is discarded silently */
    free(manifest);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_dump_is_stored_and_restored, end),
        cmocka_unit_test_teardown(a_failed_dump_is_reported_and_the_program_continues, end),
        cmocka_unit_test_teardown(what_it_prints_leaves_the_agent_its_space, end_on_small_disk),
        cmocka_unit_test_teardown(an_agent_on_a_full_disk_still_has_criu, end_on_small_disk),
        cmocka_unit_test_teardown(a_job_that_cannot_be_restored_is_held, end),
        cmocka_unit_test_teardown(a_job_whose_checkpoints_were_given_up_begins_again, end),
        cmocka_unit_test_teardown(a_criu_that_is_killed_is_no_end_of_the_job, end),
        cmocka_unit_test_teardown(files_that_the_user_has_rights_to_are_restored, end),
        cmocka_unit_test_teardown(
            a_file_that_the_user_has_no_right_to_is_refused_before_the_program_runs, end),
        cmocka_unit_test_teardown(a_criu_that_has_no_rights_compared_restores_nothing, end),
        cmocka_unit_test_teardown(a_removed_file_where_the_user_can_write_is_not_saved, end),
        cmocka_unit_test_teardown(a_removed_file_of_an_older_checkpoint_is_not_recreated, end),
        cmocka_unit_test_teardown(files_removed_in_the_scratch_directory_are_restored, end),
        cmocka_unit_test_teardown(a_criu_that_does_not_give_the_scratch_restores_nothing, end),
        cmocka_unit_test_teardown(a_removed_file_of_a_job_of_root_is_restored, end),
        cmocka_unit_test_teardown(without_encryption_nothing_starts, end),
        cmocka_unit_test_teardown(an_unencrypted_checkpoint_is_not_restored, end),
    };
    has_own_mounts = can_have_sandboxes() && enter_own_mounts();
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
