/* SPDX-License-Identifier: Apache-2.0
 *
 * Invalid configurations: every malformed form is reported with its line and the nearest name.
 */
#include "tests/scheduler/config_rig.h"

#include "base/buf.h"
#include <stdio.h>

static const struct refused {
    const char *text;
    const char *expected[3]; /* the error contains all of them */
} refused[] = {
    {"clustr: lab\n", {"lab.yaml:1", "unknown key", "did you mean \"cluster\"?"}},
    {"budgets:\n  a: {usd_per_month: 1, usd_per_day: 2}\n",
        {"lab.yaml:2", "a budget is of one period: there is usd_per_day already"}},
    {"budgets:\n  a: {at_limit: park}\n",
        {"lab.yaml:2",
            "a budget needs usd_per_hour, usd_per_day, usd_per_month or usd_per_window"}},
    {"budgets:\n  a b: {usd_per_day: 1}\n", {"lab.yaml:2", "is not the name of a budget"}},
    {"budgets:\n  a:\n    usd_per_day: 0\n", {"lab.yaml:3", "expected more than 0"}},
    {"budgets:\n  a:\n    usd_per_day: -1\n", {"lab.yaml:3"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    at_limit: parc\n", {"lab.yaml:4", "park", "parc"}},
    {"budgets:\n  a:\n    usd_per_window: 1\n", {"lab.yaml:", "usd_per_window goes with window"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    window: night\n",
        {"lab.yaml:4", "usd_per_window goes with window"}},
    {"windows: {night: {from: \"01:00\", to: \"02:00\"}}\nbudgets:\n  a: {usd_per_window: 1, "
     "window: nigt}\n",
        {"lab.yaml:3", "did you mean night?"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    alert_at: [80, 50]\n",
        {"lab.yaml:4", "each more than the one before"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    alert_at: [x]\n",
        {"lab.yaml:4", "expected percents"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    mail: [-x]\n", {"lab.yaml:4", "expected an address"}},
    {"budgets:\n  a:\n    usd_per_hour: 1\n    tz: Europe/Berlin\n",
        {"lab.yaml:4", "hours are those of UTC"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    match: {labels: {a b: c}}\n",
        {"lab.yaml:4", "is not the name of a label"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    match: {labels: {a: []}}\n",
        {"lab.yaml:4", "expected the label's value"}},
    {"budgets:\n  a:\n    usd_per_day: 1\n    match: {teams: a}\n",
        {"lab.yaml:4", "did you mean \"team\"?"}},
#define TYPES "node_types:\n  dgx: {watts: {idle: 2000, full: 10000}}\nracks:\n"
    {"node_types:\n  a b: {watts: {idle: 1, full: 2}}\n",
        {"lab.yaml:2", "is not the name of a type of nodes"}},
    {"node_types:\n  dgx: {}\n", {"lab.yaml:2", "a type of nodes needs watts"}},
    {"node_types:\n  dgx: {watts: {idle: 2, full: 2}}\n",
        {"lab.yaml:2", "more than the 2 at rest"}},
    {"node_types:\n  dgx: {watts: {idle: -1, full: 2}}\n", {"lab.yaml:2", "idle"}},
    {TYPES "  a b: {max_kw: 40, nodes: {dgx: n1}}\n", {"lab.yaml:4", "is not the name of a rack"}},
    {TYPES "  r: {nodes: {dgx: n1}}\n", {"lab.yaml:", "a rack needs max_kw"}},
    {TYPES "  r: {max_kw: much, nodes: {dgx: n1}}\n", {"lab.yaml:4", "a rack needs max_kw"}},
    {TYPES "  r: {max_kw: 40}\n", {"lab.yaml:", "a rack needs nodes:"}},
    {TYPES "  r: {max_kw: 40, nodes: {}}\n", {"lab.yaml:", "expected nodes:"}},
    {TYPES "  r: {max_kw: 40, pools: {a b: {type: dgx, nodes: 1}}}\n",
        {"lab.yaml:4", "is not the name of a pool"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: dgx}}\n", {"lab.yaml:4", "lab"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx}}}\n",
        {"lab.yaml:4", "how many there are places for"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 0}}}\n", {"lab.yaml:4", "nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 4097}}}\n", {"lab.yaml:4", "nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {nodes: 1}}}\n", {"lab.yaml:4", "which type of nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: [dgx], nodes: 1}}}\n",
        {"lab.yaml:4", "which type of nodes"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgy, nodes: 1}}}\n",
        {"lab.yaml:4", "is not in node_types:", "did you mean dgx?"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 1, watts: 3}}}\n",
        {"lab.yaml:4", "unknown key"}},
    {TYPES "  r: {max_kw: 40, pools: {lab: {type: dgx, nodes: 1}}}\n  s: {max_kw: 40, pools: {lab: "
           "{type: dgx, nodes: 1}}}\n",
        {"lab.yaml:5", "pool lab is in rack r already"}},
    {TYPES "  r: {max_kw: 23, pools: {lab: {type: dgx, nodes: 8}}}\n",
        {"lab.yaml:4", "draw 16.000 kW at rest", "24.000"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgy: n1}}\n",
        {"lab.yaml:4", "is not in node_types:", "did you mean dgx?"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: [n1]}}\n", {"lab.yaml:4", "expected names of hosts"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: \"n[1-\"}}\n", {"lab.yaml:4", "nodes:"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: \"n1,n[1-2]\"}}\n", {"lab.yaml:4", "named twice"}},
    {TYPES "  r: {max_kw: 40, nodes: {dgx: n1}}\n  s: {max_kw: 40, nodes: {dgx: \"n[1-2]\"}}\n",
        {"lab.yaml:5", "node n1 is in rack r already"}},
    {TYPES "  r: {max_kw: 13.999, nodes: {dgx: \"n[1-3]\"}}\n",
        {"lab.yaml:4", "draw 6.000 kW at rest", "14.000"}},
    {"pools:\n  base:\n    required_labels: [team, a b]\n",
        {"lab.yaml:3", "required_labels: expected the name of a label", "\"a b\""}},
    {"pools:\n  base: {required_labels: team}\n", {"lab.yaml:2", "required_labels"}},
    {"pools:\n  base: {required_labels: [team, {}]}\n", {"lab.yaml:2", "something else"}},
    {"\ncluster: a b\n", {"lab.yaml:2: cluster:", "\"a b\""}},
    {"cluster: [a]\n", {"lab.yaml:1: cluster:", "a list"}},
    {"cluster: a\ncluster: b\n", {"lab.yaml:2"}},
    {"- a\n", {"lab.yaml:1", "mapping"}},
    {"a: &x 1\nb: *x\n", {"lab.yaml:"}},
    {"cluster: \"unterminated\n", {"lab.yaml:"}},
    {"lease: 3 fortnights\n", {"lab.yaml:1: lease:", "3 fortnights"}},
    {"lease: 1ms\n", {"lab.yaml:1: lease:"}},
    {"lease: 0s\n", {"lab.yaml:1: lease:", "at least 1s"}},
    {"sweep: 0\n", {"lab.yaml:1: sweep:", "at least 100ms"}},
    {"busy_sweep: 0\n", {"busy_sweep:"}},
    {"price_every: 0\n", {"price_every:"}},
    {"node_certificate: 5s\n", {"node_certificate:", "at least 1m"}},
    {"api_token_lifetime: 1s\n", {"api_token_lifetime:", "at least 1m"}},
    {"log_max_per_job: much\n", {"log_max_per_job:", "none"}},
    {"log_max_per_user_day: 0\n", {"log_max_per_user_day:"}},
    {"orphan_timeout: 0\n", {"orphan_timeout:"}},
    {"retention: for ever\n", {"retention:"}},
    {"no_progress_max: -1\n", {"no_progress_max:"}},
    {"hold_in_vain: -1\n", {"hold_in_vain:"}},
    {"listen: 7443\n", {"lab.yaml:1: listen: expected HOST:PORT", "\"7443\""}},
    {"listen: :7443\n", {"listen:"}},
    {"listen: a:70000\n", {"listen:", "65535"}},
    {"listen: \"::1:7443\"\n", {"listen:", "[ADDRESS]:PORT"}},
    {"listen: \"a b:1\"\n", {"listen:"}},
    {"listen: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1\n",
        {"listen:"}},
    {"names: belay.lab\n", {"lab.yaml:1: names:", "a list"}},
    {"names:\n  - ok\n  - \"a,DNS:b\"\n", {"lab.yaml:3: names:", "a,DNS:b"}},
    {"names: [{a: b}]\n", {"names:", "not a text"}},
    {"names: [\"\"]\n", {"names:"}},
    {"names: [a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]\n", {"names:", "17 items", "16"}},
    {"server: http://plain\n", {"server:", "https://"}},
    {"server: https://\n", {"server:"}},
    {"server: 'https://a\"b'\n", {"server:"}},
    {"encryption: yes\n", {"lab.yaml:1: encryption:", "none", "required"}},
    {"key_file: lab.keys\n", {"lab.yaml:1: key_file:", "absolute"}},
    {"store: r2://bucket\n", {"store:", "gs://BUCKET", "r2://bucket"}},
    {"store: gs://bucket?region=x\n", {"lab.yaml:1: store:", "region"}},
    {"store_credentials: both\n", {"lab.yaml:1: store_credentials:", "node", "job"}},
    {"store_credentials: job\n", {"lab.yaml:1: ", "directory"}},
    {"store_credentials: job\nstore: s3://bkt\n", {"lab.yaml:1: ", "store_role is needed"}},
    {"store: s3://bkt\nstore_credentials: node\nstore_role: arn:aws:iam::1:role/x\n",
        {"lab.yaml:3: store_role:", "store_credentials: job"}},
    {"store: s3://bkt\nstore_lifetime: 1h\n",
        {"lab.yaml:2: store_lifetime:", "store_credentials: job"}},
    {"store_credentials: job\nstore: gs://bkt\nstore_lifetime: 1h\n",
        {"lab.yaml:1: ", "store_lifetime", "Google"}},
    {"store_credentials: job\nstore: s3://bkt\nstore_role: arn:aws:iam::1:role/x\nstore_sts: "
     "ftp://x\n",
        {"lab.yaml:4: store_sts:", "https://"}},
    {"store: az://account\n", {"lab.yaml:1: store:", "container", "az://ACCOUNT/CONTAINER"}},
    {"store: s3://Bucket\n", {"lab.yaml:1: store:", "Bucket"}},
    {"store: s3://bucket?regoin=x\n", {"lab.yaml:1: store:", "regoin", "region"}},
    {"store: file://relative\n", {"store:"}},
    {"store: file:///srv/50%/store\n", {"lab.yaml:1: store:", "%25"}},
    {"store: file:///srv/%00\n", {"lab.yaml:1: store:"}},
    {"state: relative\n", {"state:", "absolute", "relative"}},
    {"socket: relative\n", {"socket:", "absolute"}},
    {"socket_users: everybody\n", {"socket_users:", "everybody", "owner"}},
    {"state: \"a\\e[2J\"\n", {"state:", "found \"a?[2J\""}},
    {"socket: \"a\\nb\"\n", {"socket:", "found \"a?b\""}},
    {"pools:\n  \"a\\nb\": {}\n", {"lab.yaml:2: \"a?b\": \"a?b\" is not a pool's name"}},
    {"state: "
     "/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/"
     "0123456789/0123456789\n",
        {"socket:", "STATE/belayd.sock", "may have 96"}},
    {"socket: "
     "/01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
     "2345\n",
        {"socket:", "97 bytes long, at most 96"}},
    {"teams: [a]\n", {"lab.yaml:1: teams:", "a mapping"}},
    {"teams:\n  \"a b\": {}\n", {"lab.yaml:2", "not a team's name"}},
    {"teams:\n  a: {share: 1}\n", {"lab.yaml:2", "share", "shares"}},
    {"teams:\n  a: {shares: 0}\n", {"lab.yaml:2", "shares"}},
    {"teams:\n  a: {shares: 1, users: ann}\n", {"lab.yaml:2", "a list of names"}},
    {"teams:\n  a: {max_gpu: 1}\n", {"lab.yaml:2", "max_gpu", "max_gpus"}},
    {"teams:\n  a: {max_running: -1}\n", {"lab.yaml:2", "max_running"}},
    {"teams:\n  a: {max_usd_per_hour: much}\n", {"lab.yaml:2", "max_usd_per_hour"}},
    {"teams:\n  a:\n    users:\n      ann: {share: 1}\n", {"lab.yaml:4", "share", "shares"}},
    {"teams:\n  a:\n    users:\n      ann: {max_submitted: some}\n",
        {"lab.yaml:4", "max_submitted"}},
    {"teams:\n  a:\n    each_user: 5\n", {"lab.yaml:3", "each_user"}},
    {"teams:\n  a: {quota: -1}\n", {"lab.yaml:2", "quota"}},
    {"teams:\n  a: {quota: 4, borrow: maybe}\n", {"lab.yaml:2", "borrow", "true"}},
    {"teams:\n  a: {borrow: false}\n", {"lab.yaml:2", "borrow", "give it a quota"}},
    {"each_user: {shares: 1}\n", {"lab.yaml:1", "shares"}},
    {"teams:\n  a:\n    users: [ann, [b]]\n", {"lab.yaml:3", "a user's name"}},
    {"teams:\n  a:\n    users: [ann, ann]\n", {"lab.yaml:3", "listed twice"}},
    {"teams:\n  a:\n    users:\n      ann: many\n", {"lab.yaml:4", "many"}},
    {"teams:\n  a:\n    users:\n      ann: 1000001\n", {"lab.yaml:4", "1000000"}},
    {"priority: 3\n", {"lab.yaml:1: priority:"}},
    {"priority:\n  half_life: 1s\n", {"lab.yaml:2: half_life:", "1m"}},
    {"priority:\n  half_life: 91d\n", {"lab.yaml:2: half_life:"}},
    {"priority:\n  fair_share: -1d\n", {"lab.yaml:2: fair_share:"}},
    {"priority:\n  age_max: soon\n", {"lab.yaml:2: age_max:", "soon"}},
    {"priority:\n  size: 4000d\n", {"lab.yaml:2: size:", "10 years"}},
    {"priority:\n  cpus_per_gpu: 1.2345\n", {"lab.yaml:2: cpus_per_gpu:", "1.2345"}},
    {"priority:\n  cpus_per_gib: 1001\n", {"lab.yaml:2: cpus_per_gib:"}},
    {"priority:\n  cpus_per_gib: .5\n", {"lab.yaml:2: cpus_per_gib:"}},
    {"priority:\n  default_team: red\n", {"lab.yaml:2: default_team:", "no team \"red\""}},
    {"priority:\n  reserve: -1\n", {"lab.yaml:2: reserve:"}},
    {"priority:\n  halflife: 1d\n", {"lab.yaml:2", "halflife", "half_life"}},
    {"windows:\n  w: {days: mon-fri, from: \"20:00\"}\n", {"lab.yaml:2", "to"}},
    {"windows:\n  w: {from: \"8pm\", to: \"07:00\"}\n", {"lab.yaml:2", "time of the day", "8pm"}},
    {"windows:\n  w: {days: funday, from: \"20:00\", to: \"07:00\"}\n",
        {"lab.yaml:2", "mon-fri", "funday"}},
    {"windows:\n  w: {from: \"20:00\", to: \"07:00\", tz: ../x}\n", {"lab.yaml:2", "time zone"}},
    {"windows:\n  w: {from: \"20:00\", to: \"07:00\", zone: UTC}\n", {"lab.yaml:2", "zone"}},
    {"windows:\n  a/b: {from: \"20:00\", to: \"07:00\"}\n", {"lab.yaml:2", "name of a window"}},
    {"retries: {failed: many}\n", {"lab.yaml:1", "a number or unlimited"}},
    {"retries: {failed: 1001}\n", {"lab.yaml:1", "1001"}},
    {"retries: {crashed: 1}\n", {"lab.yaml:1", "crashed"}},
    {"retries_max: 3\n", {"lab.yaml:1", "retries_max"}},
    {"telemetry: {minutes: 1m}\n", {"lab.yaml:1", "expected a time from 3600s"}},
    {"telemetry: {diagnose: {blocked: 0}}\n", {"lab.yaml:1", "blocked"}},
    {"telemetry: {diagnose: {over: 2d}}\n", {"lab.yaml:1", "expected a time from 1s"}},
    {"telemetry: {diagnose: {trhead: 7}}\n", {"lab.yaml:1", "thread"}},
    {"telemetry: {advise: {idle_memory: 100}}\n", {"lab.yaml:1", "idle_memory"}},
    {"telemetry: {advise: {idle: 1s}}\n", {"lab.yaml:1", "idle"}},
    {"telemetry: {days: 1d}\n", {"lab.yaml:1", "days"}},
    {"deadlines: {policy: planed}\n", {"lab.yaml:1", "planned"}},
    {"deadlines: {look: 1ms}\n", {"lab.yaml:1", "expected a time from 10ms"}},
    {"deadlines: {look: 20m, step: 10m}\n", {"lab.yaml:1", "not shorter than look"}},
    {"deadlines: {work_margin: 1000}\n", {"lab.yaml:1", "work_margin"}},
    {"deadlines: {cap: 1001}\n", {"lab.yaml:1", "cap"}},
    {"deadlines: {baseline: planned}\n", {"lab.yaml:1", "uniform"}},
    {"pools:\n  b: {retries: {failed: -1}}\n", {"lab.yaml:2", "-1"}},
    {"qos:\n  a/b: {}\n", {"lab.yaml:2", "name of a QOS"}},
    {"qos:\n  a: {boost: much}\n", {"lab.yaml:2", "much"}},
    {"qos:\n  a: {preempts: b}\n  b: {}\n", {"lab.yaml:2", "preempts"}},
    {"qos:\n  a: {preempts: [b, c]}\n  b: {}\n", {"lab.yaml:2", "name of a QOS of this file", "c"}},
    {"qos:\n  a: {preempts: [[b]]}\n  b: {}\n", {"lab.yaml:2", "found something else"}},
    {"qos:\n  a: {preempts: [a]}\n", {"lab.yaml:2", "a preempts a: no QOS may preempt itself"}},
    {"qos:\n  a: {preempts: [d, b]}\n  b: {preempts: [c]}\n  c: {preempts: [d, a]}\n  d: {}\n",
        {"lab.yaml:2", "a preempts b, which preempts c, which preempts a: no QOS may preempt "
                       "itself, directly or through others"}},
    {"qos:\n  a: {bost: 1d}\n", {"lab.yaml:2", "boost"}},
    {"pools: [a]\n", {"pools:", "a mapping"}},
    {"pools:\n  b: 4\n", {"lab.yaml:2: b:", "a mapping"}},
    {"pools:\n  \"b ad\": {}\n", {"lab.yaml:2", "not a pool's name"}},
    {"pools:\n  b: {kind: elastik}\n", {"kind:", "elastik", "nearest: elastic"}},
    {"pools:\n  b: {kind: elastic}\n", {"lab.yaml:2: b:", "needs a provider"}},
    {"pools:\n  b: {provider: awz}\n", {"provider:", "aws"}},
    {"pools:\n  b: {kind: reserved, provider: aws}\n", {"provider:", "a reserved pool has none"}},
    {"pools:\n  b: {usd_per_hour: cheap}\n", {"usd_per_hour:", "cheap"}},
    {"pools:\n  b: {usd_per_hour: -1}\n", {"usd_per_hour:"}},
    {"pools:\n  b: {max_nodes: 4}\n", {"unknown key \"max_nodes\""}},
    {"pools:\n  b: {idle_timeout: 1m}\n", {"unknown key", "idle_timeout"}},
    {"pools:\n  b:\n    provider: aws\n", {"lab.yaml:2: b:", "\"region\" is missing"}},
    {"pools:\n  b:\n    provider: aws\n    foo: 1\n", {"lab.yaml:4: unknown key \"foo\""}},
    {"pools:\n  b: {kind: elastic, foo: 1}\n", {"lab.yaml:2: unknown key \"foo\""}},
    {"pools:\n  b: {kind: elastic, region: r, hosts: [a], project: p, ssh_key: k, cpus: 1}\n",
        {"needs a provider"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], foo: 1, types: [{type: x1, "
     "memory: 1G}]}\n",
        {"unknown key \"foo\""}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x1, foo: 1}]}\n",
        {"unknown key \"foo\""}},
    {"windows:\n  n: {from: \"20:00\"}\nfoo: 1\n", {"lab.yaml:3: unknown key \"foo\""}},
    {"windows:\n  n: {from: \"20:00\", foo: 1}\n", {"unknown key \"foo\""}},
    {"webhooks:\n  a: {events: [end]}\nfoo: 1\n", {"lab.yaml:3: unknown key \"foo\""}},
    {"budgets:\n  a: {foo: 1}\n", {"unknown key \"foo\""}},
    {"budgets:\n  a: {match: {user: u}, window: w, at_limit: alert, alert_at: [1], mail: [a], tz: "
     "UTC}\n",
        {"a budget needs usd_per_hour"}},
    {"node_types:\n  dgx: {foo: 1}\n", {"unknown key \"foo\""}},
    {"racks:\n  r: {nodes: {}, pools: {}}\n", {"needs max_kw"}},
    {"racks:\n  r: {foo: 1}\n", {"unknown key \"foo\""}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x1, memory: 1G, "
     "cpus: 2}]}\n",
        {"usd_per_hour"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{memory: 1G}]}\n",
        {"type"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x1, memory: "
     "big, cpus: 2, usd_per_hour: 1}]}\n",
        {"memory"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: g5.xlarge, gpu: "
     "1}]}\n",
        {"gpus"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: g5.xlarge}, "
     "g5.xlarge]}\n",
        {"twice"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [[g5.xlarge]]}\n",
        {"types"}},
    {"pools:\n  b: {provider: aws, region: r}\n", {"image"}},
    {"pools:\n  b: {provider: aws, region: r, image: i}\n", {"zones and types"}},
    {"providers: [aws]\n", {"lab.yaml:1: providers:", "a mapping"}},
    {"providers:\n  awz: {}\n", {"lab.yaml:2", "did you mean \"aws\"?"}},
    {"providers:\n  aws: ami-1\n", {"lab.yaml:2: aws:", "a mapping"}},
    {"store_place: us-east-1\n", {"lab.yaml:1: store_place:", "aws/us-east-1"}},
    {"store_place: awz/us-east-1\n", {"store_place:", "\"awz/us-east-1\""}},
    {"store_place: aws/\n", {"store_place:", "provider and region"}},
    {"store_place: /us-east-1\n", {"store_place:", "provider and region"}},
    {"store_place: averyveryverylongprovider/x\n", {"store_place:", "provider and region"}},
    {"store_place: \"aws/us east\"\n", {"store_place:", "provider and region"}},
    {"store_usd_per_gib_month: -1\n", {"store_usd_per_gib_month:"}},
    {"store_usd_per_gib_month: 1000001\n", {"store_usd_per_gib_month:", "at most"}},
    {"store_usd_per_gib_month: cheap\n", {"store_usd_per_gib_month:"}},
    {"volume_usd_per_gib_month: 1\n", {"volume_usd_per_gib_month:"}},
    {"volume_usd_per_gib_month: {gp3: 1}\n", {"gp3"}},
    {"volume_usd_per_gib_month: {aws: 1}\n", {"aws:"}},
    {"volume_usd_per_gib_month: {aws: {gp3: cheap}}\n", {"gp3:", "what a GiB costs a month"}},
    {"volume_usd_per_gib_month: {aws: {gp3: -1}}\n", {"gp3:"}},
    {"volume_usd_per_gib_month: {aws: {gp3: 1000001}}\n", {"gp3:"}},
    {"volume_usd_per_gib_month: {aws: {gp3: [1]}}\n", {"gp3:"}},
    {"volume_usd_per_gib_month: {aws: {\"a type\": 1}}\n",
        {"expected the provider's word", "a type"}},
    {"telemetry: {forgotten_for: 10ms}\n", {"forgotten_for"}},
    {"telemetry: {forgotten_for: soon}\n", {"forgotten_for"}},
    {"pools:\n  b: {upload_usd_per_gib: -1}\n", {"upload_usd_per_gib:"}},
    {"pools:\n  b: {egress_usd_per_gib: much}\n", {"egress_usd_per_gib:"}},
    {"providers:\n  aws:\n    provider: gcp\n", {"lab.yaml:3: provider:", "each pool"}},
    {"providers:\n  aws: {kind: elastic}\n", {"lab.yaml:2: kind:", "each pool"}},
    {"providers:\n  aws:\n    regoin: r\npools:\n  b: {provider: aws, region: r}\n",
        {"lab.yaml:3: unknown key \"regoin\""}},
    {"providers:\n  aws:\n    regoin: r\n" POOL, {"lab.yaml:3", "did you mean \"region\"?"}},
    {"providers:\n  aws: {region: r}\npools:\n  b: {provider: [aws]}\n", {"lab.yaml:4: provider:"}},
    {"providers:\n  aws: {region: r}\npools:\n  b: aws\n", {"lab.yaml:4: b:", "a mapping"}},
    {HOSTS_POOL "    cpus: 8\n", {"\"memory\" is missing"}},
    {HOSTS_POOL "    memory: 8G\n", {"needs cpus"}},
    {HOSTS_POOL "    cpus: 8\n    memory: much\n", {"memory:", "much"}},
    {HOSTS_POOL "    cpus: 8\n    memory: 8G\n    max_nodes: 4\n", {"max_nodes:", "at most 3"}},
    {HOSTS_POOL "    cpus: 8\n    memory: 8G\n    region: here\n", {"unknown key \"region\""}},
    {HOSTS_POOL "    cpus: 8\n    memory: 8G\n    zones: [z]\n", {"unknown key \"zones\""}},
    {"pools:\n  b: {provider: static, user: u, key: /k, known_hosts: /h}\n",
        {"hosts", "needs the machines"}},
    {"pools:\n  b: {provider: static, hosts: [\"a b\"]}\n", {"hosts:", "without blanks"}},
    {LAMBDA_POOL, {"needs types"}},
    {LAMBDA_POOL "    types: [gpu_1x_a11]\n", {"did you mean \"gpu_1x_a10\"?"}},
    {LAMBDA_POOL "    types: [gpu_1x_a10]\n    zones: [us-west-2]\n", {"unknown key \"zones\""}},
    {LAMBDA_POOL "    types: [gpu_1x_a10]\n    markets: [spot]\n", {"unknown key \"markets\""}},
    {"pools:\n  b: {provider: lambda, region: r}\n", {"ssh_key", "needs the name of an SSH key"}},
    {POOL "    max_nodes: 10001\n", {"lab.yaml:8: max_nodes:", "10000"}},
    {POOL "    markets: [spott]\n", {"markets:", "did you mean \"spot\"?"}},
    {POOL "    markets: [spot, spot]\n", {"lab.yaml:8: markets:", "\"spot\" is listed twice"}},
    {POOL "    endpoint: ftp://x\n", {"endpoint:", "http"}},
    {POOL "    metadata: https://x\n", {"metadata:", "http://"}},
    {POOL "    boot_timeout: 0\n", {"boot_timeout:"}},
    {POOL "    refusal_backoff: 5ms\n", {"refusal_backoff:", "at least 10ms"}},
    {POOL "    disk_gib: 65537\n", {"disk_gib:"}},
    {POOL "    launches_per_minute: 0\n", {"launches_per_minute:"}},
    {POOL "    regoin: x\n", {"lab.yaml:8", "did you mean \"region\"?"}},
    {GCP_POOL "[n1-standard-8+t5]\n", {"lab.yaml:9: types:", "\"t5\"", "(nearest: t4)"}},
    {GCP_POOL "[n1-standard-12+t4]\n", {"did you mean \"n1-standard-16\"?"}},
    {GCP_POOL "[n1-standard-16+v100]\n", {"at most 12"}},
    {GCP_POOL "[n2-standard-8+t4]\n", {"only N1"}},
    {GCP_POOL "[{type: n1-standard-8+t5, cpus: 8, memory: 30G, usd_per_hour: 1}]\n",
        {"type:", "nearest: t4"}},
    {GCP_POOL "[{type: \"n1 8+t4\", cpus: 8, memory: 30G, usd_per_hour: 1}]\n",
        {"not an instance type of the provider"}},
    {"pools:\n  b: {provider: aws, region: r, image: i, zones: [z], types: [{type: x+t4, memory: "
     "1G, cpus: 2, usd_per_hour: 1}]}\n",
        {"not an instance type of the provider"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [z]\n    types: "
     "[g5.xlargo]\n",
        {"lab.yaml:7: types:", "\"g5.xlargo\" is not known", "did you mean \"g5.xlarge\"?"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [z, z]\n    types: "
     "[g5.xlarge]\n",
        {"lab.yaml:6: zones:", "listed twice"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [\"z z\"]\n    "
     "types: [g5.xlarge]\n",
        {"zones:", "not a name"}},
    {"pools:\n  b:\n    provider: aws\n    region: r\n    image: i\n    zones: [[z]]\n    types: "
     "[g5.xlarge]\n",
        {"zones:", "expected a word"}},
};

static void what_is_malformed_is_refused_with_its_line_and_the_nearest_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct refused *r = &refused[i];
        struct config c;
        struct err e = {0};
        int rc = config_parse("lab.yaml", r->text, strlen(r->text), NULL, &c, &e);
        if (rc != ERR_INVALID)
            fail_msg("taken, or refused as %d: %s", rc, r->text);
        for (size_t k = 0; k < 3 && r->expected[k]; k++)
            if (!strstr(e.text, r->expected[k]))
                fail_msg("\"%s\" is not in \"%s\", for\n%s", r->expected[k], e.text, r->text);
    }
}

static void too_many_pools_and_offers_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    struct config c;
    struct err e;
    buf_adds(&text, "pools:\n");
    for (int i = 0; i <= CONFIG_POOLS_MAX; i++)
        buf_printf(&text, "  p%d: {}\n", i);
    assert_int_equal(config_parse("f", text.data, text.len, NULL, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "at most 64 pools, found 65"));

    buf_clear(&text);
    buf_adds(&text, "pools:\n");
    for (int i = 0; i < CONFIG_POOLS_MAX; i++) {
        buf_printf(&text,
            "  p%d: {provider: aws, region: r, image: i, types: [g5.xlarge, g6.xlarge], zones: [",
            i);
        for (int z = 0; z < 32; z++)
            buf_printf(&text, "z%d,", z);
        buf_adds(&text, "]}\n");
    }
    assert_int_equal(config_parse("f", text.data, text.len, NULL, &c, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "more than 4096 offers"));
    assert_non_null(strstr(e.text, "f:34:")); /* 32 pools of 128 fit */
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_malformed_is_refused_with_its_line_and_the_nearest_name),
        cmocka_unit_test(too_many_pools_and_offers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
