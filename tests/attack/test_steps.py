# SPDX-License-Identifier: Apache-2.0
"""An attacker on the network of a step that runs on two nodes: captures traffic, floods the port at
which srun waits for the other node, speaks the protocol of an older belay, forges output, and
replays a recorded start. The step gets only its tasks' output, and the capture reveals nothing."""

import contextlib
import ctypes
import os
import random
import select
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
import unittest

import lab
from lab import Lab

LINES = 400
FLOOD = 400
MARK = "plain-%016x" % random.SystemRandom().getrandbits(64)
FORGED = b"forged-by-a-stranger"

SCRIPT = """\
#!/bin/sh
#SBATCH -N 2 -n 2
echo ready
while ! [ -e %(begin)s ]; do sleep 0.05; done
belay slurm srun -l sh -c '
echo up; n=0
while ! [ -e %(gate)s ]; do sleep 0.05; done
while [ $n -lt %(lines)d ]; do n=$((n + 1)); echo "%(mark)s $n"; done'
echo "code $?"
"""


def listeners(pid):
    """TCP ports on which the process listens."""
    inodes, ports = set(), []
    with contextlib.suppress(OSError):
        for fd in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    for name in ("tcp", "tcp6"):
        with open("/proc/net/" + name) as f:
            for line in f.readlines()[1:]:
                words = line.split()
                if words[3] == "0A" and "socket:[%s]" % words[9] in inodes:
                    ports.append(int(words[1].rsplit(":", 1)[1], 16))
    return ports


# Programs of the kernel's packet filter.
TCP = [  # of IPv4
    (0x28, 0, 0, 12),
    (0x15, 0, 3, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, 6),
    (0x6, 0, 0, 0x40000),
    (0x6, 0, 0, 0),
]


def tcp_port(port):
    """With this port on either side."""
    return [
        (0x28, 0, 0, 12),
        (0x15, 0, 8, 0x0800),
        (0x30, 0, 0, 23),
        (0x15, 0, 6, 6),
        (0xB1, 0, 0, 14),
        (0x48, 0, 0, 14),
        (0x15, 2, 0, port),
        (0x48, 0, 0, 16),
        (0x15, 0, 1, port),
        (0x6, 0, 0, 0x40000),
        (0x6, 0, 0, 0),
    ]


class Recorder:
    """Captures loopback traffic: all of it, until narrow() names a port. It begins before there is
    a port, because the other node may connect as soon as there is one."""

    def __init__(self):
        self.port, self.sent, self.streams = 0, 0, {}
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.filter(TCP)
        self.socket.bind(("lo", 0))
        self.ends, self.came = threading.Event(), threading.Condition()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def narrow(self, port):
        """Keeps what has this port on either side, because the rest of the machine is busy too."""
        self.filter(tcp_port(port))
        with self.came:
            self.port = port
            self.streams = {ends: data for ends, data in self.streams.items() if port in ends}

    def filter(self, program):
        code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
        self.code = ctypes.create_string_buffer(code)
        fprog = struct.pack("HL", len(program), ctypes.addressof(self.code))
        self.socket.setsockopt(socket.SOL_SOCKET, 26, fprog)  # SO_ATTACH_FILTER

    def run(self):
        while not self.ends.is_set():
            if not select.select([self.socket], [], [], 0.05)[0]:
                continue
            packet, address = self.socket.recvfrom(65536 + 100)
            if address[2] == socket.PACKET_OUTGOING:
                continue  # a duplicate
            at = 14 + (packet[14] & 15) * 4
            source, target = struct.unpack_from(">HH", packet, at)
            end = 14 + struct.unpack_from(">H", packet, 16)[0]
            data = packet[at + (packet[at + 12] >> 4) * 4 : end]
            if data:
                with self.came:
                    if self.port and self.port not in (source, target):
                        continue  # captured before narrow()
                    self.streams.setdefault((source, target), bytearray()).extend(data)
                    self.came.notify()

    def hellos(self):
        """What TLS clients sent to the port, once there is some."""

        def look():
            return [
                bytes(data)
                for (_, target), data in self.streams.items()
                if target == self.port and data[:2] == b"\x16\x03"
            ]

        with self.came:
            return self.came.wait_for(look, lab.WAIT_S) or []

    def bytes_of(self, least):
        """All that was captured, once it is more than so many bytes: on a busy machine the capture
        comes later than the output."""

        def look():
            return sum(map(len, self.streams.values())) > least

        with self.came:
            self.came.wait_for(look, lab.WAIT_S)
            return b"".join(self.streams.values())

    def stop(self):
        self.ends.set()
        self.thread.join()
        self.socket.close()


class Steps(unittest.TestCase):
    def connect(self, port):
        return socket.create_connection(("127.0.0.1", port), timeout=lab.WAIT_S)

    def is_hung_up(self, s):
        """Checks that there is no useful answer: at most a TLS alert."""
        s.settimeout(lab.WAIT_S)
        said = b""
        with contextlib.suppress(ConnectionError):
            while len(said) < 4096:
                piece = s.recv(4096)
                if not piece:
                    break
                said += piece
        return len(said) < 64

    def check_refused(self, port, data):
        with self.connect(port) as s:
            with contextlib.suppress(ConnectionError):
                s.sendall(data)
            self.assertTrue(self.is_hung_up(s), data[:20])

    def srun_port(self, l):
        end = time.monotonic() + lab.WAIT_S
        while time.monotonic() < end:
            for pid in l.processes():
                words = lab.command_line(pid, "\0").split("\0")
                if "srun" in words and "--part" not in words:
                    ports = listeners(pid)
                    if ports:
                        return ports[0]
            time.sleep(0.005)  # there is no event for it
        raise AssertionError("srun does not listen")

    def attack(self, port):
        self.check_refused(port, b"\x00" * 64)
        self.check_refused(port, random.randbytes(5000))
        self.check_refused(port, b"GET / HTTP/1.1\r\n\r\n")
        frame = b"\x01" + struct.pack(">I", len(FORGED)) + FORGED
        self.check_refused(
            port, b"0" * 64 + frame
        )  # the start of an older belay: a key, then frames
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with self.assertRaises((ssl.SSLError, ConnectionError)), self.connect(port) as s:
            context.wrap_socket(s).sendall(frame)

    def replay(self, port, recorder):
        """Replays everything that the part has sent so far."""
        said = recorder.hellos()
        self.assertGreater(len(said), 0)
        for data in said[:3]:
            with self.connect(port) as s:
                with contextlib.suppress(ConnectionError):
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                s.settimeout(lab.WAIT_S)
                with contextlib.suppress(ConnectionError):
                    while s.recv(65536):
                        pass

    def test_a_step_on_two_nodes_is_its_job_s_alone(self):
        with tempfile.TemporaryDirectory(prefix="belay-attack.") as dir_, Lab() as l:
            os.chmod(dir_, 0o755)
            begin, gate = os.path.join(dir_, "begin"), os.path.join(dir_, "go")
            job = self.submit(l, begin, gate)
            l.wait_log(job, "^ready$")
            try:
                recorder = Recorder()
            except PermissionError:
                print("skipped: recording the loopback needs CAP_NET_RAW", file=sys.stderr)
                sys.exit(77)
            with contextlib.ExitStack() as open_:
                open_.callback(recorder.stop)
                with open(begin, "w"):
                    pass
                port = self.srun_port(l)
                recorder.narrow(port)
                for _ in range(FLOOD):  # before the other node has connected
                    with contextlib.suppress(OSError):
                        open_.enter_context(self.connect(port))
                l.wait_log(job, "^1: up$|^code ")
                self.assertIn("1: up", l.log(job))
                self.replay(port, recorder)
                self.attack(port)
                with open(gate, "w"):
                    pass
                l.wait_log(job, "^code ")
                recorded = recorder.bytes_of(LINES * len(MARK))
            text = l.log(job)
            self.assertIn("code 0\n", text)
            for task in (0, 1):
                begins = "%d: %s " % (task, MARK)
                lines = [line for line in text.splitlines() if line.startswith(begins)]
                self.assertEqual(lines, [begins + str(n) for n in range(1, LINES + 1)])
            self.assertNotIn(FORGED.decode(), text)
            self.assertGreater(len(recorded), LINES * len(MARK))  # the capture has it
            self.assertNotIn(MARK.encode(), recorded)
            self.assertEqual(l.wait_ended(job)["job"]["exit_code"], 0)

    def submit(self, l, begin, gate):
        words = {"begin": begin, "gate": gate, "lines": LINES, "mark": MARK}
        l.write("step.sh", SCRIPT % words)
        return int(l.belay("slurm", "sbatch", "--parsable", "step.sh"))


if __name__ == "__main__":
    unittest.main()
