/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct sink {
    char line[LOG_LINE_MAX];
    int n;
};

static void take(void *ctx, enum log_level level, const char *line)
{
    struct sink *s = ctx;
    (void)level;
    STR_COPY(s->line, line);
    s->n++;
}

static struct sink sink;

static int setup(void **state)
{
    (void)state;
    sink = (struct sink){0};
    log_init("tester", LOG_DEBUG);
    log_set_sink(take, &sink);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    return 0;
}

static void a_line_has_level_message_and_fields(void **state)
{
    (void)state;
    log_info("instance launched", log_s("instance", "i-0abc"), log_i("took_ms", -412));
    assert_string_equal(sink.line, "info: instance launched instance=i-0abc took_ms=-412");
    log_warn("bare");
    assert_string_equal(sink.line, "warn: bare");
    struct err e;
    err_set(&e, ERR_IO, "it broke");
    log_error("x", log_err(&e));
    assert_string_equal(sink.line, "error: x error=\"it broke\"");
}

static void lines_below_the_level_are_not_written(void **state)
{
    enum log_level level;
    (void)state;
    log_set_level(LOG_WARN);
    log_info("no");
    log_debug("no");
    assert_int_equal(sink.n, 0);
    log_warn("yes");
    assert_int_equal(sink.n, 1);
    assert_int_equal(log_level_from_name("debug", &level), 0);
    assert_int_equal(level, LOG_DEBUG);
    assert_int_equal(log_level_from_name("DEBUG", &level), ERR_INVALID);
}

static void values_cannot_forge_a_field_or_a_line(void **state)
{
    static const struct {
        const char *value, *shown;
    } cases[] = {{NULL, "-"}, {"", "\"\""}, {"a b", "\"a b\""}, {"a=b", "\"a=b\""},
        {"x\nerror: y", "\"x\\nerror: y\""}, {"\"\\", "\"\\\"\\\\\""}, {"\x1B[2J", "\"\\x1b[2J\""},
        {"\xC2\x85", "\"\\xc2\\x85\""}, {"\xFF", "\"\\xff\""}, {"\xC3\xA4", "\"\xC3\xA4\""},
        {"plain-1.2/x:y", "plain-1.2/x:y"}};
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        char expected[100];
        log_info("m", log_s("k", cases[i].value));
        snprintf(expected, sizeof(expected), "info: m k=%s", cases[i].shown);
        assert_string_equal(sink.line, expected);
    }
    log_info("two\nlines");
    assert_string_equal(sink.line, "info: two\\nlines");
}

static void long_values_and_lines_are_truncated(void **state)
{
    char wide[3 * LOG_VALUE_MAX + 1];
    (void)state;
    for (size_t i = 0; i + 3 < sizeof(wide); i += 3)
        memcpy(wide + i, "\xE2\x82\xAC", 4);
    log_info("m", log_s("k", wide));
    assert_in_range(strlen(sink.line), LOG_VALUE_MAX, LOG_VALUE_MAX + 16);
    assert_true(str_is_utf8(sink.line, strlen(sink.line)));
    char control[LOG_VALUE_MAX];
    memset(control, 1, sizeof(control) - 1);
    control[sizeof(control) - 1] = 0;
    /* 4 bytes each when escaped */
    log_info("m", log_s("a", control), log_s("b", control), log_s("c", control));
    assert_int_equal(strlen(sink.line), LOG_LINE_MAX - 1);
}

/* ---- stderr ---- */

struct captured {
    char text[200000];
    size_t n;
};

static void capture(struct captured *c, void (*fn)(void))
{
    FILE *file = tmpfile();
    int old = dup(STDERR_FILENO);
    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    log_set_sink(NULL, NULL);
    fn();
    dup2(old, STDERR_FILENO);
    close(old);
    rewind(file);
    c->n = fread(c->text, 1, sizeof(c->text) - 1, file);
    c->text[c->n] = 0;
    fclose(file);
}

static void say_hello(void)
{
    log_info("hello");
}

/* As under systemd: stderr is the stream that JOURNAL_STREAM names. */
static void say_hello_to_the_journal(void)
{
    char stream[64];
    struct stat st;
    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
        (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_init("tester", LOG_DEBUG);
    log_error("hello");
    unsetenv("JOURNAL_STREAM");
    log_init("tester", LOG_DEBUG);
}

static void lines_on_stderr_have_time_and_program(void **state)
{
    static struct captured c;
    struct wall w;
    struct err e;
    (void)state;
    capture(&c, say_hello);
    char *space = strchr(c.text, ' ');
    assert_string_equal(space, " tester info: hello\n");
    *space = 0;
    assert_int_equal(time_parse_iso(c.text, &w, &e), 0);
}

static void the_journal_gets_a_severity_instead(void **state)
{
    static struct captured c;
    (void)state;
    capture(&c, say_hello_to_the_journal);
    assert_string_equal(c.text, "<3>error: hello\n");
}

static void *say_much(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++)
        log_info("a line", log_s("value", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            log_s("end", "here"));
    return NULL;
}

static void four_threads(void)
{
    pthread_t threads[4];
    for (size_t i = 0; i < LEN(threads); i++)
        pthread_create(&threads[i], NULL, say_much, NULL);
    for (size_t i = 0; i < LEN(threads); i++)
        pthread_join(threads[i], NULL);
}

static void lines_of_threads_do_not_interleave(void **state)
{
    static struct captured c;
    int n = 0;
    (void)state;
    capture(&c, four_threads);
    for (char *line = c.text, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
        *end = 0;
        assert_true(str_ends(
            line, " tester info: a line value=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx end=here"));
        assert_true(strlen(line) < 110);
    }
    assert_int_equal(n, 800);
}

#define LOGGED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOGGED(a_line_has_level_message_and_fields),
        LOGGED(lines_below_the_level_are_not_written),
        LOGGED(values_cannot_forge_a_field_or_a_line),
        LOGGED(long_values_and_lines_are_truncated),
        LOGGED(lines_on_stderr_have_time_and_program),
        LOGGED(the_journal_gets_a_severity_instead),
        LOGGED(lines_of_threads_do_not_interleave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
