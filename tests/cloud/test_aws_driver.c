/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "aws_rig.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void launch(struct aws_rig *g, int expected)
{
    static const struct cloud_launch l = {
        .token = "belay-lab-17",
        .region = "us-east-1",
        .zone = "us-east-1b",
        .type = "g6.xlarge",
        .market = CLOUD_SPOT,
        .user_data = "#!/bin/sh\n",
        .cluster = "lab",
    };
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    aws_rig_finish(g, expected);
}

static void launch_is_one_signed_post(void **state)
{
    struct aws_rig *g = *state;
    setenv("AWS_SESSION_TOKEN", "SESSION", 1);
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_string_equal(g->got.instance.id, "i-0abc1234def567890");
    assert_int_equal(g->http.n_requests, 1);
    assert_string_equal(g->http.requests[0].method, "POST");
    assert_string_equal(g->http.requests[0].url, ENDPOINT);
    assert_true(str_starts(buf_str(&g->http.requests[0].body), "Action=RunInstances&"));
    assert_true(fake_http_sent(
        &g->http, 0, "Content-Type: application/x-www-form-urlencoded; charset=utf-8"));
    assert_true(fake_http_sent(&g->http, 0, "X-Amz-Date: 20260822T120000Z"));
    assert_true(fake_http_sent(&g->http, 0, "X-Amz-Security-Token: SESSION"));
    aws_rig_assert_signed(g, 0, "127.0.0.1:4566", "20260822T120000Z");
}

static void without_an_endpoint_the_region_names_it(void **state)
{
    struct aws_rig *g = *state;
    g->options.endpoint_url = NULL;
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_string_equal(g->http.requests[0].url, "https://ec2.us-east-1.amazonaws.com/");
    aws_rig_assert_signed(g, 0, "ec2.us-east-1.amazonaws.com", "20260822T120000Z");
}

static void regions_cannot_name_another_host(void **state)
{
    static const char *const wrong[] = {"", "us-east-1.example.com/", "a@b", "US-EAST-1", NULL};
    struct aws_rig *g = *state;
    g->options.endpoint_url = NULL;
    aws_rig_create(g);
    for (size_t i = 0; wrong[i]; i++) {
        g->driver->ops->list(g->driver, wrong[i], "lab", outcome_list, &g->got);
        aws_rig_finish(g, ERR_CONFIG);
    }
    g->driver->ops->list(g->driver, NULL, "lab", outcome_list, &g->got);
    aws_rig_finish(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

static void launches_that_cannot_be_sent_are_refused(void **state)
{
    struct aws_rig *g = *state;
    struct cloud_launch l = {
        .token = "t", .region = "us-east-1", .zone = "z", .type = "t", .cluster = "lab"};
    g->options.machine.image = NULL;
    aws_rig_create(g);
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
    aws_rig_finish(g, ERR_CONFIG);
    assert_non_null(strstr(g->got.e.text, "the image is missing"));
    g->driver->ops->terminate(g->driver, "us-east-1", NULL, 0, outcome_done, &g->got);
    aws_rig_finish(g, ERR_INVALID);
    assert_int_equal(g->http.n_requests, 0);
}

static void refusals_reach_the_caller_without_a_retry(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add_file(&g->http, 500, "error.xml");
    launch(g, ERR_NO_CAPACITY);
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    launch(g, ERR_TIMEOUT);
    fake_http_add_file(&g->http, 502, "error_page.html");
    launch(g, ERR_UNAVAILABLE);
    fake_http_add_file(&g->http, 200, "error_page.html");
    launch(g, ERR_INVALID);
    assert_non_null(strstr(g->got.e.text, "aws RunInstances, us-east-1"));
    assert_int_equal(g->http.n_requests, 4);
}

static void listing_follows_all_pages_and_keeps_our_own(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "describe_instances_1.xml");
    fake_http_add_file(&g->http, 200, "describe_instances_2.xml");
    g->driver->ops->list(g->driver, "us-east-1", "lab", outcome_list, &g->got);
    aws_rig_finish(g, 0);
    assert_int_equal(g->http.n_requests, 2);
    assert_true(str_ends(
        buf_str(&g->http.requests[1].body), "&NextToken=eyJ2IjoiMiIsImMiOiJhK2IvYz0ifQ%3D%3D"));
    aws_rig_assert_signed(g, 1, "127.0.0.1:4566", "20260822T120000Z");
    assert_int_equal(g->got.n, 3); /* the fourth belongs to "laboratory" */
    assert_string_equal(g->got.list[2].id, "i-0a03");
}

static void an_account_is_listed_whatever_the_tags(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    assert_true(g->driver->ops->lists_account);
    fake_http_add_file(&g->http, 200, "describe_instances_1.xml");
    fake_http_add_file(&g->http, 200, "describe_instances_2.xml");
    g->driver->ops->list(g->driver, "us-east-1", NULL, outcome_list, &g->got);
    aws_rig_finish(g, 0);
    assert_int_equal(g->http.n_requests, 2);
    assert_null(strstr(buf_str(&g->http.requests[0].body), "Filter"));
    assert_int_equal(g->got.n, 4);
    assert_string_equal(g->got.list[3].cluster, "laboratory");
    fake_http_add(&g->http, 403,
        "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error>"
        "</Errors></Response>");
    g->driver->ops->list(g->driver, "us-east-1", NULL, outcome_list, &g->got);
    aws_rig_finish(g, ERR_DENIED);
    assert_non_null(strstr(g->got.e.text, "it needs the permission ec2:DescribeInstances"));
}

static void volumes_are_our_own_of_all_pages_or_all(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    for (int all = 0; all < 2; all++) {
        fake_http_add_file(&g->http, 200, "describe_volumes_1.xml");
        fake_http_add_file(&g->http, 200, "describe_volumes_2.xml");
        g->driver->ops->volumes(
            g->driver, "us-east-1", all ? NULL : "lab", outcome_volumes, &g->got);
        aws_rig_finish(g, 0);
        assert_int_equal(g->http.n_requests, 2 * (all + 1));
        assert_true(
            str_ends(buf_str(&g->http.requests[2 * all + 1].body), "&NextToken=cGFnZTI%3D"));
        assert_int_equal(g->got.n, all ? 2 : 1);
        assert_string_equal(g->got.volumes[0].id, "vol-0a01");
    }
    fake_http_add_file(&g->http, 200, "describe_volumes_1.xml");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    g->driver->ops->volumes(g->driver, "us-east-1", "lab", outcome_volumes, &g->got);
    aws_rig_finish(g, ERR_TIMEOUT);
    assert_int_equal(g->got.n, 0);
    g->driver->ops->volumes(g->driver, "../x", "lab", outcome_volumes, &g->got);
    aws_rig_finish(g, ERR_CONFIG);
}

static void volumes_that_are_denied_name_the_permission(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add(&g->http, 403,
        "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not "
        "authorized.</Message></Error></Errors></Response>");
    g->driver->ops->volumes(g->driver, "us-east-1", "lab", outcome_volumes, &g->got);
    aws_rig_finish(g, ERR_DENIED);
    assert_string_equal(g->got.e.text,
        "aws DescribeVolumes, us-east-1: it needs the permission ec2:DescribeVolumes: EC2 refused: "
        "UnauthorizedOperation: You are not authorized.; to do: the policy in "
        "docs/how-to/clouds/aws.md "
        "lists what is needed");
}

static void half_a_listing_is_an_error(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "describe_instances_1.xml");
    fake_http_add_error(&g->http, ERR_TIMEOUT);
    g->driver->ops->list(g->driver, "us-east-1", "lab", outcome_list, &g->got);
    aws_rig_finish(g, ERR_TIMEOUT);
    assert_int_equal(g->got.n, 0);
}

static void endless_pages_are_an_error(void **state)
{
    static const char body[] =
        "<DescribeInstancesResponse><reservationSet/><nextToken>again</nextToken>"
        "</DescribeInstancesResponse>";
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_route(&g->http, "POST", "/", 200, body);
    g->http.keep_none = true;
    g->driver->ops->list(g->driver, "us-east-1", "lab", outcome_list, &g->got);
    aws_rig_finish(g, ERR_INVALID);
    assert_non_null(strstr(g->got.e.text, "pages"));
}

static void termination_is_confirmed(void **state)
{
    static const char *const ids[] = {"i-0a01", "i-0a02"};
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "terminate_instances.xml");
    g->driver->ops->terminate(g->driver, "us-east-1", ids, 2, outcome_done, &g->got);
    aws_rig_finish(g, 0);
    fake_http_add(&g->http, 400,
        "<Response><Errors><Error><Code>InvalidInstanceID.NotFound</Code><Message>no</Message></"
        "Error></Errors></Response>");
    g->driver->ops->terminate(g->driver, "us-east-1", ids, 2, outcome_done, &g->got);
    aws_rig_finish(g, ERR_NOT_FOUND);
}

static void prices_are_the_newest_of_all_pages(void **state)
{
    static const char *const types[] = {"g6.xlarge"};
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "spot_prices_1.xml");
    fake_http_add_file(&g->http, 200, "spot_prices_2.xml");
    g->driver->ops->prices(g->driver, "us-east-1", types, 1, outcome_prices, &g->got);
    aws_rig_finish(g, 0);
    assert_int_equal(g->got.n, 2);
    assert_int_equal(g->got.prices[0].uusd_h, 421500);
    assert_int_equal(g->got.prices[1].uusd_h, 385700);
}

#define EXPIRED                                                                                    \
    "<Response><Errors><Error><Code>RequestExpired</Code><Message>old</Message></Error></"         \
    "Errors></Response>"
#define AUTH_FAILURE                                                                               \
    "<Response><Errors><Error><Code>AuthFailure</Code><Message>no</Message></Error></Errors></"    \
    "Response>"

static void wrong_clock_is_mended_once_and_for_all(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add(&g->http, 400, EXPIRED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_true(fake_http_sent(&g->http, 0, "X-Amz-Date: 20260822T120000Z"));
    assert_true(fake_http_sent(&g->http, 1, "X-Amz-Date: 20260822T130000Z"));
    aws_rig_assert_signed(g, 1, "127.0.0.1:4566", "20260822T130000Z");
    launch(g, 0);
    assert_true(fake_http_sent(&g->http, 2, "X-Amz-Date: 20260822T130000Z"));
    /* The same launch, byte for byte, because its token is bound to these parameters. */
    assert_string_equal(buf_str(&g->http.requests[0].body), buf_str(&g->http.requests[1].body));
}

static void clock_is_mended_only_once_a_call(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add(&g->http, 400, EXPIRED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    fake_http_add(&g->http, 400, EXPIRED);
    fake_http_with(&g->http, "Date: Sat, 22 Aug 2026 13:00:00 GMT");
    launch(g, ERR_DENIED);
    fake_http_add(&g->http, 400, EXPIRED); /* without a date the clock cannot be corrected */
    launch(g, ERR_DENIED);
    assert_int_equal(g->http.n_requests, 3);
}

static void refused_keys_of_the_environment_are_final(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    launch(g, ERR_DENIED);
    assert_int_equal(g->http.n_requests, 1);
}

static void refused_keys_of_a_role_are_renewed_once(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_clear_environment();
    g->options.metadata_url = "http://127.0.0.1:1338";
    fake_http_route(&g->http, "PUT", "/latest/api/token", 200, "AQAE==");
    fake_http_route(&g->http, "GET", "/security-credentials/", 200, "agent");
    fake_http_route(&g->http, "GET", "/security-credentials/agent", 200,
        "{\"Code\":\"Success\",\"AccessKeyId\":\"AKIDEXAMPLE\",\"SecretAccessKey\":\"" SECRET
        "\",\"Token\":\"T\",\"Expiration\":\"2026-08-22T18:00:00Z\"}");
    aws_rig_create(g);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    assert_int_equal(fake_http_count(&g->http, "GET", "/security-credentials/agent"), 2);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    launch(g, ERR_DENIED);
}

static void missing_credentials_fail_the_call(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_clear_environment();
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    aws_rig_create(g);
    launch(g, ERR_CONFIG);
    assert_int_equal(g->http.n_requests, 0);
}

static void without_credentials_a_launch_is_refused_for_certain(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_clear_environment();
    g->options.metadata_url = "http://127.0.0.1:1338";
    aws_rig_create(g);
    fake_http_route(&g->http, "PUT", "/latest/api/token", 0, ""); /* no answer */
    launch(g, ERR_NO_CREDENTIALS);
    assert_non_null(strstr(g->got.e.text,
        "no credentials, so nothing was sent: AWS credentials: not in the environment"));
    assert_int_equal(fake_http_count(&g->http, "POST", "/"), 0);
    g->driver->ops->list(g->driver, "us-east-1", "lab", outcome_list, &g->got);
    aws_rig_finish(g, ERR_TIMEOUT);
    g->driver->ops->credentials(g->driver, "us-east-1", outcome_done, &g->got);
    aws_rig_finish(g, ERR_TIMEOUT);
    assert_int_equal(fake_http_count(&g->http, "POST", "/"), 0);
}

static void credentials_lost_after_a_request_leave_the_launch_undecided(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_clear_environment();
    g->options.metadata_url = "http://127.0.0.1:1338";
    aws_rig_create(g);
    fake_http_route(&g->http, "PUT", "/latest/api/token", 200, "AQAE==");
    fake_http_add(&g->http, 200, "agent");
    fake_http_add(&g->http, 200,
        "{\"Code\":\"Success\",\"AccessKeyId\":\"AKIDEXAMPLE\",\"SecretAccessKey\":\"" SECRET
        "\",\"Token\":\"T\",\"Expiration\":\"2026-08-22T18:00:00Z\"}");
    fake_http_add(&g->http, 401, AUTH_FAILURE);
    fake_http_add_error(&g->http, ERR_TIMEOUT); /* of the renewal */
    launch(g, ERR_TIMEOUT);
}

static void environment_is_read_at_creation_only(void **state)
{
    struct aws_rig *g = *state;
    aws_rig_create(g);
    setenv("AWS_ACCESS_KEY_ID", "LATER", 1);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    aws_rig_assert_signed(g, 0, "127.0.0.1:4566", "20260822T120000Z");
}

static void endpoints_must_be_https_or_this_machine(void **state)
{
    static const char *const wrong[] = {"", "ec2.amazonaws.com", "http://ec2.amazonaws.com/",
        "http://127.evil.com/", "http://10.0.0.1/", "https://", "https://h/path", "https://user@h/",
        "https://h?x", "ftp://h/", "http://127.0.0.1@h/", NULL};
    static const char *const fine[] = {"https://ec2.example.com", "https://ec2.example.com:8443/",
        "http://127.0.0.1:1/", "http://localhost:4566", "http://[::1]:4566/", NULL};
    struct aws_rig *g = *state;
    struct err e;
    for (size_t i = 0; wrong[i]; i++) {
        g->options.endpoint_url = wrong[i];
        assert_int_equal(aws_driver_create(&g->options, &g->driver, &e), ERR_CONFIG);
        assert_null(g->driver);
    }
    for (size_t i = 0; fine[i]; i++) {
        g->options.endpoint_url = fine[i];
        aws_rig_create(g);
        g->driver->ops->destroy(g->driver);
        g->driver = NULL;
    }
}

static void default_port_is_not_in_the_signed_host(void **state)
{
    struct aws_rig *g = *state;
    g->options.endpoint_url = "https://ec2.example.com:443/";
    aws_rig_create(g);
    fake_http_add_file(&g->http, 200, "run_instances.xml");
    launch(g, 0);
    aws_rig_assert_signed(g, 0, "ec2.example.com", "20260822T120000Z");
}

static void destroy_completes_calls_in_flight(void **state)
{
    static const char *const types[] = {"g6.xlarge"};
    struct aws_rig *g = *state;
    aws_rig_create(g);
    g->http.silent = true;
    g->driver->ops->prices(g->driver, "us-east-1", types, 1, outcome_prices, &g->got);
    while (g->http.n_requests == 0)
        assert_true(vtimers_run_next(&g->vt));
    g->driver->ops->list(g->driver, "us-east-1", "lab", outcome_list, &g->got); /* not begun yet */
    assert_int_equal(g->got.completions, 0);
    g->driver->ops->destroy(g->driver);
    g->driver = NULL;
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(g->got.e.kind, ERR_CANCELLED);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 2);
    assert_int_equal(g->http.n_cancelled, 1);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, aws_rig_setup, aws_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG(launch_is_one_signed_post),
        RIG(without_an_endpoint_the_region_names_it),
        RIG(regions_cannot_name_another_host),
        RIG(launches_that_cannot_be_sent_are_refused),
        RIG(refusals_reach_the_caller_without_a_retry),
        RIG(listing_follows_all_pages_and_keeps_our_own),
        RIG(an_account_is_listed_whatever_the_tags),
        RIG(volumes_are_our_own_of_all_pages_or_all),
        RIG(volumes_that_are_denied_name_the_permission),
        RIG(half_a_listing_is_an_error),
        RIG(endless_pages_are_an_error),
        RIG(termination_is_confirmed),
        RIG(prices_are_the_newest_of_all_pages),
        RIG(wrong_clock_is_mended_once_and_for_all),
        RIG(clock_is_mended_only_once_a_call),
        RIG(refused_keys_of_the_environment_are_final),
        RIG(refused_keys_of_a_role_are_renewed_once),
        RIG(missing_credentials_fail_the_call),
        RIG(without_credentials_a_launch_is_refused_for_certain),
        RIG(credentials_lost_after_a_request_leave_the_launch_undecided),
        RIG(environment_is_read_at_creation_only),
        RIG(endpoints_must_be_https_or_this_machine),
        RIG(default_port_is_not_in_the_signed_host),
        RIG(destroy_completes_calls_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
