/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: every key with its value and its default.
 */
#include "tests/scheduler/config_rig.h"

#include "base/str.h"
#include "scheduler/config/egress.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void limits_are_read_along_the_path(void **state)
{
    (void)state;
    struct config c = parse("each_user: {max_submitted: 20000, max_gpus: 16}\nteams:\n  red:\n    "
                            "max_usd_per_hour: 60.5\n"
                            "    each_user: {max_running: 200}\n    users:\n      ann: {shares: 2, "
                            "max_gpus: 0, max_running: none}\n"
                            "      bob: 3\n");
    const struct queue_policy *o = &c.policy;
    assert_int_equal(o->teams[0].users[0].shares, 2);
    assert_int_equal(o->teams[0].users[1].shares, 3);
    assert_int_equal(policy_limit(o, "red", "ann", LIMIT_GPUS), 0);
    assert_int_equal(policy_limit(o, "red", "ann", LIMIT_RUNNING), LIMIT_NONE);
    assert_int_equal(policy_limit(o, "red", "bob", LIMIT_GPUS), 16);
    assert_int_equal(policy_limit(o, "red", "bob", LIMIT_RUNNING), 200);
    assert_int_equal(policy_limit(o, "red", "bob", LIMIT_SUBMITTED), 20000);
    assert_int_equal(policy_limit(o, "red", NULL, LIMIT_UUSD_H), 60500000);
    assert_int_equal(policy_limit(o, "cho", "cho", LIMIT_SUBMITTED), 20000);
    assert_int_equal(policy_quota_mcpu(o, "red"), 0);
    config_deinit(&c);
    c = parse("teams:\n  red: {quota: 256}\n  blue: {quota: 32, borrow: false, max_cpus: 100}\n");
    assert_int_equal(policy_quota_mcpu(&c.policy, "red"), 256000);
    assert_int_equal(policy_limit(&c.policy, "red", NULL, LIMIT_MCPU), LIMIT_NONE);
    assert_int_equal(policy_limit(&c.policy, "blue", NULL, LIMIT_MCPU), 32000);
    config_deinit(&c);
}

static void roles_and_visibility_are_read_or_the_default(void **state)
{
    (void)state;
    struct config c = parse("");
    assert_int_equal(c.access.visibility, VISIBILITY_TEAM);
    assert_int_equal(config_role_of(&c.access, "ann"), ROLE_MEMBER);
    assert_int_equal(c.access.requests_per_second, 100);
    assert_int_equal(c.access.requests_burst, 1000);
    config_deinit(&c);
    c = parse("visibility: all\ndefault_role: viewer\nrequests_per_second: none\n"
              "requests_burst: 7\nusers: {zoe: admin, ann: operator, bob: viewer, cho: member}\n"
              "teams:\n  red: {users: [ann, bob, dee], leads: [dee, bob, ann]}\n"
              "  blue: {users: {dee: 2}, leads: [dee]}\n");
    assert_int_equal(c.access.visibility, VISIBILITY_ALL);
    assert_int_equal(config_role_of(&c.access, "zoe"), ROLE_ADMIN);
    assert_int_equal(config_role_of(&c.access, "ann"), ROLE_OPERATOR);
    assert_int_equal(config_role_of(&c.access, "bob"), ROLE_LEAD);
    assert_int_equal(config_role_of(&c.access, "cho"), ROLE_MEMBER);
    assert_int_equal(config_role_of(&c.access, "dee"), ROLE_LEAD);
    assert_int_equal(config_role_of(&c.access, "eve"), ROLE_VIEWER);
    assert_int_equal(c.access.n_users, 5);
    assert_int_equal(c.access.requests_per_second, 0);
    assert_int_equal(c.access.requests_burst, 7);
    assert_true(policy_is_lead(&c.policy, "blue", "dee"));
    assert_false(policy_is_lead(&c.policy, "blue", "bob"));
    config_deinit(&c);
}

static void the_order_is_read_or_the_default(void **state)
{
    (void)state;
    struct config c = parse("");
    struct queue_policy usual = queue_policy_defaults;
    usual.each_user.is_set[LIMIT_SUBMITTED] = true;
    usual.each_user.max[LIMIT_SUBMITTED] = 200000;
    assert_memory_equal(&c.policy, &usual, sizeof(c.policy));
    config_deinit(&c);
    c = parse(
        "teams:\n  red: {shares: 30, users: [ann, bob]}\n  blue:\n    shares: 70\n    users: {cho: "
        "2, dee: 1}\n"
        "  open: {}\n"
        "priority: {half_life: 14d, fair_share: 30d, age_max: 2h, size: -10m, cpus_per_gpu: 12.5,"
        " cpus_per_gib: 0.125, default_team: open, reserve: 3}\n"
        "qos:\n  urgent: {boost: 1d, preempts: [spare]}\n  spare: {boost: -7d}\n"
        "windows:\n  overnight: {days: mon-fri, from: \"20:00\", to: \"07:00\", tz: "
        "Australia/Sydney}\n"
        "calendars:\n  nsw: [2026-12-25..2026-12-28, 2027-01-01]\n  other: [1970-01-02]\n");
    const struct queue_policy *o = &c.policy;
    assert_int_equal(o->n_teams, 3);
    assert_string_equal(o->teams[0].name, "red");
    assert_int_equal(o->teams[0].shares, 30);
    assert_string_equal(o->teams[0].users[1].name, "bob");
    assert_int_equal(o->teams[0].users[1].shares, 1);
    assert_string_equal(o->teams[1].users[0].name, "cho");
    assert_int_equal(o->teams[1].users[0].shares, 2);
    assert_int_equal(o->teams[2].shares, 1);
    assert_int_equal(o->teams[2].n_users, 0);
    assert_int_equal(o->half_life_ms, 14 * 86400000LL);
    assert_int_equal(o->fair_ms, 30 * 86400000LL);
    assert_int_equal(o->age_max_ms, 7200000);
    assert_int_equal(o->size_ms, -600000);
    assert_int_equal(o->gpu_mcpu, 12500);
    assert_int_equal(o->gib_mcpu, 125);
    assert_string_equal(o->default_team, "open");
    assert_int_equal(o->reserve, 3);
    assert_int_equal(c.n_windows, 1);
    assert_int_equal(c.windows[0].window.days, 0x3E);
    assert_int_equal(c.windows[0].window.from_min, 1200);
    assert_int_equal(c.windows[0].window.to_min, 420);
    assert_string_equal(c.windows[0].tz, "Australia/Sydney");
    assert_int_equal(c.n_calendars, 2);
    assert_string_equal(c.calendars[0].name, "nsw");
    assert_int_equal(c.calendars[0].n, 2);
    assert_int_equal(c.calendars[0].days[0].last - c.calendars[0].days[0].first, 3);
    assert_int_equal(c.calendars[1].days[0].first, 1);
    assert_int_equal(o->n_qos, 2);
    assert_int_equal(o->qos[0].boost_ms, 86400000LL);
    assert_int_equal(o->qos[1].boost_ms, -7 * 86400000LL);
    assert_true(bits_has(&o->qos[0].preempts, 1) && !bits_has(&o->qos[0].preempts, 0));
    assert_int_equal(bits_next(&o->qos[1].preempts, 0), o->qos[1].preempts.n);
    config_deinit(&c);
}

static void nothing_given_means_one_reserved_pool_and_the_documented_defaults(void **state)
{
    (void)state;
    struct config c = parse("");
    assert_string_equal(c.cluster, "belay");
    assert_string_equal(c.state_dir, "/var/lib/belay");
    assert_string_equal(c.socket, "/var/lib/belay/belayd.sock");
    assert_int_equal(c.socket_users, geteuid() == 0 ? SOCKET_ALL : SOCKET_OWNER);
    assert_string_equal(c.store, "file:///var/lib/belay/store");
    assert_string_equal(c.listen_host, "127.0.0.1");
    assert_int_equal(c.listen_port, 7443);
    assert_string_equal(c.server_url, "");
    assert_int_equal(c.n_names, 0);
    assert_int_equal(c.lease_ms, 30000);
    assert_int_equal(c.sync_ms, 10000);
    assert_int_equal(c.kill_wait_ms, 30000);
    assert_int_equal(c.store_wait_ms, 600000);
    assert_int_equal(c.sweep_ms, 60000);
    assert_int_equal(c.busy_sweep_ms, 5000);
    assert_int_equal(c.settle_ms, 60000);
    assert_int_equal(c.price_ms, 300000);
    assert_int_equal(c.node_cert_ms, 30LL * 86400 * 1000);
    assert_int_equal(c.api_token_ms, 90LL * 86400 * 1000);
    assert_int_equal(c.orphan_ms, 3600000);
    assert_int_equal(c.log_job_bytes, 4LL << 30);
    assert_int_equal(c.log_user_day_bytes, 64LL << 30);
    assert_int_equal(c.log_full_wait_ms, 300000);
    assert_int_equal(c.workdir_user_bytes, 20LL << 30);
    assert_int_equal(c.store_user_day_bytes, 4LL << 30);
    assert_int_equal(c.retention.checkpoints_ms, 7 * 86400000);
    assert_int_equal(c.no_progress_max, 10);
    assert_int_equal(c.failing_nodes.jobs, 4);
    assert_int_equal(c.failing_nodes.users, 3);
    assert_int_equal(c.failing_nodes.within_ms, 600000);
    assert_int_equal(c.failing_nodes.quick_ms, 60000);
    assert_int_equal(c.n_pools, 1);
    assert_string_equal(c.pools[0].row.name, "local");
    assert_false(c.pools[0].row.elastic);
    config_deinit(&c);
}

static const char everything[] = "cluster: lab\n"
                                 "state: /srv/belay\n"
                                 "socket: /run/belay.sock\n"
                                 "socket_users: owner\n"
                                 "store: file:///data/store%20one\n"
                                 "encryption: required\n"
                                 "key_file: /etc/belay/lab.keys\n"
                                 "listen: 0.0.0.0:7000\n"
                                 "server: https://belay.lab:7000\n"
                                 "names: [belay.lab, 10.0.0.7, \"fd00::7\"]\n"
                                 "lease: 90s\n"
                                 "kill_wait: 5s\n"
                                 "store_wait: 3m\n"
                                 "sweep: 2m\n"
                                 "busy_sweep: 3s\n"
                                 "settle: 40s\n"
                                 "price_every: 1h\n"
                                 "node_certificate: 7d\n"
                                 "api_token_lifetime: 12h\n"
                                 "log_max_per_job: 10M\n"
                                 "log_max_per_user_day: none\n"
                                 "log_full_wait: 2m\n"
                                 "workdir_max_per_user: 1G\n"
                                 "store_max_per_user_day: 8G\n"
                                 "orphan_timeout: 2h\n"
                                 "retention: 30d\n"
                                 "no_progress_max: 0\n"
                                 "failing_nodes: {jobs: 2, within: 1h, quick: 5s}\n"
                                 "pools:\n"
                                 "  base:\n"
                                 "    kind: reserved\n"
                                 "    usd_per_hour: 3.56\n"
                                 "  burst:\n"
                                 "    provider: aws\n"
                                 "    region: us-east-1\n"
                                 "    zones: [us-east-1a, us-east-1b]\n"
                                 "    types: [g5.xlarge, g6.xlarge]\n"
                                 "    markets: [on-demand, spot]\n"
                                 "    max_nodes: 16\n"
                                 "    idle_timeout: 1m\n"
                                 "    cooldown: 2m\n"
                                 "    boot_timeout: 3m\n"
                                 "    refusal_backoff: 4m\n"
                                 "    image: ami-0abc\n"
                                 "    subnet: subnet-1\n"
                                 "    security_group: sg-1\n"
                                 "    iam_profile: arn:aws:iam::1:instance-profile/x\n"
                                 "    endpoint: http://127.0.0.1:4566\n"
                                 "    metadata: http://127.0.0.1:1338\n"
                                 "    credentials: /etc/belay/aws\n"
                                 "    launches_per_minute: 300\n"
                                 "    disk_gib: 100\n";

static void every_key_is_read(void **state)
{
    (void)state;
    struct config c = parse(everything);
    assert_string_equal(c.cluster, "lab");
    assert_string_equal(c.state_dir, "/srv/belay");
    assert_string_equal(c.socket, "/run/belay.sock");
    assert_int_equal(c.socket_users, SOCKET_OWNER);
    assert_string_equal(c.store, "file:///data/store%20one");
    assert_int_equal(c.encryption, ENCRYPTION_REQUIRED);
    assert_string_equal(c.key_file, "/etc/belay/lab.keys");
    assert_string_equal(c.listen_host, "0.0.0.0");
    assert_int_equal(c.listen_port, 7000);
    assert_string_equal(c.server_url, "https://belay.lab:7000");
    char host[16];
    config_server_host(&c, host, sizeof(host));
    assert_string_equal(host, "belay.lab");
    config_server_host(&c, host, 9); /* too small for the NUL */
    assert_string_equal(host, "");
    STR_COPY(c.server_url, "https://[fd00::7]:7000/x");
    config_server_host(&c, host, sizeof(host));
    assert_string_equal(host, "fd00::7");
    STR_COPY(c.server_url, "");
    config_server_host(&c, host, sizeof(host));
    assert_string_equal(host, "");
    assert_int_equal(c.n_names, 3);
    assert_string_equal(c.names[2], "fd00::7");
    assert_int_equal(c.lease_ms, 90000);
    assert_int_equal(c.sync_ms, 20000); /* limited by the wire protocol */
    assert_int_equal(c.kill_wait_ms, 5000);
    assert_int_equal(c.store_wait_ms, 180000);
    assert_int_equal(c.sweep_ms, 120000);
    assert_int_equal(c.busy_sweep_ms, 3000);
    assert_int_equal(c.settle_ms, 40000);
    assert_int_equal(c.price_ms, 3600000);
    assert_int_equal(c.node_cert_ms, 7LL * 86400 * 1000);
    assert_int_equal(c.api_token_ms, 12LL * 3600 * 1000);
    assert_int_equal(c.log_job_bytes, 10 << 20);
    assert_int_equal(c.log_user_day_bytes, 0);
    assert_int_equal(c.log_full_wait_ms, 120000);
    assert_int_equal(c.workdir_user_bytes, 1 << 30);
    assert_int_equal(c.store_user_day_bytes, 8LL << 30);
    assert_int_equal(c.orphan_ms, 7200000);
    assert_int_equal(c.retention.checkpoints_ms, 30LL * 86400000);
    assert_int_equal(c.no_progress_max, 0);
    assert_int_equal(c.failing_nodes.jobs, 2);
    assert_int_equal(c.failing_nodes.users, 2); /* no more than jobs */
    assert_int_equal(c.failing_nodes.within_ms, 3600000);
    assert_int_equal(c.failing_nodes.quick_ms, 5000);
    config_deinit(&c);
}

static void each_kind_of_record_has_its_age(void **state)
{
    (void)state;
    const int64_t a_day = 86400000;
    struct config c = parse("");
    assert_int_equal(c.retention.jobs_ms, 400 * a_day);
    assert_int_equal(c.retention.logs_ms, 400 * a_day);
    assert_int_equal(c.retention.disk_ms, 30 * a_day);
    assert_int_equal(c.retention.events_ms, 90 * a_day);
    assert_int_equal(c.retention.audit_ms, 1100 * a_day);
    assert_int_equal(c.retention.days_ms, 800 * a_day);
    config_deinit(&c);
    c = parse("retention:\n  jobs: 30d\n  audit_log: forever\n  daily_costs: 62d\n  events: 1d\n");
    assert_int_equal(c.retention.checkpoints_ms, 7 * a_day);
    assert_int_equal(c.retention.jobs_ms, 30 * a_day);
    assert_int_equal(c.retention.logs_ms, 30 * a_day); /* as the jobs */
    assert_int_equal(c.retention.events_ms, a_day);
    assert_int_equal(c.retention.audit_ms, 0);
    assert_int_equal(c.retention.days_ms, 62 * a_day);
    config_deinit(&c);
    c = parse("retention: {checkpoints: 1h, jobs: forever, logs: 10d, logs_on_disk: forever}\n");
    assert_int_equal(c.retention.checkpoints_ms, 3600000);
    assert_int_equal(c.retention.jobs_ms, 0);
    assert_int_equal(c.retention.logs_ms, 10 * a_day);
    assert_int_equal(c.retention.disk_ms, 0);
    config_deinit(&c);
}

static void deadlines_are_decided_as_configured(void **state)
{
    (void)state;
    struct config c = parse("");
    assert_int_equal(c.deadlines.rule, DEADLINE_PLANNED);
    assert_int_equal(c.deadlines.baseline, DEADLINE_UNIFORM);
    assert_int_equal(c.deadlines.cap_pct, 35);
    config_deinit(&c);
    c = parse("deadlines: {policy: greedy, baseline: rc-cr-threshold-no-condition2, cap: 20}\n");
    assert_int_equal(c.deadlines.rule, DEADLINE_GREEDY);
    assert_int_equal(c.deadlines.baseline, DEADLINE_RC_CR_PLAIN);
    assert_int_equal(c.deadlines.cap_pct, 20);
    config_deinit(&c);
    c = parse("deadlines: {policy: rc-cr-threshold, baseline: on-demand}\n");
    assert_int_equal(c.deadlines.rule, DEADLINE_RC_CR);
    assert_int_equal(c.deadlines.baseline, DEADLINE_ON_DEMAND);
    config_deinit(&c);
}

static void every_key_of_a_pool_is_read(void **state)
{
    (void)state;
    struct config c = parse(everything);
    assert_int_equal(c.n_pools, 2);
    const struct config_pool *base = &c.pools[0], *burst = &c.pools[1];
    assert_false(base->row.elastic);
    assert_int_equal(base->row.usd_per_hour_uusd, 3560000);
    assert_int_equal(base->n_offers, 0);
    assert_true(burst->row.elastic);
    assert_string_equal(burst->row.name, "burst");
    assert_string_equal(burst->row.provider, "aws");
    assert_string_equal(burst->row.region, "us-east-1");
    assert_int_equal(burst->row.max_nodes, 16);
    assert_int_equal(burst->row.idle_timeout_ms, 60000);
    assert_int_equal(burst->row.cooldown_ms, 120000);
    assert_int_equal(burst->row.boot_timeout_ms, 180000);
    assert_int_equal(burst->row.refusal_backoff_ms, 240000);
    assert_string_equal(setting(burst, "image"), "ami-0abc");
    assert_string_equal(setting(burst, "subnet"), "subnet-1");
    assert_string_equal(setting(burst, "security_group"), "sg-1");
    assert_string_equal(setting(burst, "iam_profile"), "arn:aws:iam::1:instance-profile/x");
    assert_string_equal(burst->endpoint, "http://127.0.0.1:4566");
    assert_string_equal(burst->metadata, "http://127.0.0.1:1338");
    assert_string_equal(burst->credentials, "/etc/belay/aws");
    assert_int_equal(burst->launches_per_minute, 300);
    assert_int_equal(burst->disk_gib, 100);
    config_deinit(&c);
}

static void offers_are_markets_by_zones_by_types_and_the_first_market_has_rank_0(void **state)
{
    (void)state;
    struct config c = parse(everything);
    const struct config_pool *p = &c.pools[1];
    assert_int_equal(p->n_offers, 8);
    for (size_t i = 0; i < p->n_offers; i++) {
        const struct offer_row *o = &p->offers[i];
        assert_int_equal(o->rank, i < 4 ? 0 : 1);
        assert_int_equal(o->market, i < 4 ? MARKET_ON_DEMAND : MARKET_SPOT);
        assert_string_equal(o->pool, "burst");
        assert_int_equal(o->total.cpus, 4);
        assert_true(o->price_uusd_h > 0 && o->price_uusd_h <= o->on_demand_uusd_h);
        for (size_t k = 0; k < i; k++)
            assert_false(str_eq(o->zone, p->offers[k].zone) && str_eq(o->type, p->offers[k].type) &&
                         o->market == p->offers[k].market);
    }
    config_deinit(&c);
}

static void the_state_directory_of_the_command_line_wins(void **state)
{
    (void)state;
    struct config c;
    struct err e;
    const char *text = "state: /srv/belay\n";
    assert_int_equal(config_parse("f", text, strlen(text), "/home/ann/b", &c, &e), 0);
    assert_string_equal(c.state_dir, "/home/ann/b");
    assert_string_equal(c.socket, "/home/ann/b/belayd.sock");
    assert_string_equal(c.store, "file:///home/ann/b/store");
    assert_int_equal(c.encryption, ENCRYPTION_NONE);
    assert_string_equal(c.key_file, "/home/ann/b/checkpoint.keys");
    config_deinit(&c);
    assert_int_equal(config_parse("f", "", 0, "/srv/50%/a b", &c, &e), 0);
    assert_string_equal(c.socket, "/srv/50%/a b/belayd.sock");
    assert_string_equal(c.store, "file:///srv/50%25/a b/store"); /* a URL */
    config_deinit(&c);
    assert_int_equal(config_parse("f", "", 0, "not/absolute", &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "absolute path"));
}

static void listen_takes_ipv6_in_brackets(void **state)
{
    (void)state;
    struct config c = parse("listen: \"[::1]:0\"\n");
    assert_string_equal(c.listen_host, "::1");
    assert_int_equal(c.listen_port, 0);
    config_deinit(&c);
}

static void budgets_are_read(void **state)
{
    (void)state;
    struct config c = parse(
        "windows:\n  night: {from: \"20:00\", to: \"06:00\"}\nbudgets:\n"
        "  nlp: {match: {team: nlp, user: ann, pool: base, job: train, labels: {project: x, b: "
        "y}}, usd_per_month: 20000,\n"
        "    at_limit: park, alert_at: [10, 100], tz: Europe/Berlin, mail: [a@example.com, b]}\n"
        "  all: {usd_per_hour: 1.5}\n  night: {usd_per_window: 2, window: night, at_limit: "
        "stop-new}\n");
    assert_int_equal(c.n_budgets, 3);
    const struct budget_options *o = &c.budgets[0].options;
    assert_string_equal(o->name, "nlp");
    assert_string_equal(o->team, "nlp");
    assert_string_equal(o->user, "ann");
    assert_string_equal(o->pool, "base");
    assert_string_equal(o->job, "train");
    assert_int_equal(o->n_labels, 2);
    assert_string_equal(o->labels[0].name, "project");
    assert_string_equal(o->labels[0].value, "x");
    assert_int_equal(o->period, BUDGET_MONTH);
    assert_int_equal(o->cap_uusd, 20000000000);
    assert_int_equal(o->at_limit, BUDGET_PARK);
    assert_int_equal(o->n_alerts, 2);
    assert_int_equal(o->alert_pct[0], 10);
    assert_int_equal(o->n_mails, 2);
    assert_string_equal(c.budgets[0].mails[0], "a@example.com");
    assert_string_equal(c.budgets[0].tz, "Europe/Berlin");
    o = &c.budgets[1].options;
    assert_true(o->period == BUDGET_HOUR && o->at_limit == BUDGET_ALERT && o->n_alerts == 3 &&
                o->alert_pct[2] == 100);
    assert_int_equal(o->cap_uusd, 1500000);
    assert_int_equal(c.budgets[2].options.period, BUDGET_WINDOW);
    assert_string_equal(c.budgets[2].window, "night");
    config_deinit(&c);
}

static void racks_are_read(void **state)
{
    (void)state;
    struct config c = parse("node_types:\n  dgx: {watts: {idle: 1800, full: 10200}}\n  epyc: "
                            "{watts: {idle: 120, full: 650}}\n"
                            "racks:\n  r1: {max_kw: 40, nodes: {dgx: \"gpu[1-3],gpu7\", epyc: "
                            "\"cpu[01-12]\"}}\n  r2: {max_kw: 17.25, pue: 1.35, nodes: {epyc: "
                            "cpu13}}\n");
    assert_int_equal(c.n_racks, 2);
    const struct rack_options *o = &c.racks[0];
    assert_string_equal(o->name, "r1");
    assert_int_equal(o->max_w, 40000);
    assert_int_equal(o->n_nodes, 2);
    assert_string_equal(o->nodes[0].names, "gpu[1-3],gpu7");
    assert_true(o->nodes[0].n == 4 && o->nodes[0].idle_w == 1800 && o->nodes[0].full_w == 10200);
    assert_true(o->nodes[1].n == 12 && o->nodes[1].idle_w == 120 && o->nodes[1].full_w == 650);
    assert_int_equal(o->pue_micro, 0);
    assert_int_equal(c.racks[1].max_w, 17250);
    assert_int_equal(c.racks[1].pue_micro, 1350000);
    config_deinit(&c);
    c = parse("node_types:\n  dgx: {watts: {idle: 1800, full: 10200}}\nracks:\n  r1: {max_kw: 40, "
              "nodes: {dgx: gpu1}, pools: {lab: {type: dgx, nodes: 8}}}\n");
    o = &c.racks[0];
    assert_int_equal(o->n_nodes, 2);
    assert_string_equal(o->nodes[0].pool, "");
    assert_string_equal(o->nodes[1].pool, "lab");
    assert_string_equal(o->nodes[1].names, "");
    assert_true(o->nodes[1].n == 8 && o->nodes[1].idle_w == 1800 && o->nodes[1].full_w == 10200);
    config_deinit(&c);
}

/* The store's place determines the price to read and write it from each pool, unless a pool sets
 * one. */
static void what_goes_between_places_has_list_prices(void **state)
{
    (void)state;
    static const char text[] =
        "store: s3://lab/belay\n"
        "store_place: aws/us-east-1\n"
        "telemetry: {forgotten_for: 7d}\n"
        "pools:\n"
        "  rack: {egress_usd_per_gib: 0.09}\n"
        "  near: {provider: aws, region: us-east-1, image: i, zones: [z], types: [g5.xlarge]}\n"
        "  next: {provider: aws, region: us-west-2, image: i, zones: [z], types: [g5.xlarge]}\n"
        "  far:\n"
        "    provider: gcp\n"
        "    region: us-central1\n"
        "    project: p\n"
        "    image: i\n"
        "    zones: [z]\n"
        "    types: [n1-standard-8]\n"
        "  told: {provider: aws, region: us-west-2, image: i, zones: [z], types: [g5.xlarge], "
        "egress_usd_per_gib: 0.01, upload_usd_per_gib: 0}\n";
    static const int64_t want[][2] = {
        {90000, 0}, {0, 0}, {20000, 20000}, {90000, 120000}, {10000, 0}};
    struct config c = parse(text), more;
    struct err e;
    assert_string_equal(c.store_provider, "aws");
    assert_string_equal(c.store_region, "us-east-1");
    assert_int_equal(c.store_uusd_gib_month, 23000);
    assert_int_equal(c.telemetry.forgotten_ms, 7LL * 86400000);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(c.pools[i].row.egress_uusd_gib, want[i][0]);
        assert_int_equal(c.pools[i].row.upload_uusd_gib, want[i][1]);
    }
    static const char pools[] = "pools:\n  next: {provider: aws, region: eu-west-1, image: i, "
                                "zones: [z], types: [g5.xlarge]}\n";
    assert_int_equal(config_parse_pools("pools.yaml", pools, strlen(pools), &c, &more, &e), 0);
    assert_int_equal(more.pools[0].row.egress_uusd_gib, 20000);
    config_deinit(&more);
    config_deinit(&c);
}

/* Only of providers with known prices. */
static void an_input_lies_in_a_known_place(void **state)
{
    (void)state;
    static const char *const bad[] = {"here/x", "lambda/us-west-1", "aws", "aws/", "aws/a b", "/x",
        "", "Store", "a-very-long-provider/x"};
    struct input in = {.provider = "gcp", .region = "r", .bytes = 7};
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(config_read_input_location(bad[i], &in, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "aws/REGION"));
        assert_string_equal(in.provider, "gcp");
    }
    assert_int_equal(config_read_input_location("azure/eastus", &in, &e), 0);
    assert_string_equal(in.provider, "azure");
    assert_string_equal(in.region, "eastus");
    assert_int_equal(config_read_input_location("store", &in, &e), 0);
    assert_string_equal(in.provider, "");
    assert_string_equal(in.region, "");
    assert_int_equal(in.bytes, 7);
}

static void a_store_costs_what_is_said_or_its_list_price(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t uusd;
    } stores[] = {{"store: file:///srv/b\n", 0}, {"store: s3://lab/p\n", 23000},
        {"store: gs://lab/p\n", 20000}, {"store: az://account/lab/p\n", 18000},
        {"store: s3://lab/p\nstore_usd_per_gib_month: 0.0125\n", 12500},
        {"store_usd_per_gib_month: 0.05\n", 50000}};
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        struct config c = parse(stores[i].text);
        assert_int_equal(c.store_uusd_gib_month, stores[i].uusd);
        assert_int_equal(c.telemetry.forgotten_ms, 30LL * 86400000);
        assert_string_equal(c.store_provider, "");
        config_deinit(&c);
    }
}

static void volumes_have_prices_by_provider_and_type(void **state)
{
    struct config c = parse(
        "volume_usd_per_gib_month:\n  aws: {gp3: 0.088, io2: 0}\n  gcp: {pd-balanced: '0.11'}\n");
    char text[4096] = "volume_usd_per_gib_month: {aws: {";
    struct err e;
    (void)state;
    assert_int_equal(c.n_volume_prices, 3);
    assert_string_equal(c.volume_prices[0].provider, "aws");
    assert_string_equal(c.volume_prices[0].type, "gp3");
    assert_int_equal(c.volume_prices[0].uusd_gib_month, 88000);
    assert_int_equal(c.volume_prices[1].uusd_gib_month, 0);
    assert_string_equal(c.volume_prices[2].provider, "gcp");
    assert_int_equal(c.volume_prices[2].uusd_gib_month, 110000);
    config_deinit(&c);
    for (int i = 0; i <= VOLUME_PRICES_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "t%d: 1,", i);
    strcat(text, "}}\n");
    assert_int_equal(config_parse("lab.yaml", text, strlen(text), NULL, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "at most 64 prices"));
}

/* Any prefix of a file gives a configuration or an error. */
static void any_prefix_of_a_file_is_read_or_refused(void **state)
{
    (void)state;
    for (size_t n = 0; n <= strlen(everything); n++) {
        struct config c;
        struct err e = {0};
        int rc = config_parse("f", everything, n, NULL, &c, &e);
        if (rc == 0)
            config_deinit(&c);
        else
            assert_true(rc == ERR_INVALID && e.kind == ERR_INVALID && e.text[0]);
    }
}

static void check_credentials(const char *text, bool of_jobs, const char *lacks)
{
    struct config c = parse(text);
    assert_int_equal(c.job_credentials, of_jobs);
    if (lacks)
        assert_non_null(strstr(c.why_node_credentials ? c.why_node_credentials : "", lacks));
    else
        assert_null(c.why_node_credentials);
    config_deinit(&c);
}

static void jobs_have_credentials_of_their_own_where_belayd_can_make_them(void **state)
{
    (void)state;
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("AZURE_CLIENT_ID");
    check_credentials("cluster: lab\n", false, NULL);
    check_credentials("store: s3://bkt\n", false, "store_role");
    check_credentials("store: s3://bkt\nstore_credentials: node\n", false, NULL);
    check_credentials("store: s3://bkt\nstore_role: arn:aws:iam::1:role/x\n", true, NULL);
    check_credentials("store: gs://bkt\n", false, "GOOGLE_APPLICATION_CREDENTIALS");
    setenv("GOOGLE_APPLICATION_CREDENTIALS", "/k.json", 1);
    check_credentials("store: gs://bkt\n", true, NULL);
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    check_credentials("store: az://acc1/cont\n", false, "AZURE_CLIENT_ID");
    setenv("AZURE_CLIENT_ID", "i", 1);
    setenv("AZURE_CLIENT_SECRET", "s", 1);
    check_credentials("store: az://acc1/cont\n", true, NULL);
    unsetenv("AZURE_CLIENT_ID");
    unsetenv("AZURE_CLIENT_SECRET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_and_visibility_are_read_or_the_default),
        cmocka_unit_test(the_order_is_read_or_the_default),
        cmocka_unit_test(limits_are_read_along_the_path),
        cmocka_unit_test(nothing_given_means_one_reserved_pool_and_the_documented_defaults),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(jobs_have_credentials_of_their_own_where_belayd_can_make_them),
        cmocka_unit_test(each_kind_of_record_has_its_age),
        cmocka_unit_test(deadlines_are_decided_as_configured),
        cmocka_unit_test(every_key_of_a_pool_is_read),
        cmocka_unit_test(offers_are_markets_by_zones_by_types_and_the_first_market_has_rank_0),
        cmocka_unit_test(the_state_directory_of_the_command_line_wins),
        cmocka_unit_test(listen_takes_ipv6_in_brackets),
        cmocka_unit_test(what_goes_between_places_has_list_prices),
        cmocka_unit_test(an_input_lies_in_a_known_place),
        cmocka_unit_test(a_store_costs_what_is_said_or_its_list_price),
        cmocka_unit_test(volumes_have_prices_by_provider_and_type),
        cmocka_unit_test(budgets_are_read),
        cmocka_unit_test(racks_are_read),
        cmocka_unit_test(any_prefix_of_a_file_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
