/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that a restore by criu would create by name are found in its images, and refused in
 * directories that users other than root can write to.
 */
#include "agent/criu/criu_created.h"

#include "agent/criu/criu_images.h"
#include "criu_image.h"

#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
/* after the headers that it needs */
#include <cmocka.h>

#define NOBODY 65534

static char dir[] = "/run/belay-created-XXXXXX"; /* below directories that only root can write to */

static void check_list(const struct buf *files, const struct buf *remaps, const char *want)
{
    struct criu_created_list list;
    struct buf got = {0};
    struct err e;
    if (criu_images_parse(files->data, files->len, remaps->data, remaps->len, &list, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < list.n; i++)
        buf_printf(
            &got, "%s %s\n", list.items[i].is_socket ? "socket" : "file", list.items[i].path);
    assert_string_equal(buf_str(&got), want);
    criu_created_deinit(&list);
    buf_deinit(&got);
}

static void the_images_name_what_criu_creates(void **state)
{
    struct buf files = {0}, remaps = {0}, none = {0};
    (void)state;
    check_list(&none, &none, "");
    image_begin(&files, IMAGE_FILES);
    check_list(&files, &none, "");
    image_file(&files, 1, "/usr/bin/keeps-its-name");
    image_file(&files, 2, "/home/ann/ghost");
    image_file(&files, 300000, "/home/ann/linked");
    image_file(&files, 4, "/proc/77/stat");
    image_socket(&files, 5, 0, NULL, "/home/ann/stream", 17); /* including its NUL */
    image_socket(&files, 6, 0, "/home/ann", "relative", 8);
    image_socket(&files, 7, 1, NULL, "/dev/log", 8); /* another process has this socket */
    image_socket(&files, 8, 0, NULL, "\0abstract", 9);
    image_socket(&files, 9, 0, NULL, "", 0);
    check_list(&files, &none, "socket /home/ann/stream\nsocket /home/ann/relative\n");
    image_begin(&remaps, IMAGE_REMAPS);
    image_remap(&remaps, 2, IMAGE_GHOST);
    image_remap(&remaps, 300000, IMAGE_LINKED);
    image_remap(&remaps, 4, IMAGE_PROCESS);
    check_list(&files, &remaps,
        "file /home/ann/ghost\nfile /home/ann/linked\n"
        "socket /home/ann/stream\nsocket /home/ann/relative\n");
    buf_deinit(&files);
    buf_deinit(&remaps);
}

static void check_refused(const struct buf *files, const struct buf *remaps)
{
    struct criu_created_list list;
    struct err e;
    assert_int_equal(
        criu_images_parse(files->data, files->len, remaps->data, remaps->len, &list, &e),
        ERR_UNSUPPORTED);
}

/* An image cut between two messages is a shorter valid image, which no longer matches the remaps.
 * Cut anywhere else it is invalid. */
static void an_image_that_is_not_understood_is_refused(void **state)
{
    struct buf files = {0}, remaps = {0}, none = {0}, bad = {0}, m = {0};
    (void)state;
    image_begin(&files, IMAGE_FILES);
    image_file(&files, 2, "/home/ann/ghost");
    image_begin(&remaps, IMAGE_REMAPS);
    image_remap(&remaps, 2, IMAGE_GHOST);
    for (size_t n = 0; n < files.len; n++) {
        /* sanitizers detect reads beyond it */
        struct buf cut = {.data = mem_dup(files.data, n), .len = n};
        check_refused(&cut, &remaps);
        free(cut.data);
    }
    for (size_t n = 1; n < remaps.len; n++) {
        struct buf cut = {.data = mem_dup(remaps.data, n), .len = n};
        if (n != 8)
            check_refused(&files, &cut);
        free(cut.data);
    }
    image_remap(&remaps, 3, IMAGE_GHOST); /* of a missing file */
    check_refused(&files, &remaps);
    image_begin(&bad, IMAGE_REMAPS);
    image_remap(&bad, 2, 3); /* of an unknown kind */
    check_refused(&files, &bad);
    check_refused(&bad, &none); /* of the wrong kind */
    buf_clear(&bad);
    image_begin(&bad, IMAGE_FILES);
    image_number(&m, 2, 2);
    image_bytes(&m, 3, "", 0);
    image_bytes(&m, 3, "", 0); /* a repeated member */
    image_message(&bad, &m);
    check_refused(&bad, &none);
    buf_deinit(&files);
    buf_deinit(&remaps);
    buf_deinit(&bad);
}

/* ---- directories ---- */

static char *in(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static int check_ghost(const char *path, const char *becomes_root, struct err *e)
{
    *e = (struct err){0};
    assert_int_equal(image_write_ghost(in("images"), path, e), 0);
    return criu_created_check(in("images"), becomes_root, e);
}

static void allowed(const char *path, const char *becomes_root)
{
    struct err e;
    if (check_ghost(path, becomes_root, &e))
        fail_msg("%s was refused: %s", path, e.text);
}

static void refused(const char *path, const char *becomes_root)
{
    struct err e;
    int rc = check_ghost(path, becomes_root, &e);
    if (rc != ERR_DENIED)
        fail_msg("%s: %s", path, rc ? e.text : "was allowed");
    assert_true(str_starts(e.text, path));
    assert_non_null(strstr(e.text, "below $TMPDIR"));
}

static void a_file_is_recreated_only_in_directories_of_root(void **state)
{
    (void)state;
    allowed(in("roots/gone"), NULL);
    allowed(in("roots/missing/gone"), NULL);
    refused(in("users/gone"), NULL);
    refused(in("users/roots/gone"), NULL); /* renaming "roots" replaces it */
    refused(in("users/missing/gone"), NULL);
    refused(in("shared/gone"), NULL);
    refused(in("groups/gone"), NULL);
    refused(in("link/gone"), NULL);
    refused(in("roots/../users/gone"), NULL);
    refused(in("roots/file/gone"), NULL);
    refused("gone", NULL);
    refused("/tmp/gone", NULL);
    allowed("/usr/lib/libgone.so", NULL);
    allowed("/gone", NULL);
}

static void a_directory_that_will_be_roots_counts_as_roots(void **state)
{
    char *scratch = mem_strdup(in("users"));
    (void)state;
    allowed(in("users/gone"), scratch);
    allowed(in("users/sub/gone"), scratch);
    refused(in("usersx/gone"), scratch);
    refused(in("shared/gone"), scratch);
    refused(in("users/../shared/gone"), scratch);
    refused(in("users/link/gone"), scratch);
    free(scratch);
}

static void a_socket_is_refused_like_a_file(void **state)
{
    struct buf files = {0};
    struct err e;
    (void)state;
    assert_int_equal(unlink(in("images/remap-fpath.img")), 0);
    image_begin(&files, IMAGE_FILES);
    image_socket(&files, 1, 0, in("users"), "socket", 6);
    assert_int_equal(image_write(&files, in("images"), "files.img", &e), 0);
    assert_int_equal(criu_created_check(in("images"), NULL, &e), ERR_DENIED);
    assert_true(str_starts(e.text, "the UNIX socket "));
    assert_non_null(strstr(e.text, in("users/socket: CRIU ")));
    assert_int_equal(criu_created_check(in("images"), in("users"), &e), 0);
}

static void images_of_an_old_criu_are_refused(void **state)
{
    struct buf old = {0};
    struct err e;
    (void)state;
    assert_int_equal(unlink(in("images/files.img")), 0);
    /* no images: as criu treats it */
    assert_int_equal(criu_created_check(in("images"), NULL, &e), 0);
    assert_int_equal(image_write(&old, in("images"), "unixsk.img", &e), 0);
    assert_int_equal(criu_created_check(in("images"), NULL, &e), ERR_UNSUPPORTED);
}

static void make_dir(const char *name, uid_t owner, mode_t mode)
{
    assert_int_equal(mkdir(in(name), 0700), 0);
    assert_int_equal(chmod(in(name), mode), 0);
    assert_int_equal(chown(in(name), owner, 0), 0);
}

static int make_dirs(void **state)
{
    (void)state;
    if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
        return -1;
    make_dir("images", 0, 0700);
    make_dir("roots", 0, 0755);
    make_dir("users", NOBODY, 0700);
    make_dir("users/sub", NOBODY, 0700);
    make_dir("users/roots", 0, 0755);
    make_dir("usersx", NOBODY, 0700);
    make_dir("shared", 0, 01777);
    make_dir("groups", 0, 0775);
    assert_int_equal(mknod(in("roots/file"), S_IFREG | 0644, 0), 0);
    return symlink("roots", in("link")) | symlink("../roots", in("users/link"));
}

static int remove_dirs(void **state)
{
    struct err e;
    (void)state;
    return fs_remove_tree(dir, &e);
}

int main(void)
{
    const struct CMUnitTest pure[] = {
        cmocka_unit_test(the_images_name_what_criu_creates),
        cmocka_unit_test(an_image_that_is_not_understood_is_refused),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_recreated_only_in_directories_of_root),
        cmocka_unit_test(a_directory_that_will_be_roots_counts_as_roots),
        cmocka_unit_test(a_socket_is_refused_like_a_file),
        cmocka_unit_test(images_of_an_old_criu_are_refused),
    };
    int rc = cmocka_run_group_tests(pure, NULL, NULL);
    return geteuid() == 0 ? rc | cmocka_run_group_tests(tests, make_dirs, remove_dirs) : rc;
}
