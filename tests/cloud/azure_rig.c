/* SPDX-License-Identifier: Apache-2.0 */
#include "azure_rig.h"

#include <unistd.h>

void azure_rig_clear_environment(void)
{
    static const char *const names[] = {
        "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

int azure_rig_setup(void **state)
{
    struct azure_rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, NOON_MS);
    fake_http_init(&g->http, &g->vt.timers);
    fake_http_route(&g->http, "POST", TOKEN_PATH, 200, TOKEN_REPLY);
    azure_rig_clear_environment();
    setenv("AZURE_TENANT_ID", "tenant-1", 1);
    setenv("AZURE_CLIENT_ID", "client-1", 1);
    setenv("AZURE_CLIENT_SECRET", SECRET, 1);
    g->options = (struct azure_options){
        .machine =
            {
                .subscription = "8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44",
                .resource_group = "lab",
                .subnet = "net/nodes",
                .image = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest",
                .ssh_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ ops@lab",
            },
        .http = &g->http.client,
        .timers = &g->vt.timers,
    };
    *state = g;
    return 0;
}

int azure_rig_teardown(void **state)
{
    struct azure_rig *g = *state;
    if (g->driver)
        g->driver->ops->destroy(g->driver);
    while (vtimers_run_next(&g->vt))
        ;
    fake_http_deinit(&g->http);
    vtimers_deinit(&g->vt);
    if (g->file)
        unlink(g->file);
    free(g->file);
    free(g);
    return 0;
}

void azure_rig_create(struct azure_rig *g)
{
    struct err e;
    if (azure_driver_create(&g->options, &g->driver, &e) != 0)
        fail_msg("%s", e.text);
}

void azure_rig_finish(struct azure_rig *g, int expected)
{
    assert_int_equal(g->got.completions, 0);
    while (vtimers_run_next(&g->vt))
        ;
    assert_int_equal(g->got.completions, 1);
    g->got.completions = 0;
    if (g->got.e.kind != (enum err_kind)expected)
        fail_msg("expected %s, got %s: %s", err_kind_name(expected), err_kind_name(g->got.e.kind),
            g->got.e.text);
    assert_null(strstr(g->got.e.text, SECRET));
    assert_null(strstr(g->got.e.text, "eyJ"));
}

void azure_rig_start_launch(struct azure_rig *g)
{
    static const struct cloud_launch l = {
        .token = "belay-lab-17",
        .region = "eastus",
        .zone = "1",
        .type = "Standard_NC4as_T4_v3",
        .market = CLOUD_SPOT,
        .user_data = "#!/bin/sh\n",
        .cluster = "lab",
    };
    g->first = g->http.n_requests;
    g->driver->ops->launch(g->driver, &l, outcome_launch, &g->got);
}

void azure_rig_launch(struct azure_rig *g, int expected)
{
    azure_rig_start_launch(g);
    azure_rig_finish(g, expected);
}

void azure_rig_list(struct azure_rig *g, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->list(g->driver, "eastus", "lab", outcome_list, &g->got);
    azure_rig_finish(g, expected);
}

void assert_asked(struct azure_rig *g, const char *const *expected)
{
    size_t n = 0;
    for (size_t i = g->first; i < g->http.n_requests; i++) {
        const struct fake_request *r = &g->http.requests[i];
        char *line = mem_printf("%s %s", r->method, r->url);
        if (!str_ends(r->url, TOKEN_PATH)) {
            if (!expected[n] || !str_eq(line, expected[n]))
                fail_msg(
                    "request %zu: %s\nexpected %s", n, line, expected[n] ? expected[n] : "none");
            n++;
        }
        free(line);
    }
    assert_null(expected[n]);
}

void assert_nothing_leaked(struct azure_rig *g)
{
    for (size_t i = 0; i < g->http.n_requests; i++) {
        const struct fake_request *r = &g->http.requests[i];
        bool api = str_starts(r->url, ENDPOINT "/");
        assert_int_equal(strstr(r->headers, "eyJ.T0.k") != NULL, api);
        if (!str_starts(r->url, "https://login.microsoftonline.com/"))
            assert_null(strstr(buf_str(&r->body), "client_secret"));
    }
}

void azure_rig_answer_vm(struct azure_rig *g)
{
    fake_http_add_file(&g->http, 200, "azure_nic.json");
    fake_http_add_file(&g->http, 201, "azure_vm.json");
    fake_http_with(&g->http, "Azure-AsyncOperation: " OPERATION);
    fake_http_with(&g->http, "Retry-After: 10");
}

void azure_rig_terminate(struct azure_rig *g, const char *const *ids, size_t n, int expected)
{
    g->first = g->http.n_requests;
    g->driver->ops->terminate(g->driver, "eastus", ids, n, outcome_done, &g->got);
    azure_rig_finish(g, expected);
}
