/* SPDX-License-Identifier: Apache-2.0
 *
 * The lambda driver on recorded bytes: one token makes one instance as far as the API allows, the
 * key goes nowhere else, the meaning of each refusal, and every malformed reply.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/lambda/api.h"
#include "fake_http.h"
#include "outcome.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOON_MS 1787400000000
#define KEY "secret_lab_0123456789abcdef"
#define EMPTY "{\"data\": []}"
#define FIRST "0920582c7ff041399e34823a0be62549"
#define NEW "5e20582c7ff041399e34823a0be62554"

struct rig {
    struct vtimers vt;
    struct fake_http http;
    struct lambda_options options;
    struct cloud_driver *driver;
    struct outcome got;
};

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    setenv("LAMBDA_API_KEY", KEY, 1);
    g->options = (struct lambda_options){
        .machine = {.ssh_key = "ops"}, .http = &g->http.client, .timers = &g->vt.timers};
    *state = g;
    return 0;
}

static void create(struct rig *g)
{
    struct err e;
    if (lambda_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

static int teardown(void **state)
{
    struct rig *g = *state;
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void start_launch(struct rig *g, const char *token)
{
    struct cloud_launch l = {
        .token = token,
        .region = "us-west-2",
        .zone = "us-west-2",
        .type = "gpu_1x_a10",
        .market = CLOUD_ON_DEMAND,
        .user_data = "#!/bin/sh\necho \"hello\"\n",
        .cluster = "lab",
    };
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
}

static void finish(struct rig *g, int expected)
{
    outcome_finish(&g->got, &g->vt, expected);
}

static void launch(struct rig *g, const char *token, int expected)
{
    start_launch(g, token);
    assert_int_equal(g->got.completions, 0);
    finish(g, expected);
}

static void launch_new(struct rig *g, const char *token)
{
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add_file(&g->http, 200, "lambda_types.json");
    fake_http_add_file(&g->http, 200, "lambda_launch.json");
    launch(g, token, 0);
}

/* ---- launching ---- */

static void a_launch_looks_first_and_carries_its_token(void **state)
{
    struct rig *g = *state;
    create(g);
    launch_new(g, "belay-lab-21");
    assert_string_equal(g->got.instance.id, NEW);
    assert_string_equal(g->got.instance.token, "belay-lab-21");
    assert_string_equal(g->got.instance.cluster, "lab");
    assert_string_equal(g->got.instance.zone, "us-west-2");
    assert_int_equal(g->got.instance.state, CLOUD_PENDING);
    assert_int_equal(g->http.n_requests, 3);
    assert_string_equal(g->http.requests[0].url, "https://cloud.lambda.ai/api/v1/instances");
    assert_string_equal(g->http.requests[1].url, "https://cloud.lambda.ai/api/v1/instance-types");
    assert_string_equal(g->http.requests[2].method, "POST");
    assert_string_equal(
        g->http.requests[2].url, "https://cloud.lambda.ai/api/v1/instance-operations/launch");
    assert_string_equal(buf_str(&g->http.requests[2].body),
        "{\"region_name\":\"us-west-2\",\"instance_type_name\":\"gpu_1x_a10\",\"ssh_key_names\":["
        "\"ops\"],"
        "\"name\":\"belay-lab-21\",\"tags\":[{\"key\":\"belay:cluster\",\"value\":\"lab\"},"
        "{\"key\":\"belay:instance\",\"value\":\"belay-lab-21\"}],"
        "\"user_data\":\"#!/bin/sh\\necho \\\"hello\\\"\\n\"}");
    for (size_t i = 0; i < 3; i++)
        assert_true(fake_http_sent(&g->http, i, "Authorization: Bearer " KEY));
}

static void image_and_file_system_go_along(void **state)
{
    struct rig *g = *state;
    g->options.machine.image_family = "lambda-stack-22-04";
    g->options.machine.file_system = "data";
    create(g);
    launch_new(g, "belay-lab-21");
    const char *body = buf_str(&g->http.requests[2].body);
    assert_non_null(strstr(body, "\"image\":{\"family\":\"lambda-stack-22-04\"}"));
    assert_non_null(strstr(body, "\"file_system_names\":[\"data\"]"));
}

static void what_carries_the_token_is_the_answer(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "lambda_instances.json");
    launch(g, "belay-lab-17", 0);
    assert_string_equal(g->got.instance.id, FIRST);
    assert_int_equal(g->http.n_requests, 1);
}

static void of_two_under_one_token_the_living_one_is_taken(void **state)
{
    struct rig *g = *state;
    static const char two[] =
        "{\"data\":[{\"id\":\"a\",\"status\":\"terminated\",\"region\":{\"name\":\"us-west-2\"},"
        "\"instance_type\":{\"name\":\"t\"},\"tags\":[{\"key\":\"belay:cluster\",\"value\":\"lab\"}"
        ",{\"key\":\"belay:instance\",\"value\":\"x\"}]},"
        "{\"id\":\"b\",\"status\":\"active\",\"region\":{\"name\":\"us-west-2\"},"
        "\"instance_type\":{\"name\":\"t\"},\"tags\":[{\"key\":\"belay:cluster\",\"value\":\"lab\"}"
        ",{\"key\":\"belay:instance\",\"value\":\"x\"}]}]}";
    create(g);
    fake_http_add(&g->http, 200, two);
    launch(g, "x", 0);
    assert_string_equal(g->got.instance.id, "b");
}

static void a_launch_without_an_answer_is_not_repeated_before_it_would_show(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add_file(&g->http, 200, "lambda_types.json");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch(g, "belay-lab-17", ERR_TIMEOUT);
    fake_http_add(&g->http, 200, EMPTY); /* the listing lags */
    launch(g, "belay-lab-17", ERR_UNAVAILABLE);
    assert_int_equal(fake_http_count(&g->http, "POST", "/launch"), 1);
    fake_http_add_file(&g->http, 200, "lambda_instances.json");
    launch(g, "belay-lab-17", 0); /* and now it is listed */
    assert_string_equal(g->got.instance.id, FIRST);
    assert_int_equal(fake_http_count(&g->http, "POST", "/launch"), 1);
}

static void a_launch_that_never_shows_is_made_again(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add_file(&g->http, 200, "lambda_types.json");
    fake_http_add(&g->http, 502, "<html>bad gateway</html>");
    launch(g, "belay-lab-17", ERR_UNAVAILABLE);
    vtimers_advance(&g->vt, SECONDS_MS(30));
    launch_new(g, "belay-lab-17");
    assert_string_equal(g->got.instance.id, NEW);
}

static void two_calls_under_one_token_make_one_launch(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_route(&g->http, "GET", "/instances", 200, EMPTY);
    char *types = fake_read_file("lambda_types.json");
    fake_http_route(&g->http, "GET", "/instance-types", 200, types);
    free(types);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    start_launch(g, "belay-lab-17");
    start_launch(g, "belay-lab-17");
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(fake_http_count(&g->http, "POST", "/launch"), 1);
}

static void what_is_not_there_is_not_asked_for(void **state)
{
    struct rig *g = *state;
    static const char none[] =
        "{\"data\":{\"gpu_1x_a10\":{\"instance_type\":{\"price_cents_per_hour\":129},"
        "\"regions_with_capacity_available\":[{\"name\":\"us-east-1\"}]}}}";
    create(g);
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add(&g->http, 200, none);
    launch(g, "belay-lab-21", ERR_NO_CAPACITY);
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add(&g->http, 200, "{\"data\":{}}");
    launch(g, "belay-lab-21", ERR_CONFIG);
    assert_int_equal(fake_http_count(&g->http, "POST", "/launch"), 0);
}

static void launches_are_spaced_and_a_queue_is_refused(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_route(&g->http, "GET", "/instances", 200, EMPTY);
    char *types = fake_read_file("lambda_types.json"),
         *reply = fake_read_file("lambda_launch.json");
    fake_http_route(&g->http, "GET", "/instance-types", 200, types);
    fake_http_route(&g->http, "POST", "/launch", 200, reply);
    free(types);
    free(reply);
    struct mono from = clock_mono(g->vt.timers.clock);
    start_launch(g, "a");
    start_launch(g, "b");
    start_launch(g, "c");
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 3);
    assert_int_equal(fake_http_count(&g->http, "POST", "/launch"), 3);
    assert_true(clock_mono(g->vt.timers.clock).ms - from.ms >= SECONDS_MS(24));
    g->got.completions = 0;
    static const char *const more[] = {"d", "e", "f", "g", "h", "i"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        start_launch(g, more[i]);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 6);
    /* the others have to retry */
    assert_true(fake_http_count(&g->http, "POST", "/launch") < 9);
}

static void refusals_are_reported_by_kind(void **state)
{
    static const struct {
        int status;
        const char *body;
        int kind;
    } cases[] = {
        {400, "{\"error\":{\"code\":\"global/quota-exceeded\",\"message\":\"Quota exceeded.\"}}",
            ERR_QUOTA},
        {401, "{\"error\":{\"code\":\"global/invalid-api-key\",\"message\":\"no\"}}", ERR_DENIED},
        {403, "{\"error\":{\"code\":\"global/account-inactive\",\"message\":\"no\"}}", ERR_DENIED},
        {400, "{\"error\":{\"code\":\"global/invalid-parameters\",\"message\":\"no\"}}",
            ERR_CONFIG},
        {404, "{\"error\":{\"code\":\"global/object-does-not-exist\",\"message\":\"no key\"}}",
            ERR_CONFIG},
        {400, "{\"error\":{\"code\":\"instance-operations/launch/file-system-in-wrong-region\"}}",
            ERR_CONFIG},
        {400, "{\"error\":{\"code\":\"global/never-heard-of\",\"message\":\"?\"}}", ERR_CONFIG},
        {400, "{\"error\":{\"code\":\"provider/quota\",\"message\":\"?\"}}", ERR_NO_CAPACITY},
        {503, "{\"error\":{\"code\":\"provider/internal-unavailable\",\"message\":\"?\"}}",
            ERR_UNAVAILABLE},
        {429, "error code: 1015", ERR_THROTTLED},
        {429, "{\"error\":{\"code\":\"global/too-many\",\"message\":\"slow\"}}", ERR_THROTTLED},
        {500, "{\"error\":{\"code\":\"global/unknown\",\"message\":\"oops\"}}", ERR_UNAVAILABLE},
        {301, "<html>moved</html>", ERR_CONFIG},
        {503, "", ERR_UNAVAILABLE},
        {200, "{\"data\":{\"instance_ids\":[]}}", ERR_INVALID},
    };
    struct rig *g = *state;
    char token[] = "t-a";
    create(g);
    char *full = fake_read_file("lambda_no_capacity.json");
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add_file(&g->http, 200, "lambda_types.json");
    fake_http_add(&g->http, 400, full);
    launch(g, "t", ERR_NO_CAPACITY);
    free(full);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        token[2] = (char)('a' + i);
        fake_http_add(&g->http, 200, EMPTY);
        fake_http_add_file(&g->http, 200, "lambda_types.json");
        fake_http_add(&g->http, cases[i].status, cases[i].body);
        launch(g, token, cases[i].kind);
        assert_null(strstr(g->got.e.text, KEY));
        assert_true(str_starts(g->got.e.text, "lambda launch, us-west-2: "));
    }
}

static void a_refused_launch_may_be_made_again_at_once(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add(&g->http, 200, EMPTY);
    fake_http_add_file(&g->http, 200, "lambda_types.json");
    fake_http_add_file(&g->http, 400, "lambda_no_capacity.json");
    launch(g, "belay-lab-21", ERR_NO_CAPACITY);
    launch_new(g, "belay-lab-21");
}

static void spot_and_odd_regions_are_refused_before_anything_is_sent(void **state)
{
    struct rig *g = *state;
    struct cloud_launch l = {.token = "t",
        .region = "us-west-2",
        .zone = "us-west-2",
        .type = "gpu_1x_a10",
        .market = CLOUD_SPOT,
        .user_data = "",
        .cluster = "lab"};
    create(g);
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    finish(g, ERR_CONFIG);
    l.market = CLOUD_ON_DEMAND;
    l.region = "us-west-2/../../x";
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    finish(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

/* ---- the rest ---- */

static void a_listing_is_of_one_region_and_cluster(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "lambda_instances.json");
    g->driver->ops->list(g->driver, "us-west-2", "lab", outcome_list, &g->got);
    finish(g, 0);
    assert_int_equal(g->got.n, 3);
    assert_string_equal(g->got.list[0].id, FIRST);
    assert_string_equal(g->got.list[0].token, "belay-lab-17");
    assert_int_equal(g->got.list[0].state, CLOUD_PENDING);
    assert_int_equal(g->got.list[1].state, CLOUD_STOPPING);
    assert_false(g->got.list[1].reclaimed);
    assert_int_equal(g->got.list[2].state, CLOUD_GONE);
    assert_true(g->got.list[2].reclaimed);
    assert_int_equal(g->got.list[0].market, CLOUD_ON_DEMAND);
    fake_http_add_file(&g->http, 200, "lambda_instances.json");
    g->driver->ops->list(g->driver, "us-west-2", NULL, outcome_list, &g->got);
    finish(g, 0);
    assert_true(g->got.n > 3);
}

static void terminate_is_one_post_and_believes_only_the_reply(void **state)
{
    struct rig *g = *state;
    const char *id = FIRST, *other = "ff";
    create(g);
    fake_http_add_file(&g->http, 200, "lambda_terminate.json");
    g->driver->ops->terminate(g->driver, "us-west-2", &id, 1, outcome_done, &g->got);
    finish(g, 0);
    assert_string_equal(buf_str(&g->http.requests[0].body), "{\"instance_ids\":[\"" FIRST "\"]}");
    fake_http_add_file(&g->http, 200, "lambda_terminate.json");
    g->driver->ops->terminate(g->driver, "us-west-2", &other, 1, outcome_done, &g->got);
    finish(g, ERR_UNAVAILABLE);
    fake_http_add(&g->http, 404,
        "{\"error\":{\"code\":\"global/object-does-not-exist\",\"message\":\"none\"}}");
    g->driver->ops->terminate(g->driver, "us-west-2", &other, 1, outcome_done, &g->got);
    finish(g, ERR_NOT_FOUND);
    g->driver->ops->terminate(g->driver, "us-west-2", &id, 0, outcome_done, &g->got);
    finish(g, ERR_INVALID);
}

static void prices_are_those_of_the_types_asked_for(void **state)
{
    static const char *const types[] = {"gpu_8x_h100_sxm5", "gpu_1x_nothing"};
    struct rig *g = *state;
    create(g);
    fake_http_add_file(&g->http, 200, "lambda_types.json");
    g->driver->ops->prices(g->driver, "us-west-2", types, 2, outcome_prices, &g->got);
    finish(g, 0);
    assert_int_equal(g->got.n, 1);
    assert_string_equal(g->got.prices[0].type, "gpu_8x_h100_sxm5");
    assert_string_equal(g->got.prices[0].zone, "us-west-2");
    assert_int_equal(g->got.prices[0].uusd_h, 31920000);
    assert_int_equal(g->got.prices[0].market, CLOUD_ON_DEMAND);
}

static void a_driver_that_is_closed_cancels(void **state)
{
    struct rig *g = *state;
    create(g);
    g->http.silent = true;
    g->driver->ops->list(g->driver, "us-west-2", "lab", outcome_list, &g->got);
    start_launch(g, "a");
    vtimers_advance(&g->vt, 10);
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
}

static void a_launch_under_way_is_closed_too(void **state)
{
    struct rig *g = *state;
    create(g);
    fake_http_route(&g->http, "GET", "/instances", 200, EMPTY);
    char *types = fake_read_file("lambda_types.json");
    fake_http_route(&g->http, "GET", "/instance-types", 200, types);
    free(types);
    fake_http_add(&g->http, 200, "{}");
    start_launch(g, "a");
    while (fake_http_count(&g->http, "POST", "/launch") == 0)
        assert_true(vtimers_run_next(&g->vt));
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 1);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
}

/* ---- the key ---- */

static void refused(struct rig *g, const char *words)
{
    struct err e;
    struct cloud_driver *d = NULL;
    assert_int_equal(lambda_driver_create(&g->options, &d, &e), ERR_CONFIG);
    if (!strstr(e.text, words))
        fail_msg("expected \"%s\" in: %s", words, e.text);
    assert_null(strstr(e.text, KEY));
}

static void the_key_comes_from_a_file_that_only_we_may_read(void **state)
{
    struct rig *g = *state;
    char path[] = "/tmp/belay-lambda-XXXXXX";
    struct err e;
    close(mkstemp(path));
    unsetenv("LAMBDA_API_KEY");
    refused(g, "no API key");
    g->options.key_file = path;
    refused(g, "expected an API key");
    assert_int_equal(fs_write_atomic(path, KEY "\n", strlen(KEY) + 1, 0644, &e), 0);
    refused(g, "chmod 600");
    assert_int_equal(fs_write_atomic(path, KEY "\nand more", strlen(KEY) + 9, 0600, &e), 0);
    refused(g, "one word");
    assert_int_equal(fs_write_atomic(path, KEY "\n", strlen(KEY) + 1, 0600, &e), 0);
    create(g);
    fake_http_add(&g->http, 200, EMPTY);
    g->driver->ops->list(g->driver, "us-west-2", "lab", outcome_list, &g->got);
    finish(g, 0);
    assert_true(fake_http_sent(&g->http, 0, "Authorization: Bearer " KEY));
    /* replaced while the driver runs */
    assert_int_equal(fs_write_atomic(path, "other", 5, 0600, &e), 0);
    fake_http_add(&g->http, 200, EMPTY);
    g->driver->ops->list(g->driver, "us-west-2", "lab", outcome_list, &g->got);
    finish(g, 0);
    assert_true(fake_http_sent(&g->http, 1, "Authorization: Bearer other"));
    unlink(path);
    g->driver->ops->list(g->driver, "us-west-2", "lab", outcome_list, &g->got);
    finish(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 2);
}

static void the_key_goes_to_no_other_host(void **state)
{
    static const char *const wrong[] = {"http://cloud.lambda.ai", "ftp://cloud.lambda.ai",
        "https://", "https://a@b", "https://h/path", NULL};
    struct rig *g = *state;
    for (size_t i = 0; wrong[i]; i++) {
        g->options.endpoint_url = wrong[i];
        refused(g, "Lambda endpoint");
    }
    g->options.endpoint_url = NULL;
    g->options.machine.image = "a";
    g->options.machine.image_family = "b";
    refused(g, "exclude each other");
}

static void a_pool_can_say_how_far_apart_requests_are(void **state)
{
    static const char *const wrong[] = {"0s", "soon", "11m", "-1s", "", NULL};
    struct rig *g = *state;
    struct cloud_setup s = {
        .provider = &lambda_provider, .http = &g->http.client, .timers = &g->vt.timers};
    struct err e;
    size_t at = 0;
    while (!str_eq(lambda_provider.settings[at].key, "request_every"))
        at++;
    for (size_t i = 0; wrong[i]; i++) {
        s.values[at] = wrong[i];
        assert_int_equal(lambda_provider.create(&s, &g->driver, &e), ERR_CONFIG);
        assert_true(str_starts(e.text, "request_every"));
    }
    s.values[at] = "4s";
    assert_int_equal(lambda_provider.create(&s, &g->driver, &e), 0);
    struct mono from = clock_mono(g->vt.timers.clock);
    launch_new(g, "belay-lab-21");
    assert_true(clock_mono(g->vt.timers.clock).ms - from.ms >= SECONDS_MS(8)); /* three requests */
}

/* ---- malformed replies ---- */

static void malformed_replies_are_errors(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "null", "{}", "{\"data\":null}",
        "{\"data\":7}", "{\"data\":[7]}", "{\"data\":[{}]}", "{\"data\":[{\"id\":7}]}",
        "{\"data\":{\"x\":7}}", "{\"data\":{\"x\":{\"instance_type\":[]}}}",
        "{\"data\":{\"x\":{\"instance_type\":{\"price_cents_per_hour\":-1}}}}",
        "{\"data\":{\"x\":{\"instance_type\":{\"price_cents_per_hour\":1.5}}}}",
        "{\"data\":{\"instance_ids\":\"a\"}}", "{\"data\":{\"instance_ids\":[7]}}",
        "{\"data\":{\"instance_ids\":[\"\"]}}", "{\"data\":{\"instance_ids\":[\"a\",\"b\"]}}",
        "{\"data\":{\"terminated_instances\":{}}}",
        "{\"data\":[{\"id\":\"a\",\"status\":\"active\",\"region\":\"r\",\"instance_type\":{"
        "\"name\":\"t\"}}]}",
        "{\"data\":[{\"id\":\"\",\"status\":\"active\",\"region\":{\"name\":\"r\"},\"instance_"
        "type\":{\"name\":\"t\"}}]}",
        "{\"data\":[{\"id\":\"a\",\"status\":\"active\",\"region\":{\"name\":\"r\"},\"instance_"
        "type\":{\"name\":\"t\"},\"tags\":{}}]}",
        NULL};
    const char *id = "a";
    (void)state;
    for (size_t i = 0; wrong[i]; i++) {
        struct cloud_instances l = {0};
        struct lambda_types t = {0};
        struct err e = {0};
        char got[CLOUD_NAME_MAX];
        size_t n = strlen(wrong[i]);
        bool is_map = strstr(wrong[i], "data\":{") != NULL;
        assert_int_equal(lambda_parse_launch(wrong[i], n, got, &e), ERR_INVALID);
        assert_int_equal(lambda_parse_terminate(wrong[i], n, &id, 1, &e), ERR_INVALID);
        assert_int_equal(lambda_parse_instances(wrong[i], n, "r", &l, &e), ERR_INVALID);
        if (!is_map || strstr(wrong[i], "\"x\""))
            assert_int_equal(lambda_parse_types(wrong[i], n, "r", &t, &e), ERR_INVALID);
        assert_true(e.text[0]);
        cloud_instances_deinit(&l);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_launch_looks_first_and_carries_its_token),
        TEST(image_and_file_system_go_along),
        TEST(what_carries_the_token_is_the_answer),
        TEST(of_two_under_one_token_the_living_one_is_taken),
        TEST(a_launch_without_an_answer_is_not_repeated_before_it_would_show),
        TEST(a_launch_that_never_shows_is_made_again),
        TEST(two_calls_under_one_token_make_one_launch),
        TEST(what_is_not_there_is_not_asked_for),
        TEST(launches_are_spaced_and_a_queue_is_refused),
        TEST(a_pool_can_say_how_far_apart_requests_are),
        TEST(refusals_are_reported_by_kind),
        TEST(a_refused_launch_may_be_made_again_at_once),
        TEST(spot_and_odd_regions_are_refused_before_anything_is_sent),
        TEST(a_listing_is_of_one_region_and_cluster),
        TEST(terminate_is_one_post_and_believes_only_the_reply),
        TEST(prices_are_those_of_the_types_asked_for),
        TEST(a_driver_that_is_closed_cancels),
        TEST(a_launch_under_way_is_closed_too),
        TEST(the_key_comes_from_a_file_that_only_we_may_read),
        TEST(the_key_goes_to_no_other_host),
        TEST(malformed_replies_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
