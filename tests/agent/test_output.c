/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of real tasks: in files of the user, and on its way to belayd before, with and after
 * the end.
 */
#include "world.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void output_goes_to_the_files_that_were_named_as_well(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char in[1100], text[1200];
    snprintf(in, sizeof(in), "%s/in.txt", w->dir);
    struct err e;
    assert_int_equal(fs_write_atomic(in, "hello\n", 6, 0600, &e), 0);
    struct wire_desired_attempt *a = world_want(w, 42, 1, "#!/bin/sh\ncat\necho oops >&2\n");
    STR_COPY(a->cwd, w->dir);
    char output[] = "%x-%j.%n", error[] = "%j.err", input[] = "in.txt";
    a->output = output;
    a->error = error;
    a->input = input;
    world_start_agent(w);
    world_until(w, has_ended, 42, "the script ended");
    assert_ended(w, 42, WIRE_END_SUCCEEDED, 0, "");
    assert_file(w->dir, "job-42.0", "hello\n");
    assert_file(w->dir, "42.err", "oops\n");
    snprintf(text, sizeof(text), "%s", world_output(w, 42));
    assert_int_equal(strlen(text), strlen("hello\noops\n"));
    assert_non_null(strstr(text, "hello\n"));
    assert_non_null(strstr(text, "oops\n"));
}

static void a_later_attempt_adds_to_its_file(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char output[] = "out-%j", path[1100];
    struct err e;
    snprintf(path, sizeof(path), "%s/out-7", w->dir);
    assert_int_equal(fs_write_atomic(path, "first\n", 6, 0600, &e), 0);
    struct wire_desired_attempt *a =
        world_want(w, 7, 2, "#!/bin/sh\nyes | head -c 300000 | wc -c\necho two >&2; exit 3\n");
    STR_COPY(a->cwd, w->dir);
    a->output = output;
    a = world_want(w, 8, 1, "#!/bin/sh\necho fresh\n");
    STR_COPY(a->cwd, w->dir);
    a->output = path; /* absolute, and emptied */
    snprintf(path, sizeof(path), "%s/out-8", w->dir);
    assert_int_equal(fs_write_atomic(path, "stale\n", 6, 0600, &e), 0);
    world_start_agent(w);
    world_until(w, has_ended, 7, "the script ended");
    world_until(w, has_ended, 8, "the other ended");
    assert_ended(w, 7, WIRE_END_FAILED, 3, "exit code 3");
    assert_file(w->dir, "out-7", "first\n300000\ntwo\n");
    assert_file(w->dir, "out-8", "fresh\n");
}

static void a_file_that_cannot_be_opened_is_the_reason_of_the_end(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char output[] = "no/such/dir/%j.out", input[] = "nothing.txt";
    world_want(w, 1, 1, "#!/bin/sh\necho ran\n")->output = output;
    world_want(w, 2, 1, "#!/bin/sh\necho ran\n")->input = input;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the first ended");
    world_until(w, has_ended, 2, "the second ended");
    assert_ended(w, 1, WIRE_END_FAILED, 126,
        "its output cannot be written to no/such/dir/1.out: No such file or directory");
    assert_ended(w, 2, WIRE_END_FAILED, 126,
        "its input nothing.txt cannot be opened: No such file or directory");
    assert_string_equal(world_output(w, 1), "");
}

/* Otherwise belayd could release the machine, and unshipped output would be lost. */
static void an_end_is_reported_after_its_output_is_shipped(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nyes | head -c 3000000\n");
    world_start_agent(w);
    world_until(w, is_reported_ended, 1, "the script ended");
    assert_int_equal(world_reported(w, 1)->output_bytes, 3000000);
    assert_int_equal(strlen(world_output(w, 1)), 3000000);
}

static void assert_tail(const struct world *w, int64_t offset, const char *bytes, size_t n)
{
    const struct wire_tail *t = w->status.tails;
    assert_int_equal(w->status.n_tails, 1);
    assert_true(t->job == 1 && t->attempt == 1 && t->offset == offset);
    char *got = mem_alloc(n + 1);
    assert_true(str_unhex(t->hex, got, n));
    assert_memory_equal(got, bytes, n);
    free(got);
}

/* Its machine may be gone before the output arrives. */
static void an_end_that_precedes_its_output_carries_it(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    w->deaf_to_output = true;
    world_want(w, 1, 1, "#!/bin/sh\nprintf 'some\\377\\0\\n'\nexit 4\n");
    world_start_agent(w);
    world_until(w, is_reported_ended, 1, "the script ended");
    assert_ended(w, 1, WIRE_END_FAILED, 4, "exit code 4");
    assert_int_equal(world_reported(w, 1)->output_bytes, 7);
    assert_tail(w, 0, "some\377\0\n", 7);
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, is_reported_ended, 1, "the next agent reports it as well");
    assert_tail(w, 0, "some\377\0\n", 7);
}

static void an_end_carries_a_limited_part_of_much_output(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char first[WIRE_TAIL_MAX], last[WIRE_TAIL_MAX];
    memset(first, 'a', sizeof(first));
    memset(last, 'b', sizeof(last));
    w->deaf_to_output = true;
    world_want(w, 1, 1,
        "#!/bin/sh\nhead -c 65536 /dev/zero | tr '\\0' a\nhead -c 65536 /dev/zero | tr '\\0' b\n");
    world_start_agent(w);
    world_until(w, is_reported_ended, 1, "the script ended");
    assert_tail(w, 0, first, sizeof(first)); /* it continues what belayd has */
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, is_reported_ended, 1, "the next agent reports it as well");
    assert_tail(w, 65536, last, sizeof(last)); /* it does not know what belayd has */
}

static void an_ended_attempt_can_be_forgotten_before_its_end_is_reported(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    w->deaf_to_output = true;
    world_want(w, 1, 1, "#!/bin/sh\necho some\n");
    world_start_agent(w);
    world_until_said(w, "attempt ended");
    w->deaf_to_output = false;
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "it is forgotten");
    world_want(w, 2, 1, "#!/bin/sh\nsleep 3\nexit 5\n"); /* longer than the end waits */
    world_go(w);
    world_until(w, has_ended, 2, "the agent goes on");
}

/* cat FIFO >GOT. */
static pid_t read_fifo(const char *fifo, const char *got)
{
    pid_t pid = fork();
    if (pid == 0) {
        int to = open(got, O_WRONLY | O_CREAT | O_TRUNC, 0644), from = open(fifo, O_RDONLY);
        if (to >= 0 && from >= 0 && dup2(from, 0) == 0 && dup2(to, 1) == 1)
            execlp("cat", "cat", NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

/* The reader ends with the job, and the agent does not wait for another one. */
static void output_to_a_fifo_is_complete_when_the_job_ends_without_cgroups_too(void **state)
{
    enum { JOBS = 5 };
    struct world *w = world_create(state, "token: t\n");
    char files[JOBS][20];
    pid_t readers[JOBS];
    world_be_nobody(w);
    assert_int_equal(chmod(w->dir, 0755), 0);
    for (int k = 0; k < JOBS; k++) {
        snprintf(files[k], sizeof(files[k]), "fifo-%d", k);
        char *fifo = mem_printf("%s/%s", w->dir, files[k]);
        char *got = mem_printf("%s/got-%d", w->dir, k);
        assert_int_equal(mkfifo(fifo, 0666) | chmod(fifo, 0666), 0);
        readers[k] = read_fifo(fifo, got);
        free(fifo);
        free(got);
        struct wire_desired_attempt *a = world_want(w, k + 1, 1, "#!/bin/sh\necho one line\n");
        STR_COPY(a->cwd, w->dir);
        a->output = files[k];
    }
    world_start_agent(w);
    for (int k = 0; k < JOBS; k++) {
        char got[16];
        world_until(w, has_ended, k + 1, "the job ended");
        assert_ended(w, k + 1, WIRE_END_SUCCEEDED, 0, "");
        assert_int_equal(waitpid(readers[k], NULL, 0), readers[k]);
        snprintf(got, sizeof(got), "got-%d", k);
        assert_file(w->dir, got, "one line\n");
    }
    assert_false(world_log_has(w, "could not be written to its file in time"));
}

static bool is_large(struct world *w, int64_t job)
{
    return strlen(world_output(w, job)) > 900000;
}

static void much_output_is_shipped_while_the_program_runs(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nseq 1 150000\nsleep 1000\n");
    world_start_agent(w);
    world_until(w, is_large, 1, "the output is there");
    assert_true(str_ends(world_output(w, 1), "\n149999\n150000\n"));
    assert_true(is_running(w, 1));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(output_goes_to_the_files_that_were_named_as_well),
        world_test(a_later_attempt_adds_to_its_file),
        world_test(a_file_that_cannot_be_opened_is_the_reason_of_the_end),
        world_test(an_end_is_reported_after_its_output_is_shipped),
        world_test(an_end_that_precedes_its_output_carries_it),
        world_test(an_end_carries_a_limited_part_of_much_output),
        world_test(an_ended_attempt_can_be_forgotten_before_its_end_is_reported),
        world_test(output_to_a_fifo_is_complete_when_the_job_ends_without_cgroups_too),
        world_test(much_output_is_shipped_while_the_program_runs),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
