# SPDX-License-Identifier: Apache-2.0
"""A job on several nodes: at each step every rank sends its value to all others, and continues with
all values.

    ring.py STEPS [SECONDS A STEP [RANK STEP [hold]]]

At STEP, RANK fails with exit code 7. With hold it sleeps instead before its first save from STEP
on, in the first attempt only, so that no checkpoint is completed.

With another number of ranks than wrote the checkpoint, each starts from a value computed from
all the saved ones.

The ranks find each other as those of torch.distributed do, by RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, and agree at each step whether to save. With RING_DIR rank 0 listens on any free
port and writes its number to a file there: where several clusters share a machine, MASTER_PORT
would be the same for jobs with the same number.
"""

import hashlib
import json
import os
import socket
import sys
import time

CONNECT_S = 30


def link(step, rank, values):
    return hashlib.sha256(("%d %d %s" % (step, rank, " ".join(values))).encode()).hexdigest()


def undisturbed(steps, size, changes=()):
    """The last value of each rank. changes: (step, new size), in order."""
    values, changes = ["start"] * size, dict(changes)
    for step in range(steps + 1):
        if step:
            values = [link(step, rank, values) for rank in range(len(values))]
        if step in changes:
            values = [link(step, rank, values) for rank in range(changes[step])]
    return values


def state_of(directory):
    with open(os.path.join(directory, "state")) as f:
        step, value = f.read().split()
    return int(step), value


class Ring:
    """Rank 0 collects and distributes."""

    def __init__(self, rank, size):
        self.rank, self.size, self.peers = rank, size, {}
        self.address = os.environ["MASTER_ADDR"]
        self.port_file = None
        if "RING_DIR" in os.environ:
            name = "ring-%s-%s" % (os.environ["BELAY_JOB_ID"], os.environ["BELAY_ATTEMPT"])
            self.port_file = os.path.join(os.environ["RING_DIR"], name)
        if rank == 0:
            listener = self.listen()
            listener.settimeout(CONNECT_S)
            while len(self.peers) < size - 1:
                peer = listener.accept()[0].makefile("rw")
                self.peers[json.loads(peer.readline())] = peer
        else:
            self.peers[0] = self.connect().makefile("rw")
            self.tell(self.peers[0], rank)

    def listen(self):
        if not self.port_file:
            return socket.create_server((self.address, int(os.environ["MASTER_PORT"])))
        listener = socket.create_server((self.address, 0))
        with open(self.port_file + ".new", "w") as f:
            f.write("%d" % listener.getsockname()[1])
        os.rename(self.port_file + ".new", self.port_file)
        return listener

    def port(self):
        if not self.port_file:
            return int(os.environ["MASTER_PORT"])
        with open(self.port_file) as f:
            return int(f.read())

    def connect(self):
        end = time.monotonic() + CONNECT_S
        while True:
            try:
                return socket.create_connection((self.address, self.port()))
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    @staticmethod
    def tell(peer, value):
        peer.write(json.dumps(value) + "\n")
        peer.flush()

    @staticmethod
    def hear(peer):
        line = peer.readline()
        if not line:  # another rank is gone: belay stops this one, which has not failed
            time.sleep(CONNECT_S)
            sys.exit("another rank is gone")
        return json.loads(line)

    def exchange(self, value):
        """The values of all ranks, by rank."""
        if self.rank != 0:
            self.tell(self.peers[0], value)
            return self.hear(self.peers[0])
        values = [value] + [self.hear(self.peers[r]) for r in range(1, self.size)]
        for peer in self.peers.values():
            self.tell(peer, values)
        return values


def main():
    import belay

    steps = int(sys.argv[1])
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.02
    at = (int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 4 else None
    holds = len(sys.argv) > 5 and os.environ["BELAY_ATTEMPT"] == "1"
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    step, value = 0, "start"
    if belay.restored() and belay.restored_ranks() == size:
        step, value = state_of(belay.checkpoint_dir())
    elif belay.restored():
        states = [state_of(belay.restored_dir(k)) for k in range(belay.restored_ranks())]
        step, value = states[0][0], link(states[0][0], rank, [s[1] for s in states])
    print(
        "rank %d of %d on %s at step %d" % (rank, size, os.environ["BELAY_NODELIST"], step),
        flush=True,
    )
    ring = Ring(rank, size)
    while step < steps:
        told = ring.exchange([step, value, bool(belay.should_checkpoint())])
        assert all(t[0] == step for t in told), told
        step += 1
        value = link(step, rank, [t[1] for t in told])
        time.sleep(pause)
        print("step %d %s" % (step, value[:8]), flush=True)
        belay.progress(step, steps)
        if at == (rank, step) and len(sys.argv) == 5:
            sys.exit(7)
        if any(t[2] for t in told):
            if holds and rank == at[0] and step >= at[1]:
                print("holds", flush=True)
                time.sleep(600)
            print("saves", flush=True)
            with belay.checkpoint(step, steps) as directory:
                with open(os.path.join(directory, "state"), "w") as f:
                    f.write("%d %s\n" % (step, value))
            if belay.stopping():
                sys.exit(belay.EXIT_CHECKPOINTED)
    print("ring %s" % value)


if __name__ == "__main__":
    main()
