# SPDX-License-Identifier: Apache-2.0
"""Jobs of several nodes: started together, saved together, resumed together."""

import os
import re
import sys
import unittest

from lab import JOBS, WAIT_S, Lab

sys.path.insert(0, JOBS)
from ring import undisturbed  # noqa: E402

STEPS, ELASTIC_STEPS, RANKS = 200, 400, 3

# As under Slurm: it starts on the first node, and srun starts tasks on all.
FIRST = r"""#!/bin/sh
#SBATCH -N 3 -n 5 -o first.out
srun() { belay slurm srun "$@"; }
echo "script on node $SLURM_NODEID of $SLURM_NNODES, tasks $SLURM_TASKS_PER_NODE"
export SEEN="two words"
cd sub
srun -l sh -c 'echo "$SLURM_LOCALID $SLURM_NODEID of $SLURM_NTASKS/$SLURM_NNODES: $SEEN $(basename "$PWD") $SLURM_STEP_TASKS_PER_NODE"' | sort
srun -n 3 sh -c 'echo "$SLURMD_NODENAME"' | sort -u | wc -l
srun -N 2 -n 4 -m cyclic -o ../cyclic.out sh -c 'echo "$SLURM_PROCID on $SLURM_NODEID"'
srun -Q -n 3 sh -c 'exit $((SLURM_PROCID * 4))'; echo "code $?"
srun -Q -n 3 -K sh -c '[ $SLURM_NODEID = 1 ] && exit 7; exec sleep 1000'; echo "killed $?"
srun -n 9 true; echo "too many $?"
cat >../programs.conf <<'EOF'
0 echo leader %t
1-3 echo worker %o of %t
* sh -c 'echo last on $SLURM_NODEID with $0'
EOF
srun -l --multi-prog ../programs.conf more | sort
srun -n 3 --task-prolog=$PWD/prolog.sh --task-epilog=$PWD/epilog.sh sh -c 'echo "$CAME"' | sort
cat ../epilog.0 ../epilog.1 ../epilog.2
[ $SLURM_RESTART_COUNT = 0 ] || exec echo finished
srun -n 3 sh -c 'echo waits; while ! [ -e ../go ]; do sleep 0.1; done; echo goes on'
echo "step $SLURM_JOB_NUM_NODES"
srun sleep 1000
"""

# Ignores SIGTERM until it is killed, so that no rank ends before the others' limits.
STAYS = """#!/bin/sh
trap 'echo told' TERM
echo waits
while :; do sleep 0.1; done
"""

HEARS = """#!/bin/sh
trap 'echo script heard' USR1
sh -c 'trap "echo program heard" USR1; echo up; while :; do sleep 0.1; done' &
while :; do wait; done
"""

# Its tasks run on all of its nodes, its script on the first.
HEARS_ON_FIRST = """#!/bin/sh
#SBATCH -N 3 -o hears.out
belay slurm srun sh -c 'trap "echo heard" USR1; echo up; while :; do sleep 0.1; done'
"""


class Gang(unittest.TestCase):
    def start(self, l, *args, every_ms=3600000):
        return l.submit(
            "ring.py", STEPS, 0.02, *args, method="coop", every_ms=every_ms, nodes=RANKS
        )

    def node_of(self, l, job, rank):
        shown = l.show(job)
        return [a["node"] for a in shown["attempts"] if a["rank"] == rank][-1]

    def machine_of(self, l, node):
        return l.wait(
            lambda: [
                i["provider_id"]
                for i in l.get("/instances?state=all")["instances"]
                if i["node"] == node and i["provider_id"]
            ],
            "the machine of node %d" % node,
        )[0]

    def wait_rank_log(self, l, job, rank, pattern):
        follower = l.start_belay("logs", "-f", "--rank", str(rank), str(job))
        for line in follower.stdout:
            if re.search(pattern, line):
                break
        else:
            self.fail("rank %d has not told %s" % (rank, pattern))
        follower.terminate()
        follower.communicate()

    def check_result(self, l, job):
        shown = l.show(job)
        self.assertEqual(
            (shown["job"]["state"], shown["job"]["end"]), ("ended", "succeeded"), l.log(job)
        )
        expected = undisturbed(STEPS, RANKS)
        for rank in range(RANKS):
            text = l.belay("logs", "--rank", str(rank), str(job))
            self.assertEqual(re.findall("^ring (.*)$", text, re.M), [expected[rank]])
        for number in {a["attempt"] for a in shown["attempts"]}:
            ranks = [a for a in shown["attempts"] if a["attempt"] == number]
            self.assertEqual([a["rank"] for a in ranks], list(range(RANKS)))
            self.assertEqual(len({a["node"] for a in ranks}), RANKS)
            self.assertEqual(len({str(a["restored"]) for a in ranks}), 1)
        return shown

    def test_a_notice_for_one_node_saves_all_and_loses_nothing(self):
        with Lab() as l:
            job = self.start(l)
            l.wait_log(job, "^step 20 ")
            doomed = self.node_of(l, job, 1)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "notice_s": 8}})
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(
                [(a["end"], a["rank"]) for a in shown["attempts"][:RANKS]],
                [("gang", 0), ("reclaimed", 1), ("gang", 2)],
            )
            self.assertEqual(shown["job"]["lost_steps"], 0)
            self.assertEqual(len(shown["checkpoints"]), 1)
            self.assertEqual(shown["job"]["reclaims"], 1)

    def test_a_node_that_vanishes_takes_all_back_to_the_last_checkpoint(self):
        with Lab() as l:
            job = self.start(l, every_ms=1000)
            l.wait_event(job, "saved", 2)
            doomed = self.node_of(l, job, 2)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "without_notice": True}})
            l.wait_ended(job)
            shown = self.check_result(l, job)
            self.assertEqual(max(a["attempt"] for a in shown["attempts"]), 2)
            self.assertIsNotNone(shown["attempts"][-1]["restored"])

    def test_a_node_that_vanishes_while_the_others_wait_for_its_part(self):
        with Lab() as l:
            job = self.start(l, 2, 10, "hold", every_ms=1000)
            self.wait_rank_log(l, job, 2, "^holds$")
            doomed = self.node_of(l, job, 2)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "without_notice": True}})
            l.wait_ended(job)
            self.assertEqual(max(a["attempt"] for a in self.check_result(l, job)["attempts"]), 2)

    def test_an_elastic_one_goes_on_smaller_and_grows_again(self):
        with Lab() as l:
            job = l.submit(
                "ring.py",
                ELASTIC_STEPS,
                0.02,
                method="coop",
                every_ms=3600000,
                nodes=RANKS,
                nodes_min=1,
            )
            for size, rank in ((RANKS, 1), (RANKS - 1, 0)):
                l.wait_event(job, "started", RANKS - size + 1)
                self.wait_rank_log(l, job, 0, "^rank 0 of %d on" % size)
                doomed = self.node_of(l, job, rank)
                l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "notice_s": 8}})
                l.wait_event(job, "requeued", RANKS - size + 1)
            self.wait_rank_log(l, job, 0, "^rank 0 of 1 on")
            self.assertEqual(l.job(job)["ranks"], 1)
            l.belay("requeue", str(job))
            shown = l.wait_ended(job)
            self.assertEqual(
                (shown["job"]["end"], shown["job"]["ranks"]), ("succeeded", RANKS), l.log(job)
            )
            self.assertEqual(shown["job"]["lost_steps"], 0)
            sizes = re.findall("^rank 0 of ([0-9]+) on .* at step ([0-9]+)$", l.log(job), re.M)
            self.assertEqual([int(n) for n, _ in sizes], [RANKS, RANKS - 1, 1, RANKS])
            expected = undisturbed(
                ELASTIC_STEPS, RANKS, [(int(step), int(n)) for n, step in sizes[1:]]
            )
            for rank in range(RANKS):
                text = l.belay("logs", "--rank", str(rank), str(job))
                self.assertEqual(re.findall("^ring (.*)$", text, re.M), [expected[rank]])

    def test_a_time_limit_that_is_changed_reaches_all_ranks(self):
        """Each rank ends at its own time limit, not because the others end."""
        with Lab() as l:
            l.write("waits.sh", STAYS, 0o700)
            job = l.submit(os.path.join(l.dir, "waits.sh"), nodes=RANKS, time_limit_ms=3600000)
            for rank in range(RANKS):
                self.wait_rank_log(l, job, rank, "^waits$")
            self.assertEqual(
                l.belay("update", str(job), "time=0:00:10"), "job %d is changed\n" % job
            )
            shown = l.wait_ended(job)
            self.assertEqual(
                (shown["job"]["end"], shown["job"]["time_limit_ms"]), ("timeout", 10000), l.log(job)
            )
            self.assertEqual(
                [a["text"] for a in shown["attempts"]],
                ["it ran longer than its time limit of 10s"] * RANKS,
            )
            for rank in range(RANKS):
                self.assertRegex(
                    l.belay("logs", "--rank", str(rank), str(job)),
                    r"\Awaits\n(Terminated\n)?told\n",
                )

    def test_a_script_on_the_first_starts_tasks_on_all(self):
        with Lab() as l:
            os.mkdir(os.path.join(l.dir, "sub"))
            l.write("sub/prolog.sh", "#!/bin/sh\necho export CAME=to $SLURM_NODEID\n", 0o700)
            l.write(
                "sub/epilog.sh",
                "#!/bin/sh\necho left $SLURM_NODEID >../epilog.$SLURM_PROCID\n",
                0o700,
            )
            l.write("first.sh", FIRST)
            job = int(l.belay("slurm", "sbatch", "--parsable", "first.sh"))
            l.wait_log(job, "^waits\nwaits\nwaits$")
            l.kill_belayd()  # a step continues without belayd
            l.write("go", "")
            l.up()
            l.wait_log(job, "^step 3$")
            self.assertEqual({a["state"] for a in l.show(job)["attempts"]}, {"running"})
            told = l.belay(
                "slurm",
                "srun",
                "--jobid=%d" % job,
                "--overlap",
                "-n",
                "3",
                "-N",
                "3",
                "-l",
                "sh",
                "-c",
                "echo $SLURMD_NODENAME $SEEN",
            )
            self.assertEqual(
                len({line.split()[1] for line in told.splitlines()}), 3, told
            )  # started from outside, on all nodes of the job
            doomed = self.node_of(l, job, 2)
            l.cloud({"reclaim": {"instance": self.machine_of(l, doomed), "notice_s": 4}})
            shown = l.wait_ended(job)
            self.assertEqual(
                (shown["job"]["end"], shown["job"]["script_on"]), ("succeeded", "first"), l.log(job)
            )
            self.assertEqual(
                [a["end"] for a in shown["attempts"]],
                ["gang", "gang", "reclaimed"] + ["succeeded"] * RANKS,
            )
            with open(os.path.join(l.dir, "first.out")) as f:
                told = [line for line in f.read().split("\n") if not line.startswith("srun: ")]
            expected = (
                ["script on node 0 of 3, tasks 2(x2),1"]
                + ["%d: %d %d of 5/3: two words sub 2(x2),1" % (i, i % 2, i // 2) for i in range(5)]
                + [
                    "3",
                    "code 8",
                    "killed 143",
                    "too many 1",
                    "0: leader 0 more",
                    "1: worker 0 of 1 more",
                    "2: worker 1 of 2 more",
                    "3: worker 2 of 3 more",
                    "4: last on 2 with more",
                    "to 0",
                    "to 1",
                    "to 2",
                    "left 0",
                    "left 1",
                    "left 2",
                ]
            )
            rest = ["waits"] * 3 + ["goes on"] * 3 + ["step 3"]
            self.assertEqual(told, expected + rest + expected + ["finished", ""])
            with open(os.path.join(l.dir, "cyclic.out")) as f:
                self.assertEqual(
                    sorted(f.read().split("\n")[:-1]), ["0 on 0", "1 on 1", "2 on 0", "3 on 1"]
                )

    def test_a_signal_reaches_all_nodes_and_each_of_them_names_the_job(self):
        def slurm(*words):
            return l.belay("slurm", *words).split()

        with Lab() as l:
            l.write("hears.sh", HEARS, 0o700)
            l.write("first.sh", HEARS_ON_FIRST)
            job = l.submit(os.path.join(l.dir, "hears.sh"), nodes=RANKS)
            for rank in range(RANKS):
                self.wait_rank_log(l, job, rank, "^up$")
            names = [n["name"] for n in l.get("/nodes")["nodes"]]
            self.assertEqual(len(names), RANKS)
            for name in names:
                self.assertEqual(
                    slurm("squeue", "-h", "-w", "other," + name, "-o", "%i"), [str(job)]
                )
                self.assertEqual(slurm("sacct", "-nX", "-N", name, "-o", "jobid"), [str(job)])
            self.assertEqual(slurm("squeue", "-h", "-w", "other", "-o", "%i"), [])
            slurm("scancel", "-s", "USR1", str(job))
            for rank in range(RANKS):
                self.wait_rank_log(l, job, rank, "^program heard$")
                self.assertNotIn("script heard", l.belay("logs", "--rank", str(rank), str(job)))
            slurm("scancel", "-b", "-s", "USR1", "-w", names[2])
            for rank in range(RANKS):
                self.wait_rank_log(l, job, rank, "^script heard$")
            slurm("scancel", "-w", "other")
            self.assertEqual(l.job(job)["state"], "running")
            slurm("scancel", "-w", names[1])
            self.assertEqual(l.wait_ended(job)["job"]["end"], "cancelled")
            job = int(slurm("sbatch", "--parsable", "first.sh")[0])
            l.wait_log(job, "^up\nup\nup$")
            slurm("scancel", "-s", "USR1", str(job))
            l.wait_log(job, "^heard\nheard\nheard$")
            slurm("scancel", str(job))
            l.wait_ended(job)

    def test_a_terminal_is_on_the_first_of_several_nodes(self):
        with Lab() as l:
            p = l.start_belay(
                "slurm",
                "srun",
                "-N",
                "2",
                "--pty",
                "sh",
                "-c",
                "echo on $SLURM_NODEID of $SLURM_NNODES; belay slurm srun -l echo step; exit 5",
            )
            told = p.communicate(timeout=WAIT_S)[0]
            self.assertEqual(
                (p.returncode, sorted(line.strip() for line in told.splitlines())),
                (5, ["0: step", "1: step", "on 0 of 2"]),
            )

    def test_a_rank_that_fails_ends_the_job_with_its_exit_code(self):
        with Lab() as l:
            job = self.start(l, 1, 30)
            shown = l.wait_ended(job)
            self.assertEqual((shown["job"]["end"], shown["job"]["exit_code"]), ("failed", 7))
            self.assertEqual(len(shown["attempts"]), RANKS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
