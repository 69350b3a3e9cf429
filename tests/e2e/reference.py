# SPDX-License-Identifier: Apache-2.0
"""The metrics of docs/reference/metrics.md."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs/reference/metrics.md")


def documented_labels():
    """The labels of each metric: name -> set."""
    labels = {}
    with open(PAGE) as f:
        rows = [line.split("|")[1] for line in f if line.startswith("| `belay_")]
    for name, listed in re.findall(r"`(belay_\w+)(?:\{([a-z_,]+)\})?`", " ".join(rows)):
        labels[name] = set(listed.split(",") if listed else ())
    return labels


def family(sample, known):
    """The name in the reference of a sample's name: those of a histogram have endings."""
    return sample if sample in known else re.sub("_(bucket|count|sum)$", "", sample)
