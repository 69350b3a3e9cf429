#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make.py [DIR [DAYS JOBS]]: writes the traces and the log of jobs of this folder, byte for byte
the same each time, into DIR; or others, of so many days and jobs.

The traces are made up. A zone's spot capacity comes and goes in spells, whose lengths are as uneven
as published ones are: most are short, a few are long, and how likely one is to end falls with its
age (a Weibull distribution of shape below 1). By day it is scarcer. Prices move slowly around a
third of on-demand. Everything follows from the seed."""

import datetime
import json
import math
import os
import random
import sys

SEED = 2026
GAP_S = 900
DAYS = 60
ZONES = {
    "us-east-1a": (9.0, 3.0),
    "us-east-1c": (5.0, 4.0),
    "us-east-1d": (2.5, 2.0),
}  # mean hours up, down
TYPE = "g5.xlarge"
ON_DEMAND = 1.006
SHAPE = 0.6
USERS = {"nlp": ["ann", "bob"], "vision": ["cleo", "dan", "eve"]}
JOBS = 1000


def spell_h(r, mean_h):
    scale = mean_h / math.gamma(1 + 1 / SHAPE)
    return scale * (-math.log(1 - r.random())) ** (1 / SHAPE)


def trace(r, days, up_h, down_h):
    data, prices, price = [], [], 0.36 * ON_DEMAND
    up, left_h = True, 0.0
    for i in range(days * 86400 // GAP_S):
        hour = i * GAP_S / 3600 % 24
        if left_h <= 0:
            up = not up
            busy = 1.4 if 13 <= hour < 23 else 0.8
            left_h = spell_h(r, up_h / busy if up else down_h * busy)
        left_h -= GAP_S / 3600
        data.append(1 if up else 0)
        if i % 24 == 0:
            price = min(
                max(price * (1 + 0.03 * (2 * r.random() - 1)), 0.25 * ON_DEMAND), 0.6 * ON_DEMAND
            )
        prices.append(round(price, 4))
    return {"metadata": {"gap_seconds": GAP_S}, "data": data, "prices": prices}


def jobs(r, days, count):
    """The rhythm of a week: by day twice as many as by night, at weekends half as many. Runs around
    two hours, from minutes to days."""
    lines, at, number = ["id,name,user,team,submit,run,cpus,gpus,memory,finish_by"], 0.0, 0
    while number < count:
        at += -math.log(1 - r.random()) * days * 0.9 * 86400 / count
        day, hour = at // 86400, at / 3600 % 24
        if r.random() > (1.0 if 8 <= hour < 20 else 0.5) * (0.5 if day % 7 >= 5 else 1.0):
            continue
        number += 1
        team = "nlp" if r.random() < 0.6 else "vision"
        user = USERS[team][int(r.random() * len(USERS[team]))]
        run = min(
            max(7200 * math.exp(1.2 * (sum(r.random() for _ in range(12)) - 6)), 120), 3 * 86400
        )
        due = stamp(at + 2.5 * run + 3600) if r.random() < 0.2 else ""
        lines.append(
            f"{number},train{number % 7},{user},{team},{stamp(at)},{int(run)},4,1,14G,{due}"
        )
    return "\n".join(lines) + "\n"


def stamp(seconds):
    return (datetime.datetime(2026, 3, 1) + datetime.timedelta(seconds=int(seconds))).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    days, count = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (DAYS, JOBS)
    for i, (zone, (up_h, down_h)) in enumerate(sorted(ZONES.items())):
        text = json.dumps(trace(random.Random(SEED + i), days, up_h, down_h), separators=(",", ":"))
        write(os.path.join(out, "traces", f"{zone}_{TYPE}.json"), text + "\n")
    write(os.path.join(out, "jobs.csv"), jobs(random.Random(SEED + 100), days, count))


if __name__ == "__main__":
    main()
