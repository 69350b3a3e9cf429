# SPDX-License-Identifier: Apache-2.0
"""Trees that other people's programs made, for bench/checkpoint.py: each function fills a directory
with at most about the given number of MiB. None of them needs a network.
"""

import json
import os
import shutil
import struct
import subprocess

SYSTEM = "/usr"
SOURCES = ("/usr/include", "/usr/share/doc")  # what the repository's commits add
COMMITS = 20
PACKED = 13  # commits before `git gc`: the objects of later ones are a file each

# GPT-2 medium: the shapes of a layer and of what is there once
LAYERS, VOCABULARY, POSITIONS, WIDTH = 24, 50257, 1024, 1024
LAYER = {
    "ln_1.weight": (WIDTH,),
    "ln_1.bias": (WIDTH,),
    "attn.c_attn.weight": (WIDTH, 3 * WIDTH),
    "attn.c_attn.bias": (3 * WIDTH,),
    "attn.c_proj.weight": (WIDTH, WIDTH),
    "attn.c_proj.bias": (WIDTH,),
    "ln_2.weight": (WIDTH,),
    "ln_2.bias": (WIDTH,),
    "mlp.c_fc.weight": (WIDTH, 4 * WIDTH),
    "mlp.c_fc.bias": (4 * WIDTH,),
    "mlp.c_proj.weight": (4 * WIDTH, WIDTH),
    "mlp.c_proj.bias": (WIDTH,),
}
STATE_MIB = 4743  # of the whole model: 14 bytes a parameter


def is_utf8(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def copy_file(path, to):
    """Copies a regular file or a symbolic link, without special bits; returns its bytes."""
    if os.path.islink(path):
        os.symlink(os.readlink(path), to)
        return 0
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return 0
    shutil.copyfile(path, to)
    os.chmod(to, os.stat(path).st_mode & 0o755 | 0o600)
    return os.path.getsize(to)


def system(tree, mib):
    """The first files of /usr, by name."""
    left = mib << 20
    for folder, folders, files in os.walk(SYSTEM):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if is_utf8(name) and name not in links)
        at = os.path.join(tree, os.path.relpath(folder, SYSTEM))
        os.makedirs(at, exist_ok=True)
        for name in sorted(filter(is_utf8, files + links)):
            left -= copy_file(os.path.join(folder, name), os.path.join(at, name))
            if left <= 0:
                return


def git(tree, *words):
    subprocess.run(
        ["git", "-C", tree, "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        + ["-c", "gc.auto=0"]  # in the background, it locks out the gc below
        + list(words),
        check=True,
        stdout=subprocess.DEVNULL,
        env=dict(os.environ, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null"),
    )


def repository(tree, mib):
    """A git repository whose history adds /usr/include and /usr/share/doc part by part: packed
    objects, loose objects, and files checked out.
    """
    git(os.path.dirname(tree), "init", "-q", tree)
    left, paths = mib << 19, []  # the files take about as much as the objects
    for source in SOURCES:
        for folder, folders, files in os.walk(source):
            folders.sort()
            paths += [os.path.join(folder, name) for name in sorted(filter(is_utf8, files))]
    for i in range(COMMITS):
        for path in paths[i * len(paths) // COMMITS : (i + 1) * len(paths) // COMMITS]:
            if left <= 0:
                break
            at = os.path.join(tree, path.lstrip("/"))
            os.makedirs(os.path.dirname(at), exist_ok=True)
            left -= copy_file(path, at)
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "--allow-empty", "-m", "part %d" % i)
        if i + 1 == PACKED:
            git(tree, "gc", "-q")


def parameters(scale):
    yield "wte.weight", (max(int(VOCABULARY * scale), 1), WIDTH)
    yield "wpe.weight", (max(int(POSITIONS * scale), 1), WIDTH)
    for i in range(max(round(LAYERS * scale), 1)):
        for name, shape in LAYER.items():
            yield "h.%d.%s" % (i, name), shape


def write_safetensors(path, kind, size, shapes, draw):
    header, offset = {}, 0
    for name, shape in shapes:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {
            "dtype": kind,
            "shape": shape,
            "data_offsets": [offset, offset + size * count],
        }
        offset += size * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes:
            f.write(draw(shape))


def state_dict(tree, mib):
    """What a training of GPT-2 medium with AdamW in mixed precision saves: weights in bfloat16, and
    master weights and two moments in float32. Values are normally distributed. Of another size than
    STATE_MIB: fewer or more layers, and rows of the embeddings.
    """
    import numpy

    random, shapes = numpy.random.default_rng(1), list(parameters(mib / STATE_MIB))

    def normal(shape):
        return 0.02 * random.standard_normal(shape, dtype=numpy.float32)

    def bfloat16(shape):
        return (normal(shape).view(numpy.uint32) >> 16).astype(numpy.uint16)

    os.mkdir(tree)
    write_safetensors(os.path.join(tree, "model.safetensors"), "BF16", 2, shapes, bfloat16)
    for name, draw in (
        ("master", normal),
        ("exp_avg", normal),
        ("exp_avg_sq", lambda shape: normal(shape) ** 2),
    ):
        write_safetensors(os.path.join(tree, name + ".safetensors"), "F32", 4, shapes, draw)
