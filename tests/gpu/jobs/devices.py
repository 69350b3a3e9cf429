# SPDX-License-Identifier: Apache-2.0
"""Says which GPUs it was given and which device files it can open, and keeps running."""

import errno
import glob
import os
import signal

for name in ("BELAY_GPUS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
    print("%s=%s" % (name, os.environ.get(name)))
for path in sorted(glob.glob("/dev/nvidia[0-9]*")):
    try:
        os.close(os.open(path, os.O_RDWR))
        said = "opened"
    except OSError as error:
        said = errno.errorcode[error.errno]
    print("%s %s" % (path, said))
print("ready", flush=True)
signal.pause()
