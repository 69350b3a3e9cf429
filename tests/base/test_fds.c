/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors over a socket: the peer gets the same files, and keeps no descriptor that it did not
 * ask for.
 */
#include "base/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct rig {
    int ends[2], files[3];
    int first_free; /* the lowest descriptor that is not open */
};

static int lowest_free(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static struct rig begin(int type)
{
    struct rig r;
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, r.ends), 0);
    for (int i = 0; i < 3; i++)
        assert_true(
            (r.files[i] = open(i == 1 ? "/dev/zero" : "/dev/null", O_RDWR | O_CLOEXEC)) >= 0);
    r.first_free = lowest_free();
    return r;
}

static void end(struct rig *r)
{
    assert_int_equal(lowest_free(), r->first_free); /* nothing stays open */
    for (int i = 0; i < 3; i++)
        close(r->files[i]);
    close(r->ends[0]);
    close(r->ends[1]);
}

static void assert_same_file(int a, int b)
{
    struct stat x, y;
    assert_int_equal(fstat(a, &x), 0);
    assert_int_equal(fstat(b, &y), 0);
    assert_true(a != b && x.st_rdev == y.st_rdev && x.st_ino == y.st_ino);
}

static void descriptors_arrive_with_their_message(void **state)
{
    struct rig r = begin(SOCK_SEQPACKET);
    char text[8] = "";
    int got[4];
    bool is_cut = true;
    (void)state;
    assert_int_equal(fds_send(r.ends[0], "three", 6, r.files, 3), 0);
    assert_int_equal(fds_receive(r.ends[1], text, sizeof(text), 0, got, 4, &is_cut), 6);
    assert_string_equal(text, "three");
    assert_false(is_cut);
    for (int i = 0; i < 3; i++) {
        assert_same_file(got[i], r.files[i]);
        assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
        close(got[i]);
    }
    assert_int_equal(got[3], -1);
    end(&r);
}

static void a_message_without_descriptors_has_none(void **state)
{
    struct rig r = begin(SOCK_STREAM);
    char text[8] = "";
    int got[2] = {0, 0};
    bool is_cut = true;
    (void)state;
    assert_int_equal(send(r.ends[0], "plain", 6, 0), 6);
    assert_int_equal(fds_receive(r.ends[1], text, sizeof(text), 0, got, 2, &is_cut), 6);
    assert_true(got[0] == -1 && got[1] == -1 && !is_cut);
    errno = 0;
    assert_int_equal(fds_receive(r.ends[1], text, 8, MSG_DONTWAIT, got, 2, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    assert_true(got[0] == -1 && got[1] == -1);
    end(&r);
}

/* There is space for two, because the kernel rounds the space for one up. */
static void descriptors_that_were_not_asked_for_are_closed(void **state)
{
    struct rig r = begin(SOCK_STREAM);
    char byte;
    int got;
    bool is_cut = false;
    (void)state;
    for (size_t n = 2; n <= 3; n++) {
        assert_int_equal(fds_send(r.ends[0], "x", 1, r.files, n), 0);
        assert_int_equal(fds_receive(r.ends[1], &byte, 1, 0, &got, 1, &is_cut), 1);
        assert_same_file(got, r.files[0]);
        assert_true(is_cut);
        close(got);
    }
    end(&r);
}

static void a_message_that_does_not_fit_is_cut(void **state)
{
    struct rig r = begin(SOCK_SEQPACKET);
    char text[3];
    int got[3];
    bool is_cut = false;
    (void)state;
    assert_int_equal(fds_send(r.ends[0], "long", 4, r.files, 1), 0);
    assert_int_equal(fds_receive(r.ends[1], text, sizeof(text), 0, got, 3, &is_cut), 3);
    assert_true(is_cut);
    close(got[0]);
    end(&r);
}

static void a_peer_that_has_gone_is_an_error(void **state)
{
    struct rig r = begin(SOCK_SEQPACKET);
    (void)state;
    close(r.ends[1]);
    assert_int_equal(fds_send(r.ends[0], "x", 1, r.files, 1), -EPIPE); /* and no SIGPIPE */
    r.ends[1] = dup(0);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_arrive_with_their_message),
        cmocka_unit_test(a_message_without_descriptors_has_none),
        cmocka_unit_test(descriptors_that_were_not_asked_for_are_closed),
        cmocka_unit_test(a_message_that_does_not_fit_is_cut),
        cmocka_unit_test(a_peer_that_has_gone_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
