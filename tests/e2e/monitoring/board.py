# SPDX-License-Identifier: Apache-2.0
"""What each query of the board (packaging/monitoring) has to answer, computed by hand from two sets
of data: a busy cluster, and a quiet one in which the same query has another result.

Series have decoys: other states, kinds and markets that a query leaves out, several series of each
group that it sums, and counters whose pace changes before the window that it looks at.
"""

# ---- the last six hours: a sample each minute, results at the end ----

BUSY = {
    'belay_jobs{state="running",team="t",qos="high"}': "2x360",
    'belay_jobs{state="running",team="t"}': "1x360",
    'belay_jobs{state="running",team="u"}': "4x360",
    'belay_jobs{state="saving",team="u"}': "100x360",
    'belay_jobs{state="pending",reason="capacity",team="t"}': "5x360",
    'belay_jobs{state="pending",reason="capacity",team="u"}': "6x360",
    'belay_jobs{state="pending",reason="hold",team="u"}': "20x360",
    'belay_cost_dollars_per_hour{pool="p",market="spot"}': "1.5x360",
    'belay_cost_dollars_per_hour{pool="q",market="on-demand"}': "2.25x360",
    # Of each minute's 20 jobs, 10 waited at most 10 s and 19 at most 60 s; two teams, half each.
    'belay_job_queue_wait_seconds_bucket{team="t",le="10"}': "0+5x360",
    'belay_job_queue_wait_seconds_bucket{team="t",le="60"}': "0+10x360",
    'belay_job_queue_wait_seconds_bucket{team="t",le="+Inf"}': "0+10x360",
    'belay_job_queue_wait_seconds_bucket{team="u",le="10"}': "0+5x360",
    'belay_job_queue_wait_seconds_bucket{team="u",le="60"}': "0+9x360",
    'belay_job_queue_wait_seconds_bucket{team="u",le="+Inf"}': "0+10x360",
    # Pool p: 19 of 20 start within 30 s. Pool q: 18 of 20 within 30 s and all within 60 s.
    'belay_job_start_seconds_bucket{pool="p",market="spot",le="30"}': "0+9x360",
    'belay_job_start_seconds_bucket{pool="p",market="spot",le="60"}': "0+10x360",
    'belay_job_start_seconds_bucket{pool="p",market="spot",le="+Inf"}': "0+10x360",
    'belay_job_start_seconds_bucket{pool="p",market="on-demand",le="30"}': "0+10x360",
    'belay_job_start_seconds_bucket{pool="p",market="on-demand",le="60"}': "0+10x360",
    'belay_job_start_seconds_bucket{pool="p",market="on-demand",le="+Inf"}': "0+10x360",
    'belay_job_start_seconds_bucket{pool="q",market="spot",le="30"}': "0+18x360",
    'belay_job_start_seconds_bucket{pool="q",market="spot",le="60"}': "0+20x360",
    'belay_job_start_seconds_bucket{pool="q",market="spot",le="+Inf"}': "0+20x360",
    'belay_attempts_ended_total{pool="p",market="spot",end="succeeded"}': "0+2x360",
    'belay_attempts_ended_total{pool="q",market="spot",end="succeeded"}': "0+1x360",
    'belay_attempts_ended_total{pool="p",market="spot",end="reclaimed"}': "0x340 0+1x19",
    'belay_deadline_jobs{state="pending",machines="on-demand",team="t"}': "1x360",
    'belay_deadline_jobs{state="pending",machines="on-demand",team="u"}': "2x360",
    'belay_deadline_jobs{state="running",machines="spot",team="u"}': "5x360",
    'belay_reclaim_notices_total{pool="p",market="spot"}': "0+1x360",
    'belay_reclaim_notices_total{pool="p",market="on-demand"}': "7+0x360",
    'belay_reclaim_notices_total{pool="q",market="spot"}': "0x329 0+2x30",
    # Of each minute's 20 saves, 10 ended within 5 s of the notice and 19 within 25 s.
    'belay_notice_saved_seconds_bucket{pool="p",market="spot",le="5"}': "0+6x360",
    'belay_notice_saved_seconds_bucket{pool="p",market="spot",le="25"}': "0+10x360",
    'belay_notice_saved_seconds_bucket{pool="p",market="spot",le="+Inf"}': "0+10x360",
    'belay_notice_saved_seconds_bucket{pool="q",market="spot",le="5"}': "0+4x360",
    'belay_notice_saved_seconds_bucket{pool="q",market="spot",le="25"}': "0+9x360",
    'belay_notice_saved_seconds_bucket{pool="q",market="spot",le="+Inf"}': "0+10x360",
    'belay_checkpoint_bytes_total{pool="p",market="spot"}': "0+60000x360",
    'belay_checkpoint_bytes_total{pool="q",market="spot"}': "0+30000x360",
    'belay_checkpoint_stored_bytes_total{pool="p",market="spot"}': "0+6000x360",
    'belay_checkpoint_stored_bytes_total{pool="q",market="spot"}': "0+3000x360",
    # Dollars that have an exact binary form, so that sums are exact.
    'belay_cost_dollars_total{pool="p",market="spot",kind="useful"}': "0+0.5x360",
    'belay_cost_dollars_total{pool="p",market="spot",kind="lost"}': "0+0.125x360",
    'belay_cost_dollars_total{pool="p",market="on-demand",kind="useful"}': "0+0.25x360",
    'belay_cost_dollars_total{pool="q",market="spot",kind="useful"}': "0x330 0+1x29",
    'belay_budget_dollars{budget="b"}': "100x360",
    'belay_budget_left_dollars{budget="b"}': "25x360",
    'belay_budget_dollars{budget="c"}': "200x360",
    'belay_budget_left_dollars{budget="c"}': "-50x360",
    'belay_nodes{pool="p",market="spot",state="up"}': "3x360",
    'belay_nodes{pool="p",market="spot",state="up",drained="operator"}': "2x360",
    'belay_nodes{pool="p",market="on-demand",state="up"}': "1x360",
    'belay_nodes{pool="p",market="spot",state="lost"}': "4x360",
    'belay_gpus{pool="p",market="spot"}': "12x360",
    'belay_gpus{pool="p",market="on-demand"}': "4x360",
    'belay_gpus{pool="q",market="spot"}': "0x360",
    'belay_gpus_used{pool="p",market="spot"}': "7x360",
    'belay_gpus_used{pool="p",market="on-demand"}': "1x360",
    'belay_gpus_used{pool="q",market="spot"}': "0x360",
    'belay_node_gpu_busy_ratio{node="n",pool="p"}': "0.75x360",
    'belay_node_gpu_busy_ratio{node="m",pool="p"}': "0.25x360",
    'belay_node_gpu_busy_ratio{node="o",pool="q"}': "1x360",
    'belay_node_gpu_power_watts{node="n",pool="p"}': "700x360",
    'belay_node_gpu_power_watts{node="m",pool="p"}': "300x360",
    'belay_node_gpu_power_watts{node="o",pool="q"}': "50x360",
    'belay_node_gpu_temperature_celsius{node="n",pool="p"}': "81x360",
    'belay_node_gpu_temperature_celsius{node="m",pool="p"}': "60x360",
    'belay_node_gpu_temperature_celsius{node="o",pool="q"}': "45x360",
    'belay_node_gpu_memory_used_bytes{node="n",pool="p"}': "60x360",
    'belay_node_gpu_memory_used_bytes{node="m",pool="p"}': "20x360",
    'belay_node_gpu_memory_bytes{node="n",pool="p"}': "80x360",
    'belay_node_gpu_memory_bytes{node="m",pool="p"}': "80x360",
    'belay_offer_price_dollars_per_hour{pool="p",zone="a",type="g5",market="spot"}': "0.5x360",
    'belay_offer_price_dollars_per_hour{pool="p",zone="b",type="g5",market="spot"}': "0.75x360",
    'belay_offer_price_dollars_per_hour{pool="p",zone="a",type="g5",market="on-demand"}': "2x360",
    'belay_offer_refusals_total{pool="p",zone="a",type="g5",market="spot"}': "0+1x360",
    'belay_offer_refusals_total{pool="p",zone="a",type="g5",market="on-demand"}': "0+2x360",
    'belay_offer_refusals_total{pool="p",zone="b",type="g5",market="spot"}': "9x360",
    'belay_rack_watts{rack="r1"}': "3000x360",
    'belay_rack_max_watts{rack="r1"}': "4000x360",
    'belay_rack_watts{rack="r2"}': "500x360",
    'belay_rack_max_watts{rack="r2"}': "4000x360",
    'belay_rack_watts{rack="r3"}': "1000x360",
    'belay_rack_max_watts{rack="r3"}': "4000x360",
    'belay_rack_pue{rack="r1"}': "1.5x360",
    'belay_rack_pue{rack="r3"}': "1.25x360",
    'belay_node_log_lag_seconds{node="n",pool="p"}': "30x360",
    'belay_node_log_lag_seconds{node="m",pool="p"}': "90x360",
    'belay_node_log_lag_seconds{node="o",pool="q"}': "5x360",
    'belay_node_log_lag_bytes{node="n",pool="p"}': "1000x360",
    'belay_node_log_lag_bytes{node="m",pool="p"}': "500x360",
    'belay_node_log_lag_bytes{node="o",pool="q"}': "7x360",
    # Of each 100 commits, 50 take at most 1 ms and 99 at most 5 ms; of decisions likewise.
    'belay_commit_seconds_bucket{le="0.25"}': "0+50x360",
    'belay_commit_seconds_bucket{le="0.5"}': "0+99x360",
    'belay_commit_seconds_bucket{le="+Inf"}': "0+100x360",
    'belay_tick_seconds_bucket{le="0.25"}': "0+99x360",
    'belay_tick_seconds_bucket{le="0.5"}': "0+100x360",
    'belay_tick_seconds_bucket{le="+Inf"}': "0+100x360",
    'belay_api_request_seconds_count{method="GET",route="/a",status="200"}': "0+540x360",
    'belay_api_request_seconds_count{method="GET",route="/a",status="404"}': "0+60x360",
    'belay_api_request_seconds_count{method="GET",route="/b",status="500"}': "0+120x360",
    'belay_api_request_seconds_count{method="POST",route="/b",status="200"}': "0+180x360",
    'belay_api_request_seconds_count{method="GET",route="/c",status="200"}': "0+240x360",
    'belay_api_request_seconds_count{method="GET",route="/d",status="200"}': "0+300x360",
    'belay_api_request_seconds_count{method="GET",route="/e",status="404"}': "0+360x360",
    'belay_api_request_seconds_count{method="GET",route="/f",status="200"}': "0+420x360",
    'belay_api_request_seconds_count{method="GET",route="/g",status="200"}': "0+480x360",
    'belay_api_request_seconds_count{method="GET",route="/h",status="204"}': "0+60x360",
}

QUIET = {
    'belay_jobs{state="running",team="t"}': "0x360",
    'belay_jobs{state="running",team="u"}': "1x360",
    'belay_jobs{state="pending",reason="hold",team="u"}': "0x360",
    'belay_cost_dollars_per_hour{pool="p",market="spot"}': "0x360",
    'belay_job_queue_wait_seconds_bucket{team="t",le="10"}': "0+20x360",
    'belay_job_queue_wait_seconds_bucket{team="t",le="60"}': "0+20x360",
    'belay_job_queue_wait_seconds_bucket{team="t",le="+Inf"}': "0+20x360",
    # Slow starts were an hour ago.
    'belay_job_start_seconds_bucket{pool="p",market="spot",le="30"}': "0+5x300 1520+20x59",
    'belay_job_start_seconds_bucket{pool="p",market="spot",le="+Inf"}': "0+9x300 2720+20x59",
    'belay_attempts_ended_total{pool="p",market="spot",end="succeeded"}': "0+9x300 2700x59",
    'belay_deadline_jobs{state="running",machines="free",team="t"}': "0x360",
    'belay_reclaim_notices_total{pool="p",market="spot"}': "0+9x280 2520x79",
    'belay_notice_saved_seconds_bucket{pool="p",market="spot",le="5"}': "0+20x360",
    'belay_notice_saved_seconds_bucket{pool="p",market="spot",le="25"}': "0+20x360",
    'belay_notice_saved_seconds_bucket{pool="p",market="spot",le="+Inf"}': "0+20x360",
    'belay_checkpoint_bytes_total{pool="p",market="spot"}': "0+60000x340 20400000x19",
    'belay_checkpoint_stored_bytes_total{pool="p",market="spot"}': "0+6000x340 2040000x19",
    'belay_cost_dollars_total{pool="p",market="spot",kind="idle"}': "0+0.25x360",
    'belay_budget_dollars{budget="b"}': "100x360",
    'belay_budget_left_dollars{budget="b"}': "100x360",
    'belay_nodes{pool="p",market="spot",state="up"}': "1x360",
    'belay_gpus{pool="p",market="spot"}': "8x360",
    'belay_gpus_used{pool="p",market="spot"}': "0x360",
    'belay_node_gpu_busy_ratio{node="n",pool="p"}': "0x360",
    'belay_node_gpu_power_watts{node="n",pool="p"}': "60x360",
    'belay_node_gpu_temperature_celsius{node="n",pool="p"}': "30x360",
    'belay_node_gpu_memory_used_bytes{node="n",pool="p"}': "0x360",
    'belay_node_gpu_memory_bytes{node="n",pool="p"}': "80x360",
    'belay_offer_price_dollars_per_hour{pool="p",zone="a",type="g5",market="spot"}': "0.25x360",
    'belay_offer_refusals_total{pool="p",zone="a",type="g5",market="spot"}': "0+1x280 280x79",
    'belay_rack_watts{rack="r1"}': "1000x360",
    'belay_rack_max_watts{rack="r1"}': "4000x360",
    'belay_node_log_lag_seconds{node="n",pool="p"}': "0x360",
    'belay_node_log_lag_bytes{node="n",pool="p"}': "0x360",
    'belay_commit_seconds_bucket{le="0.25"}': "0+99x360",
    'belay_commit_seconds_bucket{le="0.5"}': "0+100x360",
    'belay_commit_seconds_bucket{le="+Inf"}': "0+100x360",
    'belay_tick_seconds_bucket{le="0.25"}': "0+50x360",
    'belay_tick_seconds_bucket{le="0.5"}': "0+99x360",
    'belay_tick_seconds_bucket{le="+Inf"}': "0+100x360",
    'belay_api_request_seconds_count{method="GET",route="/a",status="200"}': "0+60x360",
    'belay_api_request_seconds_count{method="GET",route="/a",status="404"}': "0+60x350 21000x9",
}

# ---- the last thirty days: a sample each hour ----

BUSY_DAYS = {
    # A quarter of the on-demand price in the first half, three quarters in the second: a half.
    'belay_cost_dollars_total{pool="p",market="spot",kind="useful"}': "0+0.25x360 90.5+0.5x359",
    'belay_cost_dollars_total{pool="q",market="spot",kind="idle"}': "0x360 0.25+0.25x359",
    'belay_cost_on_demand_dollars_total{pool="p",market="spot",kind="useful"}': "0+0.5x720",
    'belay_cost_on_demand_dollars_total{pool="q",market="spot",kind="idle"}': "0+0.5x720",
    # In the last week three of four are saved, before it none.
    'belay_reclaimed_attempts_total{pool="p",market="spot",saved="yes"}': "0x552 2+2x167",
    'belay_reclaimed_attempts_total{pool="q",market="spot",saved="yes"}': "0x552 1+1x167",
    'belay_reclaimed_attempts_total{pool="p",market="spot",saved="no"}': "0+1x720",
    'belay_lost_work_seconds_total{pool="p",market="spot"}': "0+10x720",
    'belay_lost_work_seconds_total{pool="q",market="spot"}': "0+5x720",
}

QUIET_DAYS = {
    'belay_cost_dollars_total{pool="p",market="on-demand",kind="useful"}': "0+0.5x720",
    'belay_cost_on_demand_dollars_total{pool="p",market="on-demand",kind="useful"}': "0+0.5x720",
    'belay_reclaimed_attempts_total{pool="p",market="spot",saved="yes"}': "9x720",
    'belay_reclaimed_attempts_total{pool="p",market="spot",saved="no"}': "0+1x720",
    'belay_lost_work_seconds_total{pool="p",market="spot"}': "0+10x500 5000x219",
}

# Interval of the samples, time of the evaluation, the two sets of data.
MINUTES = ("1m", "6h", BUSY, QUIET)
DAYS = ("1h", "30d", BUSY_DAYS, QUIET_DAYS)

# ---- results ----

PRICE = '{pool="p",zone="%s",type="g5",market="spot"}'

# Panel -> of each of its queries, by its refId: the data, the result when busy, and when quiet.
# {} without a value: no series at all.
EXPECTED = {
    "Running": {"A": (MINUTES, {"{}": 7}, {"{}": 1})},
    "Waiting": {"A": (MINUTES, {"{}": 31}, {"{}": 0})},
    "Cost per hour": {"A": (MINUTES, {"{}": 3.75}, {"{}": 0})},
    "Saved against on-demand": {"A": (DAYS, {"{}": 0.5}, {"{}": 0})},
    "Reclaims saved in time": {"A": (DAYS, {"{}": 0.75}, {"{}": 0})},
    "Work lost": {"A": (DAYS, {"{}": 15 * 168}, {"{}": 0})},
    "What waiting jobs wait for": {
        "A": (
            MINUTES,
            {'{reason="capacity"}': 11, '{reason="hold"}': 20},
            {'{reason="hold"}': 0},
        )
    },
    "Running jobs by team": {
        "A": (MINUTES, {'{team="t"}': 3, '{team="u"}': 4}, {'{team="t"}': 0, '{team="u"}': 1})
    },
    "Wait for a place": {
        "A": (MINUTES, {"{}": 10}, {"{}": 5}),
        "B": (MINUTES, {"{}": 60}, {"{}": 9.5}),
    },
    # Pool q: nine tenths within 30 s, and the middle of the other tenth.
    "Start on a node": {
        "A": (
            MINUTES,
            {'{pool="p"}': 30, '{pool="q"}': 45},
            {'{pool="p"}': 28.5},
        )
    },
    "How attempts end": {
        "A": (
            MINUTES,
            {'{end="succeeded"}': 45, '{end="reclaimed"}': 15},
            {'{end="succeeded"}': 0},
        )
    },
    "Jobs with a time to finish by": {
        "A": (
            MINUTES,
            {'{state="pending",machines="on-demand"}': 3, '{state="running",machines="spot"}': 5},
            {'{state="running",machines="free"}': 0},
        )
    },
    "Notices": {"A": (MINUTES, {'{pool="p"}': 60, '{pool="q"}': 60}, {'{pool="p"}': 0})},
    "From a notice to the end of the save": {
        "A": (MINUTES, {"{}": 5}, {"{}": 2.5}),
        "B": (MINUTES, {"{}": 25}, {"{}": 4.75}),
    },
    "Bytes of checkpoints": {
        "A": (MINUTES, {"{}": 1500}, {"{}": 0}),
        "B": (MINUTES, {"{}": 150}, {"{}": 0}),
    },
    "Cost by kind": {
        "A": (
            MINUTES,
            {'{kind="useful"}': 74, '{kind="lost"}': 7.5},
            {'{kind="idle"}': 15},
        )
    },
    "Cost by pool and market": {
        "A": (
            MINUTES,
            {
                '{pool="p",market="spot"}': 37.5,
                '{pool="p",market="on-demand"}': 15,
                '{pool="q",market="spot"}': 29,
            },
            {'{pool="p",market="spot"}': 15},
        )
    },
    "Left of budgets": {
        "A": (MINUTES, {'{budget="b"}': 0.25, '{budget="c"}': -0.25}, {'{budget="b"}': 1})
    },
    "Nodes": {
        "A": (
            MINUTES,
            {
                '{pool="p",market="spot",state="up"}': 5,
                '{pool="p",market="on-demand",state="up"}': 1,
                '{pool="p",market="spot",state="lost"}': 4,
            },
            {'{pool="p",market="spot",state="up"}': 1},
        )
    },
    "GPUs that jobs have": {"A": (MINUTES, {'{pool="p"}': 0.5}, {'{pool="p"}': 0})},
    "GPUs that are busy": {"A": (MINUTES, {'{pool="p"}': 0.5, '{pool="q"}': 1}, {'{pool="p"}': 0})},
    "Prices of spot offers": {
        "A": (MINUTES, {PRICE % "a": 0.5, PRICE % "b": 0.75}, {PRICE % "a": 0.25})
    },
    "Launches that providers refused": {"A": (MINUTES, {'{pool="p",zone="a",type="g5"}': 180}, {})},
    "Power of racks": {
        "A": (
            MINUTES,
            {'{rack="r1"}': 0.75, '{rack="r2"}': 0.125, '{rack="r3"}': 0.25},
            {'{rack="r1"}': 0.25},
        )
    },
    "Power of racks at the site's meter": {
        "A": (MINUTES, {'{rack="r1"}': 4500, '{rack="r3"}': 1250}, {})
    },
    # Rack r2 has no PUE, so it is left out: 5750 W at the meter for 4000 W.
    "PUE": {
        "A": (MINUTES, {"{}": 1.4375}, {}),
        "B": (MINUTES, {'{rack="r1"}': 1.5, '{rack="r3"}': 1.25}, {}),
    },
    "Output of jobs that belayd lacks": {
        "A": (MINUTES, {'{pool="p"}': 90, '{pool="q"}': 5}, {'{pool="p"}': 0})
    },
    "Output of jobs under way": {
        "A": (MINUTES, {'{pool="p"}': 1500, '{pool="q"}': 7}, {'{pool="p"}': 0})
    },
    "Power of GPUs": {"A": (MINUTES, {'{pool="p"}': 1000, '{pool="q"}': 50}, {'{pool="p"}': 60})},
    "Warmest GPU": {"A": (MINUTES, {'{pool="p"}': 81, '{pool="q"}': 45}, {'{pool="p"}': 30})},
    "Memory of GPUs in use": {"A": (MINUTES, {'{pool="p"}': 0.5}, {'{pool="p"}': 0})},
    "Commits": {
        "A": (MINUTES, {"{}": 0.5}, {"{}": 0.25}),
        "B": (MINUTES, {"{}": 0.25}, {"{}": 0.5}),
    },
    # The eight routes with most requests: /h has the fewest.
    "Requests by route": {
        "A": (
            MINUTES,
            {
                '{method="GET",route="/a"}': 10,
                '{method="GET",route="/b"}': 2,
                '{method="POST",route="/b"}': 3,
                '{method="GET",route="/c"}': 4,
                '{method="GET",route="/d"}': 5,
                '{method="GET",route="/e"}': 6,
                '{method="GET",route="/f"}': 7,
                '{method="GET",route="/g"}': 8,
            },
            {'{method="GET",route="/a"}': 1},
        )
    },
    "Failed requests": {
        "A": (
            MINUTES,
            {'{status="404"}': 7, '{status="500"}': 2},
            {'{status="404"}': 0},
        )
    },
}


def promtool_tests(queries):
    """The tests of promtool (YAML, of which JSON is a part) of these queries: panel -> refId ->
    query. promtool compares exactly, so results are rounded."""
    tests = {}
    for panel, of_panel in queries.items():
        for ref, query in of_panel.items():
            data, *results = EXPECTED[panel][ref]
            interval, at, *series = data
            for name, values, samples in zip(("busy", "quiet"), series, results):
                test = tests.setdefault(
                    (interval, name),
                    {
                        "name": "%s, a sample each %s" % (name, interval),
                        "interval": interval,
                        "input_series": [{"series": s, "values": v} for s, v in values.items()],
                        "promql_expr_test": [],
                    },
                )
                test["promql_expr_test"].append(
                    {
                        "expr": "round(%s, 0.0001)" % query,
                        "eval_time": at,
                        "exp_samples": [
                            {"labels": labels, "value": value} for labels, value in samples.items()
                        ],
                    }
                )
    return {"evaluation_interval": "1m", "tests": list(tests.values())}
