# SPDX-License-Identifier: Apache-2.0
"""One rank of test_belay_torch.py: steps whose durations are its own, by a clock of its own.

    poll_rank.py LIB RENDEZVOUS RANK WORLD_SIZE PLAN

PLAN: JSON with "steps", "arguments" of Poll, "durations" ([first step, seconds] in order) and "ask"
(steps from which belay asks this rank until a save). Prints JSON: the steps that ended in a save,
and those with a collective.
"""

import datetime
import json
import sys
import types

lib, rendezvous, rank, world_size, plan = sys.argv[1:]
sys.path.insert(0, lib)
plan = json.loads(plan)

import torch.distributed as dist  # noqa: E402

import belay  # noqa: E402
import belay.torch  # noqa: E402

dist.init_process_group(
    "gloo",
    init_method="file://" + rendezvous,
    rank=int(rank),
    world_size=int(world_size),
    timeout=datetime.timedelta(seconds=60),
)
now, pending, collectives, saves = 0.0, list(plan["ask"]), [], []
belay.torch.time = types.SimpleNamespace(monotonic=lambda: now)
belay.should_checkpoint = lambda: bool(pending) and step >= pending[0]
reduce = dist.all_reduce


def counted(*arguments, **more):
    collectives.append(step)
    return reduce(*arguments, **more)


dist.all_reduce = counted
poll = belay.torch.Poll(**plan["arguments"])
for step in range(1, plan["steps"] + 1):
    now += [seconds for first, seconds in plan["durations"] if first <= step][-1]
    if poll.wants_save():
        saves.append(step)
        pending = [at for at in pending if at > step]
        now += 30  # the save
print(json.dumps({"saves": saves, "collectives": collectives}))
