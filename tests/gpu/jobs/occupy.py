# SPDX-License-Identifier: Apache-2.0
"""Holds MIB of a GPU's memory until it is stopped, and computes on the GPU until the file exists.

occupy.py MIB FILE
"""

import os
import sys
import time

import torch

mib, file = int(sys.argv[1]), sys.argv[2]
held = torch.ones(mib << 18, device="cuda")
a = torch.rand(4096, 4096, device="cuda")
print("works", flush=True)
while not os.path.exists(file):
    for _ in range(20):
        a = torch.nn.functional.normalize(a @ a)
    torch.cuda.synchronize()
print("idle", flush=True)
while True:
    time.sleep(60)
