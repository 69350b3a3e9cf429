# SPDX-License-Identifier: Apache-2.0
"""How long NVIDIA's driver takes to suspend a program, which copies what it has on a GPU into its
own memory, and to resume it: the driver's part of a checkpoint by CRIU (docs/reference/criu.md).

    bench/suspend.py [MIB...]

It calls the driver's library as NVIDIA's cuda-checkpoint does (CUDA Driver API, "CUDA
Checkpointing"; driver 570 or later), so neither that program nor criu is needed. The reference is
copying as much into pinned memory, and back.
"""

import ctypes
import os
import statistics
import subprocess
import sys
import time

SIZES_MIB = (1024, 8192)
ROUNDS = 3
BLOCK = 1 << 28
MARK = 0x5EED1234
LIBRARIES = ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1")
DONE, LOCK_MS = "done", 10000


class LockArguments(ctypes.Structure):
    """CUcheckpointLockArgs."""

    _fields_ = [
        ("timeout_ms", ctypes.c_uint),
        ("reserved0", ctypes.c_uint),
        ("reserved1", ctypes.c_uint64 * 7),
    ]


class Failed(Exception):
    pass


def load():
    """The driver's library, or None."""
    for path in LIBRARIES:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def call(library, name, *arguments):
    function = getattr(library, name, None)
    if function is None:
        raise Failed("the driver has no %s: 570 or later is needed" % name)
    code = function(*arguments)
    if code:
        text = ctypes.c_char_p()
        library.cuGetErrorName(code, ctypes.byref(text))
        raise Failed("%s: error %d %s" % (name, code, (text.value or b"").decode()))


# ---- the program that is suspended ----


def hold(mib):
    """Fills so much memory of a GPU, says how long copies of it take, and waits; then checks it."""
    library, context = load(), ctypes.c_void_p()
    call(library, "cuInit", 0)
    device = ctypes.c_int()
    call(library, "cuDeviceGet", ctypes.byref(device), 0)
    call(library, "cuCtxCreate_v2", ctypes.byref(context), 0, device)
    blocks = []
    for _ in range((mib << 20) // BLOCK):
        address = ctypes.c_uint64()
        call(library, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(BLOCK))
        call(library, "cuMemsetD32_v2", address, MARK + len(blocks), ctypes.c_size_t(BLOCK // 4))
        blocks.append(address)
    call(library, "cuCtxSynchronize")
    print("%.6f %.6f" % copies(library, blocks), flush=True)
    sys.stdin.readline()
    word = ctypes.c_uint32()
    for n, address in enumerate(blocks):
        for at in (0, BLOCK // 2, BLOCK - 4):
            place = ctypes.c_uint64(address.value + at)
            call(library, "cuMemcpyDtoH_v2", ctypes.byref(word), place, ctypes.c_size_t(4))
            if word.value != MARK + n:
                raise Failed("block %d came back with other memory than it had" % n)
    print(DONE, flush=True)


def copies(library, blocks):
    """Seconds that copying all blocks into pinned memory takes, and back."""
    pinned = ctypes.c_void_p()
    call(library, "cuMemHostAlloc", ctypes.byref(pinned), ctypes.c_size_t(BLOCK), 0)
    took = []
    for name in ("cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2"):
        began = time.monotonic()
        for n, address in enumerate(blocks):
            there, here = (pinned, address) if "DtoH" in name else (address, pinned)
            call(library, name, there, here, ctypes.c_size_t(BLOCK))
            if "HtoD" in name:  # the pinned block has the last one's content
                call(library, "cuMemsetD32_v2", address, MARK + n, ctypes.c_size_t(BLOCK // 4))
        call(library, "cuCtxSynchronize")
        took.append(time.monotonic() - began)
    call(library, "cuMemFreeHost", pinned)
    return took[0], took[1]


# ---- the one that suspends it ----


def suspend_and_resume(library, pid):
    """Seconds of each."""
    times = []
    arguments = LockArguments(timeout_ms=LOCK_MS)
    for steps in (
        (("Lock", ctypes.byref(arguments)), ("Checkpoint", None)),
        (("Restore", None), ("Unlock", None)),
    ):
        began = time.monotonic()
        for step, argument in steps:
            call(library, "cuCheckpointProcess" + step, pid, argument)
        times.append(time.monotonic() - began)
    return times


def measure(library, mib, say):
    own = [sys.executable, os.path.abspath(__file__), "hold", str(mib)]
    pipe = subprocess.PIPE
    with subprocess.Popen(own, stdin=pipe, stdout=pipe, universal_newlines=True) as program:
        try:
            line = program.stdout.readline()
            if not line:
                raise Failed("the program on the GPU ended")
            copied = [float(word) for word in line.split()]
            rounds = [suspend_and_resume(library, program.pid) for _ in range(ROUNDS)]
            program.stdin.write("\n")
            program.stdin.flush()
            if program.stdout.readline().strip() != DONE:
                raise Failed("the program was not resumed as it was")
        finally:
            program.kill()
    gib = mib / 1024
    for i, (verb, way) in enumerate((("suspended", "from"), ("resumed", "to"))):
        took = statistics.median(r[i] for r in rounds)
        say(
            "%d MiB on a GPU, %s in" % (mib, verb),
            "%.2f s, %.2f GiB/s" % (took, gib / took),
            "a copy %s it, pinned: %.2f s, %.1f GiB/s" % (way, copied[i], gib / copied[i]),
            "%.1f times it" % (took / copied[i]),
        )
        say("", ", ".join("%.2f" % r[i] for r in rounds))


def bench(say, sizes=SIZES_MIB):
    library = load()
    if not library:
        say("suspend", "skipped", "there is no NVIDIA driver on this machine")
        return
    try:
        call(library, "cuInit", 0)
        for mib in sizes:
            measure(library, mib, say)
    except Failed as error:
        say("suspend", "not measured", str(error))


if __name__ == "__main__":
    if sys.argv[1:2] == ["hold"]:
        hold(int(sys.argv[2]))
    else:
        bench(lambda *w: print(*w, sep="   ", flush=True), [*map(int, sys.argv[1:])] or SIZES_MIB)
