/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifications: users' addresses and URLs, contents, allowed destinations, storage.
 */
#include "scheduler/config/notify_guard.h"
#include "scheduler/notify/notify_seal.h"
#include "scheduler/notify/notify_chat.h"
#include "scheduler/notify/notify_text.h"
#include "job/notify_address.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void an_address_cannot_be_an_option_or_a_header(void **state)
{
    (void)state;
    static const char *const good[] = {
        "ann", "ann@example.com", "a.b+c_d=e~f-g@x-y.example", "root@localhost"};
    static const char *const bad[] = {"", "-t", "-oQ/tmp@x", "@example.com", "ann@", "ann@@x",
        "ann@x@y", "ann@-x", "ann@.x", "a b", "ann@example.com\nBcc: all@example.com",
        "ann@example.com\r\nBcc: x", "a,b@x", "<ann@x>", "ann@x;reboot", "$(reboot)", "`id`@x",
        "ann@x|y", "\"a b\"@x", "ann@exam_ple", "\xc3\xa4@x", "ann@\xc3\xa4", "a\x7f@x", "ann/x@y"};
    struct err e;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (notify_check_address(good[i], &e) != 0)
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (notify_check_address(bad[i], &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    char longest[NOTIFY_ADDRESS_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[NOTIFY_ADDRESS_MAX + 1] = '\0';
    assert_int_equal(notify_check_address(longest, &e), ERR_INVALID);
}

static void a_url_is_http_with_a_host_and_is_not_shown(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host;
    } good[] = {{"https://hooks.example.com/T0/B0/token?x=1#y", "hooks.example.com"},
        {"http://a", "a"}, {"http://10.0.0.1:8080", "10.0.0.1"},
        {"https://[fd00::1]:443/x", "fd00::1"}, {"https://a?x", "a"}};
    static const char *const bad[] = {"", "hooks.example.com", "ftp://a", "file:///etc/passwd",
        "https://", "https:///x", "https://u:p@a/", "https://a@b/", "https://a:0/",
        "https://a:65536/", "https://a:/", "https://a:1x/", "https://a b/", "https://a/\n",
        "https://a/\"", "https://a\\b", "https://[::1/", "https://[]/", "HTTPS://a",
        "https://a/\x7f", "https://\xc3\xa4/", "gopher://a", "https://a/<b>"};
    char host[NOTIFY_HOST_MAX];
    struct err e;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (notify_check_url(good[i].url, host, &e) != 0)
            fail_msg("refused: %s", good[i].url);
        assert_string_equal(host, good[i].host);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (notify_check_url(bad[i], host, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    notify_check_url("https://u:secret@a/", NULL, &e);
    assert_null(strstr(e.text, "secret"));
}

/* 198.51.100.7, 10.9.9.9, 127.0.0.1, ::1 and 2001:db8::7 */
static const struct notify_own own = {.n = 5,
    .addresses = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 7},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 9, 9},
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, {[15] = 1},
        {0x20, 0x01, 0x0d, 0xb8, [15] = 7}}};

static bool allows(const struct notify_guard *g, const char *host, const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return notify_guard_allows(g, host, (struct sockaddr *)&v4, &own);
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    return notify_guard_allows(g, host, (struct sockaddr *)&v6, &own);
}

static void what_is_not_for_users_is_not_connected_to(void **state)
{
    (void)state;
    static const char *const never[] = {"127.0.0.1", "127.8.8.8", "0.0.0.0", "169.254.169.254",
        "168.63.129.16", "100.100.100.200", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1",
        "ff02::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::1", "10.1.2.3", "172.16.0.1",
        "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "fd12::1", "fec0::1",
        "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2001:0:1::1", "::7f00:1",
        "::10.0.0.1", "198.18.0.1", "192.0.0.192", "240.0.0.1", "198.51.100.7",
        "::ffff:198.51.100.7", "64:ff9b::c633:6407", "2001:db8::7"};
    static const char *const usual[] = {"8.8.8.8", "2001:db8::1", "::ffff:8.8.8.8",
        "64:ff9b::808:808", "172.32.0.1", "100.128.0.1", "198.51.100.8"};
    static const char *const none[] = {"0.0.0.0", "169.254.169.254", "168.63.129.16",
        "100.100.100.200", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::", "fe80::1", "ff02::1",
        "fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1", "192.0.0.192", "::7f00:1", "64:ff9b:1::7f00:1"};
    struct notify_guard all = {0}, g = {0};
    struct err e;
    assert_int_equal(notify_guard_add(&all, "0.0.0.0/0", &e), 0);
    assert_int_equal(notify_guard_add(&all, "::/0", &e), 0);
    assert_int_equal(notify_guard_add(&all, "169.254.169.254", &e), 0);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (allows(&all, "a", none[i]))
            fail_msg("allowed by a range: %s", none[i]);
    assert_true(allows(&all, "a", "127.0.0.1") && allows(&all, "a", "10.1.2.3") &&
                allows(&all, "a", "::1"));
    /* its own addresses */
    assert_false(allows(&all, "a", "10.9.9.9") || allows(&all, "a", "198.51.100.7") ||
                 allows(&all, "a", "2001:db8::7"));
    assert_int_equal(notify_guard_add(&all, "10.9.9.9", &e), 0);
    assert_true(allows(&all, "a", "10.9.9.9"));
    const struct sockaddr_in public = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x08080808)};
    assert_false(notify_guard_allows(
        &g, "a", (const struct sockaddr *)&public, &(struct notify_own){.is_incomplete = true}));
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        if (allows(&g, "a", never[i]))
            fail_msg("allowed: %s", never[i]);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (!allows(&g, "a", usual[i]))
            fail_msg("refused: %s", usual[i]);
    assert_false(notify_guard_allows(&g, "a", &(struct sockaddr){.sa_family = AF_UNIX}, &own));
}

static void what_the_configuration_lists_is_all_there_is(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a b", "10.0.0.0/33", "10.0.0.0/-1", "fd00::/129",
        "https://a", "*", "*.", "-a", "10.0.0.0/x"};
    struct notify_guard g = {0};
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (notify_guard_add(&g, bad[i], &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(notify_guard_add(&g, "Hooks.example.com", &e), 0);
    assert_int_equal(notify_guard_add(&g, "*.example.org", &e), 0);
    assert_int_equal(notify_guard_add(&g, "127.0.0.0/30", &e), 0);
    assert_int_equal(notify_guard_add(&g, "fd00::/8", &e), 0);
    assert_true(allows(&g, "hooks.example.com", "8.8.8.8"));
    assert_true(allows(&g, "a.example.org", "8.8.8.8"));
    assert_false(allows(&g, "example.org", "8.8.8.8"));
    assert_false(allows(&g, "badexample.org", "8.8.8.8"));
    assert_false(allows(&g, "hooks.example.com.evil", "8.8.8.8"));
    assert_true(allows(&g, "x", "127.0.0.3"));
    assert_false(allows(&g, "x", "127.0.0.4"));
    assert_false(allows(&g, "hooks.example.com", "169.254.169.254"));
    assert_true(allows(&g, "x", "fd12::1"));
    while (g.n < NOTIFY_ALLOW_MAX)
        assert_int_equal(notify_guard_add(&g, "a", &e), 0);
    assert_int_equal(notify_guard_add(&g, "a", &e), ERR_INVALID);
}

static void a_sealed_url_opens_for_its_user_only(void **state)
{
    (void)state;
    struct master m = {.cluster_uid = "0123456789abcdef", .n = 1};
    struct sealer *s = sealer_create(&m);
    m.keys[0][0]++;
    struct sealer *other = sealer_create(&m);
    struct err e;
    char host[NOTIFY_HOST_MAX], *url = NULL;
    json_t *spec = json_pack("{s:{s:[s,s]}}", "notify", "urls", "https://hooks.example.com/token",
        "https://[fd00::1]/x");
    assert_int_equal(notify_seal_spec(s, "ann", spec, &e), 0);
    json_t *urls = json_object_get(json_object_get(spec, "notify"), "urls");
    const char *sealed = json_string_value(json_array_get(urls, 0));
    assert_null(strstr(sealed, "token"));
    assert_true(notify_sealed_host(sealed, host));
    assert_string_equal(host, "hooks.example.com");
    assert_true(notify_sealed_host(json_string_value(json_array_get(urls, 1)), host));
    assert_string_equal(host, "fd00::1");
    assert_int_equal(notify_unseal(s, "ann", sealed, &url, &e), 0);
    assert_string_equal(url, "https://hooks.example.com/token");
    free(url);
    assert_int_equal(notify_unseal(s, "bob", sealed, &url, &e), ERR_INVALID);
    assert_int_equal(notify_unseal(other, "ann", sealed, &url, &e), ERR_INVALID);
    assert_int_equal(notify_seal_spec(s, "ann", spec, &e), 0); /* her own, a second time */
    assert_int_equal(notify_seal_spec(s, "bob", spec, &e), ERR_INVALID);
    json_decref(spec);
    static const char *const bad[] = {
        "sealed:", "sealed:a:", "sealed:a:00", "sealed::00", "sealed:a:zz", "https://a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(notify_sealed_host(bad[i], host));
        assert_int_equal(notify_unseal(s, "ann", bad[i], &url, &e), ERR_INVALID);
    }
    sealer_destroy(s);
    sealer_destroy(other);
}

static struct outbox_row row = {.event = 77,
    .target = "mail",
    .job = 42,
    .attempt = 2,
    .kind = NOTIFY_FAIL,
    .end = END_FAILED,
    .exit_code = 3,
    .at = {1790000000000}};

static void a_mail_has_no_headers_but_ours(void **state)
{
    (void)state;
    struct job_row job = {.id = 42,
        .spec.name = "a\nBcc: all@example.com\r\n\r\nbody",
        .user = "ann",
        .cron_at = WALL_NONE};
    const struct notify_facts f = {"0123", "lab", &row, &job};
    struct buf out = {0};
    notify_mail(&f, "belay@lab.example", "ann@example.com", "\r\n", &out);
    const char *text = buf_str(&out), *end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    assert_null(strstr(text, "\nBcc:"));
    assert_true(str_starts(text,
        "From: belay@lab.example\r\nTo: ann@example.com\r\nSubject: [belay lab] job 42 "
        "\"a?Bcc: all@example.com????body\" of ann failed (failed), exit code 3\r\nDate: "));
    assert_non_null(strstr(text, "\r\nMessage-ID: <0123-77@belay.invalid>\r\n"));
    assert_non_null(strstr(text, "Mon, 21 Sep 2026 14:13:20 +0000"));
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        assert_int_equal(p[-1], '\r');
    buf_deinit(&out);
}

static void a_subject_that_is_not_ascii_is_encoded(void **state)
{
    (void)state;
    struct job_row job = {.id = 42,
        .spec.name = "\xc3\xa4\xc3\xb6\xc3\xbc-training-of-the-very-long-name-\xe2\x82\xac",
        .user = "ann"};
    const struct notify_facts f = {"0123", "lab", &row, &job};
    struct buf out = {0};
    notify_mail(&f, "belay", "ann", "\n", &out);
    const char *subject = strstr(buf_str(&out), "Subject: [belay lab] =?utf-8?B?");
    assert_non_null(subject);
    const char *date = strstr(subject, "\nDate: ");
    for (const char *p = subject; p < date; p++)
        assert_true((unsigned char)*p < 0x80);
    assert_non_null(strstr(subject, "?=\n =?utf-8?B?"));
    buf_deinit(&out);
}

static void a_body_is_json(void **state)
{
    (void)state;
    struct job_row job = {.id = 42,
        .spec.name = "tr\"ain",
        .user = "ann",
        .submitted_at = {1},
        .started_at = WALL_NONE};
    const struct notify_facts f = {"0123", "lab", &row, &job};
    struct buf out = {0};
    json_t *v;
    struct err e;
    notify_body(&f, &out);
    assert_int_equal(json_parse(buf_str(&out), out.len, 65536, &v, &e), 0);
    assert_string_equal(json_string_value(json_object_get(v, "id")), "0123-77");
    assert_string_equal(json_string_value(json_object_get(v, "event")), "fail");
    assert_string_equal(json_string_value(json_object_get(v, "name")), "tr\"ain");
    assert_int_equal(json_integer_value(json_object_get(v, "exit_code")), 3);
    assert_true(json_is_null(json_object_get(v, "started_at")));
    json_decref(v);
    buf_deinit(&out);
}

static void idle_gpus_are_notified_with_what_to_do(void **state)
{
    (void)state;
    struct job_row job = {
        .id = 42, .spec.name = "train", .user = "ann", .cron_at = WALL_NONE, .array = CORE_ID_NONE};
    struct outbox_row of = {.event = 80,
        .kind = NOTIFY_IDLE_GPUS,
        .job = 42,
        .pct = 5,
        .spent_uusd = 12340000,
        .at = {1790000000000},
        .idle_since = {1789998200000},
        .parks_at = {1790000900000}};
    const struct notify_facts f = {"0123", "lab", &of, &job};
    struct buf out = {0};
    json_t *v;
    struct err e;
    notify_body(&f, &out);
    assert_int_equal(json_parse(buf_str(&out), out.len, 65536, &v, &e), 0);
    assert_string_equal(json_string_value(json_object_get(v, "event")), "idle-gpus");
    assert_true(
        str_starts(json_string_value(json_object_get(v, "idle_since")), "2026-09-21T13:43:20"));
    assert_true(
        str_starts(json_string_value(json_object_get(v, "parks_at")), "2026-09-21T14:28:20"));
    assert_int_equal(json_integer_value(json_object_get(v, "uusd_per_hour")), 12340000);
    json_decref(v);
    buf_deinit(&out);
    notify_mail(&f, "belay", "ann", "\n", &out);
    assert_non_null(strstr(
        buf_str(&out), "Subject: [belay lab] job 42 \"train\" of ann does not use its GPUs\n"));
    assert_non_null(strstr(buf_str(&out), "less than 5 % busy in every minute"));
    assert_non_null(strstr(buf_str(&out), "$12.34 an hour"));
    assert_non_null(strstr(buf_str(&out), "belay update 42 idle-gpus=keep\n"));
    assert_non_null(strstr(buf_str(&out), "belay release 42\n"));
    buf_deinit(&out);
    of.parks_at = WALL_NONE;
    notify_mail(&f, "belay", "ann", "\n", &out);
    assert_non_null(strstr(buf_str(&out), "belay cancel 42\n"));
    assert_null(strstr(buf_str(&out), "saved and held"));
    buf_deinit(&out);
}

static void a_budget_is_notified_without_a_job(void **state)
{
    (void)state;
    const struct outbox_row of = {.event = 78,
        .kind = NOTIFY_BUDGET,
        .budget = "nlp",
        .pct = 80,
        .spent_uusd = 16000123456,
        .cap_uusd = 20000000000,
        .at = {1000}};
    const struct notify_facts f = {"0123", "lab", &of, NULL};
    struct buf out = {0};
    json_t *v;
    struct err e;
    notify_body(&f, &out);
    assert_int_equal(json_parse(buf_str(&out), out.len, 65536, &v, &e), 0);
    assert_string_equal(json_string_value(json_object_get(v, "id")), "0123-78");
    assert_string_equal(json_string_value(json_object_get(v, "event")), "budget");
    assert_string_equal(json_string_value(json_object_get(v, "budget")), "nlp");
    assert_int_equal(json_integer_value(json_object_get(v, "percent")), 80);
    assert_int_equal(json_integer_value(json_object_get(v, "spent_uusd")), 16000123456);
    json_decref(v);
    buf_deinit(&out);
    notify_mail(&f, "belay", "ann", "\n", &out);
    assert_non_null(
        strstr(buf_str(&out), "Subject: [belay lab] budget nlp: 80 % of $20000.00 are spent\n"));
    assert_non_null(strstr(buf_str(&out), ": $16000.12.\n\nbelay budget show nlp has more.\n"));
    buf_deinit(&out);
}

static void a_pool_that_does_not_boot_is_notified_without_a_job(void **state)
{
    (void)state;
    const struct outbox_row of = {
        .event = 79, .kind = NOTIFY_BOOTS, .pool = "burst", .pct = 3, .at = {1000}};
    const struct notify_facts f = {"0123", "lab", &of, NULL};
    struct buf out = {0};
    json_t *v;
    struct err e;
    notify_body(&f, &out);
    assert_int_equal(json_parse(buf_str(&out), out.len, 65536, &v, &e), 0);
    assert_string_equal(json_string_value(json_object_get(v, "id")), "0123-79");
    assert_string_equal(json_string_value(json_object_get(v, "event")), "boots-fail");
    assert_string_equal(json_string_value(json_object_get(v, "pool")), "burst");
    assert_int_equal(json_integer_value(json_object_get(v, "failed_boots")), 3);
    json_decref(v);
    buf_deinit(&out);
}

static void a_drained_node_is_notified_with_what_undoes_it(void **state)
{
    (void)state;
    struct outbox_row of = {.event = 81,
        .kind = NOTIFY_NODE_DRAINED,
        .pool = "base",
        .node = "gpu7",
        .text = "2 jobs of 2 users failed there at once: jobs 3, 15_2",
        .jobs = "3,15_2",
        .at = {1000}};
    const struct notify_facts f = {"0123", "lab", &of, NULL};
    struct buf out = {0};
    json_t *v;
    struct err e;
    notify_body(&f, &out);
    assert_int_equal(json_parse(buf_str(&out), out.len, 65536, &v, &e), 0);
    assert_string_equal(json_string_value(json_object_get(v, "event")), "node-drained");
    assert_string_equal(json_string_value(json_object_get(v, "node")), "gpu7");
    assert_string_equal(json_string_value(json_object_get(v, "pool")), "base");
    assert_string_equal(json_string_value(json_object_get(v, "reason")), of.text);
    assert_string_equal(json_string_value(json_object_get(v, "undo")), "belay nodes undrain gpu7");
    assert_int_equal(json_array_size(json_object_get(v, "jobs")), 2);
    assert_string_equal(json_string_value(json_array_get(json_object_get(v, "jobs"), 1)), "15_2");
    assert_true(json_is_false(json_object_get(v, "ends")));
    json_decref(v);
    buf_deinit(&out);
    notify_mail(&f, "belay", "ops", "\n", &out);
    assert_non_null(strstr(buf_str(&out),
        "Subject: [belay lab] belay drained node gpu7 of pool base: 2 jobs of 2 users failed there "
        "at once: jobs 3, 15_2\n"));
    assert_non_null(strstr(buf_str(&out), "Jobs: 3,15_2. Its jobs are saved and run elsewhere"));
    assert_non_null(strstr(buf_str(&out), "After a repair: belay nodes undrain gpu7\n"));
    buf_deinit(&out);
    of.pct = 1; /* its machine is ended */
    of.jobs[0] = '\0';
    notify_more(&f, &out);
    assert_string_equal(buf_str(&out),
        "Its jobs are saved and run elsewhere; then its machine is ended, and another one is "
        "launched when jobs need it. To keep the machine: belay nodes undrain gpu7");
    buf_deinit(&out);
}

static void a_pool_that_does_not_boot_is_mailed(void **state)
{
    (void)state;
    const struct outbox_row of = {.kind = NOTIFY_BOOTS, .pool = "burst", .pct = 3, .at = {1000}};
    const struct notify_facts f = {"0123", "lab", &of, NULL};
    struct buf out = {0};
    notify_mail(&f, "belay", "ops", "\n", &out);
    assert_non_null(strstr(buf_str(&out), "belay pools show burst has more.\n"));
    assert_null(strstr(buf_str(&out), "budget"));
    buf_deinit(&out);
}

static void a_late_cron_entry_is_notified_with_the_reason(void **state)
{
    (void)state;
    const struct outbox_row of = {.event = 80,
        .kind = NOTIFY_LATE,
        .cron = 7,
        .cron_at = {1700015400000},
        .done_by = {1700031600000},
        .text = "job 42 waits: all nodes are busy",
        .at = {1700031600000}};
    const struct cron_row cron = {.name = "nightly", .user = "ann", .done_by = 1 + 7 * 60};
    const struct notify_facts f = {"0123", "lab", &of, NULL, &cron};
    struct buf out = {0};
    json_t *v;
    struct err e;
    notify_body(&f, &out);
    assert_int_equal(json_parse(buf_str(&out), out.len, 65536, &v, &e), 0);
    assert_string_equal(json_string_value(json_object_get(v, "event")), "late");
    assert_int_equal(json_integer_value(json_object_get(v, "cron")), 7);
    assert_string_equal(json_string_value(json_object_get(v, "name")), "nightly");
    assert_string_equal(
        json_string_value(json_object_get(v, "scheduled_at")), "2023-11-15T02:30:00Z");
    assert_string_equal(json_string_value(json_object_get(v, "done_by")), "2023-11-15T07:00:00Z");
    json_decref(v);
    buf_deinit(&out);
    notify_mail(&f, "belay", "ann", "\n", &out);
    assert_non_null(strstr(buf_str(&out),
        "Subject: [belay lab] cron entry \"nightly\" of ann is not done by 07:00\n"));
    assert_non_null(
        strstr(buf_str(&out), "is not done by 07:00: job 42 waits: all nodes are busy.\n"));
    assert_non_null(strstr(buf_str(&out), "belay cron history 7 has more.\n"));
    buf_deinit(&out);
}

static json_t *chat_body(const struct notify_facts *f, enum notify_format format)
{
    struct buf out = {0};
    struct err e;
    json_t *v;
    if (!notify_chat_body(f, format, "0123456789abcdef0123456789abcdef", &out))
        return NULL;
    assert_int_equal(json_parse(buf_str(&out), out.len, 28 * 1024, &v, &e), 0);
    buf_deinit(&out);
    return v;
}

static const char *at(const json_t *v, const char *a, const char *b)
{
    const json_t *o = b ? json_object_get(v, a) : v;
    return json_string_value(json_object_get(o, b ? b : a));
}

static void pagerduty_is_told_what_is_wrong_and_what_ends_it(void **state)
{
    (void)state;
    struct outbox_row of = {.event = 1, .job = 42, .kind = NOTIFY_FAIL, .end = END_FAILED};
    struct job_row job = {.id = 42, .spec.name = "a", .user = "ann", .cron = 7};
    struct notify_facts f = {"0123", "lab", &of, &job};
    json_t *v = chat_body(&f, NOTIFY_PAGERDUTY);
    assert_string_equal(at(v, "event_action", NULL), "trigger");
    assert_string_equal(at(v, "dedup_key", NULL), "belay-0123-cron-7");
    assert_string_equal(at(v, "payload", "severity"), "error");
    json_decref(v);
    of.kind = NOTIFY_END;
    of.end = END_SUCCEEDED;
    job.id = of.job = 43; /* the next night */
    v = chat_body(&f, NOTIFY_PAGERDUTY);
    assert_string_equal(at(v, "event_action", NULL), "resolve");
    assert_string_equal(at(v, "dedup_key", NULL), "belay-0123-cron-7");
    assert_null(json_object_get(v, "payload"));
    json_decref(v);
    job.cron = CORE_ID_NONE;
    v = chat_body(&f, NOTIFY_PAGERDUTY);
    assert_string_equal(at(v, "dedup_key", NULL), "belay-0123-job-43");
    json_decref(v);
    of.end = END_CANCELLED; /* its user knows */
    assert_null(chat_body(&f, NOTIFY_PAGERDUTY));
    of.kind = NOTIFY_BEGIN;
    assert_null(chat_body(&f, NOTIFY_PAGERDUTY));
    of = (struct outbox_row){.kind = NOTIFY_BUDGET, .budget = "nlp", .pct = 80};
    f.job = NULL;
    v = chat_body(&f, NOTIFY_PAGERDUTY);
    assert_string_equal(at(v, "dedup_key", NULL), "belay-0123-budget-nlp");
    assert_string_equal(at(v, "payload", "severity"), "warning");
    json_decref(v);
    of.pct = 100;
    v = chat_body(&f, NOTIFY_PAGERDUTY);
    assert_string_equal(at(v, "payload", "severity"), "error");
    json_decref(v);
}

/* Number of characters of a text in UTF-8. */
static size_t characters(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void texts_for_chats_are_cut_at_a_character(void **state)
{
    (void)state;
    struct outbox_row of = {.kind = NOTIFY_LATE, .cron = 1};
    struct cron_row cron = {.user = "ann", .done_by = 1};
    const struct notify_facts f = {"0123", "lab", &of, NULL, &cron};
    for (size_t shift = 0; shift < 4; shift++) {
        size_t n = shift;
        memset(cron.name, 'x', shift);
        for (; n + 4 < sizeof(cron.name); n += 4)
            memcpy(cron.name + n, "\xf0\x9f\x98\x80", 4);
        cron.name[n] = '\0';
        memset(of.text, '<', sizeof(of.text) - 1);
        json_t *v = chat_body(&f, NOTIFY_SLACK); /* parsed: it is UTF-8 */
        const json_t *blocks = json_object_get(v, "blocks");
        for (size_t k = 0; k < json_array_size(blocks); k++)
            assert_in_range(
                characters(at(json_object_get(json_array_get(blocks, k), "text"), "text", NULL)), 1,
                k ? 3000 : 150);
        assert_null(strchr(at(v, "text", NULL), '<'));
        json_decref(v);
        v = chat_body(&f, NOTIFY_TEAMS);
        assert_string_equal(at(v, "type", NULL), "message");
        json_decref(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_cannot_be_an_option_or_a_header),
        cmocka_unit_test(a_url_is_http_with_a_host_and_is_not_shown),
        cmocka_unit_test(what_is_not_for_users_is_not_connected_to),
        cmocka_unit_test(what_the_configuration_lists_is_all_there_is),
        cmocka_unit_test(a_pool_that_does_not_boot_is_notified_without_a_job),
        cmocka_unit_test(a_sealed_url_opens_for_its_user_only),
        cmocka_unit_test(a_mail_has_no_headers_but_ours),
        cmocka_unit_test(a_subject_that_is_not_ascii_is_encoded),
        cmocka_unit_test(a_body_is_json),
        cmocka_unit_test(idle_gpus_are_notified_with_what_to_do),
        cmocka_unit_test(a_budget_is_notified_without_a_job),
        cmocka_unit_test(a_drained_node_is_notified_with_what_undoes_it),
        cmocka_unit_test(a_pool_that_does_not_boot_is_mailed),
        cmocka_unit_test(a_late_cron_entry_is_notified_with_the_reason),
        cmocka_unit_test(pagerduty_is_told_what_is_wrong_and_what_ends_it),
        cmocka_unit_test(texts_for_chats_are_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
