/* SPDX-License-Identifier: Apache-2.0
 *
 * How podman and apptainer are invoked to run a script in an image, and what is reported of an
 * image that is not available. The runtimes are scripts of a few lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/supervisor/image.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
    char dir[64];
    struct image_runtimes runtimes;
};

static char *path_in(const struct place *p, const char *name)
{
    return mem_printf("%s/%s", p->dir, name);
}

static void put(const struct place *p, const char *name, const char *text)
{
    char *path = path_in(p, name);
    struct err e;
    if (fs_write_atomic(path, text, strlen(text), 0755, &e) != 0)
        fail_msg("%s", e.text);
    free(path);
}

static int set_up(void **state)
{
    struct place *p = mem_alloc(sizeof(*p));
    struct err e;
    STR_COPY(p->dir, "/tmp/belay-test.XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    char *control = path_in(p, "control");
    assert_int_equal(fs_mkdirs(control, 0700, &e), 0);
    free(control);
    char *text = image_script();
    put(p, "image.sh", text);
    free(text);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    struct err e;
    assert_int_equal(fs_remove_tree(p->dir, &e), 0);
    image_runtimes_deinit(&p->runtimes);
    free(p);
    return 0;
}

static struct image_run asked(struct place *p, const char *image)
{
    static char script[] = "/t/script", one[] = "a b", *argv[] = {script, one, NULL};
    static char x[] = "X=secret", path[] = "PATH=/host", job[] = "BELAY_JOB_ID=7",
                *env[] = {x, path, job, NULL};
    return (struct image_run){.runtimes = &p->runtimes,
        .image = image,
        .name = "belay-7-1",
        .dir = p->dir,
        .cwd = "/data",
        .bin = "/opt/belay/bin",
        .env = env,
        .argv = argv};
}

static char *joined(char **argv)
{
    struct buf out = {0};
    for (char **w = argv; *w; w++)
        buf_printf(&out, "%s%s", w == argv ? "" : " ", *w);
    return buf_take(&out);
}

static void has(const char *text, const char *part)
{
    assert_non_null(text);
    if (!strstr(text, part))
        fail_msg("no \"%s\" in %s", part, text ? text : "");
}

static void podman_gets_the_jobs_directories_user_and_names_of_variables(void **state)
{
    struct place *p = *state;
    struct image_run r = asked(p, "docker.io/library/python:3.12");
    char **argv;
    struct err e;
    p->runtimes.podman = mem_strdup("/usr/bin/podman");
    r.gpus = "0,2";
    assert_int_equal(image_command(&r, &argv, &e), 0);
    char *text = joined(argv);
    char *dir = mem_printf("--volume %s:%s ", p->dir, p->dir);
    has(text, "/image.sh podman /usr/bin/podman docker.io/library/python:3.12 ");
    has(text, dir);
    free(dir);
    has(text, "--volume /data:/data --volume /opt/belay/bin/belay:/run/belay/bin/belay:ro ");
    has(text, "--device nvidia.com/gpu=0 --device nvidia.com/gpu=2 ");
    has(text, "--userns=keep-id ");
    has(text,
        "--env X --env BELAY_JOB_ID --workdir=/data docker.io/library/python:3.12 /bin/sh -c ");
    has(text, " belay /t/script a b");
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "--env PATH"));
    has(text, " --name=belay-7-1 ");
    free(text);
    mem_free_texts(argv);
    assert_int_equal(image_enter_command(&r, false, &argv, &e), 0);
    text = joined(argv);
    has(text, "/usr/bin/podman --cgroup-manager=cgroupfs exec --interactive --env BELAY_SESSION "
              "--workdir=/data belay-7-1 /bin/sh -c PATH=");
    has(text, "/run/belay/bin\"; ");
    has(text, " exec \"$@\" belay /t/script a b");
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "image.sh"));
    free(text);
    mem_free_texts(argv);
    assert_int_equal(image_enter_command(&r, true, &argv, &e), 0);
    text = joined(argv);
    has(text, " exec --interactive --tty --detach-keys= --env TERM --env BELAY_SESSION ");
    free(text);
    mem_free_texts(argv);
    r.is_root = true;
    r.gpus = NULL;
    r.cwd = "/"; /* which is the image's root */
    assert_int_equal(image_command(&r, &argv, &e), 0);
    text = joined(argv);
    assert_null(strstr(text, "keep-id"));
    assert_null(strstr(text, "nvidia"));
    assert_null(strstr(text, "--volume /:/"));
    free(text);
    mem_free_texts(argv);
}

static void the_image_decides_which_runtime_runs_it(void **state)
{
    struct place *p = *state;
    struct image_run r = asked(p, "python:3.12"), file = asked(p, "/shared/tools.sif");
    char **argv;
    struct err e;
    assert_int_equal(image_command(&r, &argv, &e), ERR_CONFIG);
    assert_int_equal(image_enter_command(&r, false, &argv, &e), ERR_CONFIG);
    p->runtimes.podman = mem_strdup("/usr/bin/podman");
    assert_int_equal(image_command(&file, &argv, &e), ERR_CONFIG);
    has(e.text, "apptainer");
    p->runtimes.apptainer = mem_strdup("/usr/bin/apptainer");
    file.gpus = "0";
    assert_int_equal(image_command(&file, &argv, &e), 0);
    char *text = joined(argv);
    has(text, "image.sh file /usr/bin/apptainer /shared/tools.sif ");
    has(text, "/usr/bin/apptainer exec --nv --bind ");
    has(text, "--pwd /data /shared/tools.sif /bin/sh -c ");
    free(text);
    mem_free_texts(argv);
    assert_int_equal(image_enter_command(&file, true, &argv, &e), 0);
    text = joined(argv);
    assert_true(str_starts(text, "/usr/bin/apptainer exec --nv --bind "));
    has(text, "--pwd /data /shared/tools.sif /bin/sh -c PATH=");
    has(text, " exec \"$@\" belay /t/script a b");
    free(text);
    mem_free_texts(argv);
    free(p->runtimes.podman);
    p->runtimes.podman = NULL;
    assert_int_equal(image_command(&r, &argv, &e), 0);
    text = joined(argv);
    has(text, "image.sh apptainer /usr/bin/apptainer python:3.12 ");
    has(text, "/control/image.sif /bin/sh -c ");
    free(text);
    mem_free_texts(argv);
}

/* Runs image.sh with a runtime of this text; returns its exit code. */
static int run(struct place *p, const char *kind, const char *image, const char *runtime)
{
    put(p, "runtime", runtime);
    char *command =
        mem_printf("cd %s && ./image.sh %s %s/runtime %s %s/control echo ran >out 2>err", p->dir,
            kind, p->dir, image, p->dir);
    int status = system(command);
    free(command);
    return WEXITSTATUS(status);
}

static bool why(struct place *p, char *text, size_t size)
{
    char *control = path_in(p, "control");
    bool bad = image_why(control, getuid(), text, size);
    free(control);
    return bad;
}

static void an_image_that_does_not_exist_fails_the_job(void **state)
{
    struct place *p = *state;
    char text[200];
    assert_int_equal(
        run(p, "podman", "x:1",
            "#!/bin/sh\ntest $1 = pull || exit 1\necho Trying >&2\necho 'Error: manifest "
            "unknown' >&2\nexit 125\n"),
        125);
    assert_true(why(p, text, sizeof(text)));
    has(text, "the image x:1 is not available: Error: manifest unknown");
    assert_int_equal(run(p, "file", "/no/such.sif", "#!/bin/sh\n"), 125);
    assert_true(why(p, text, sizeof(text)));
    has(text, "/no/such.sif is not available: there is no such file");
}

static void an_unreachable_registry_is_retried_and_is_no_failure_of_the_job(void **state)
{
    struct place *p = *state;
    char text[200], *tries = path_in(p, "tries");
    struct buf n = {0};
    struct err e;
    assert_int_equal(
        run(p, "podman", "x:1",
            "#!/bin/sh\ntest $1 = pull || exit 1\necho >>tries\necho 'dial tcp: i/o timeout' "
            ">&2\nexit 125\n"),
        125);
    assert_false(why(p, text, sizeof(text)));
    has(text, "the image x:1 is not available: dial tcp: i/o timeout (after 3 tries)");
    assert_int_equal(fs_read(tries, 100, &n, &e), 0);
    assert_int_equal(n.len, 3);
    buf_deinit(&n);
    free(tries);
}

static void an_image_that_is_there_is_not_fetched(void **state)
{
    struct place *p = *state;
    char *pulled = path_in(p, "pulled"), *out = path_in(p, "out");
    struct buf text = {0};
    struct err e;
    assert_int_equal(run(p, "podman", "x:1",
                         "#!/bin/sh\ntest \"$1 $2\" = 'image exists' && exit 0\n: >pulled\n"),
        0);
    assert_false(fs_exists(pulled));
    assert_int_equal(run(p, "apptainer", "x:1", "#!/bin/sh\necho \"$@\" >pulled\n"), 0);
    assert_int_equal(fs_read(pulled, 200, &text, &e), 0);
    has(buf_str(&text), "control/image.sif docker://x:1\n");
    assert_int_equal(fs_read(out, 200, &text, &e), 0);
    assert_string_equal(buf_str(&text), "ran\n");
    buf_deinit(&text);
    free(pulled);
    free(out);
}

static void words_are_read_from_nowhere_else(void **state)
{
    struct place *p = *state;
    char text[200], *words = path_in(p, "control/" IMAGE_WORDS), *other = path_in(p, "other");
    put(p, "other", "bad of somebody else's");
    assert_int_equal(symlink(other, words), 0);
    assert_false(why(p, text, sizeof(text)));
    assert_string_equal(text, "");
    unlink(words);
    assert_int_equal(link(other, words), 0);
    assert_false(why(p, text, sizeof(text)));
    unlink(words);
    assert_int_equal(mkfifo(words, 0600), 0);
    assert_false(why(p, text, sizeof(text)));
    unlink(words);
    put(p, "control/" IMAGE_WORDS,
        "bad a\x01"
        "b\nmore");
    assert_true(why(p, text, sizeof(text)));
    assert_string_equal(text, "a?b");
    put(p, "control/" IMAGE_WORDS, "nonsense");
    assert_false(why(p, text, sizeof(text)));
    free(words);
    free(other);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(podman_gets_the_jobs_directories_user_and_names_of_variables),
        T(the_image_decides_which_runtime_runs_it),
        T(an_image_that_does_not_exist_fails_the_job),
        T(an_unreachable_registry_is_retried_and_is_no_failure_of_the_job),
        T(an_image_that_is_there_is_not_fetched),
        T(words_are_read_from_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
