# SPDX-License-Identifier: Apache-2.0
"""The completion scripts: shells accept them, and they offer what fits. bash exists on every
machine that builds belay; zsh and fish are tested where they are installed.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import manual


def script(shell):
    code, out, err = manual.run(os.environ["BELAY"], "completion", shell)
    assert (code, err) == (0, ""), err
    return out


class Completion(unittest.TestCase):
    def file(self, shell):
        file = tempfile.NamedTemporaryFile("w", suffix="." + shell)
        self.addCleanup(file.close)
        file.write(script(shell))
        file.flush()
        return file.name

    def has(self, shell):
        if shutil.which(shell):
            return True
        print(f"SKIP: {shell} is not installed")
        return False

    def bash(self, line):
        """The completions of the line's last word, with words split at '=' as bash does."""
        words = line.replace("=", " = ").split(" ")
        words = [w for w in words[:-1] if w] + words[-1:]
        function = "_belay" if words[0] == "belay" else "_belay_slurm"
        call = f'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); {function}; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(
            ["bash", "-u", "-c", call, self.file("bash"), *words], capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash_takes_it(self):
        self.assertEqual(manual.run("bash", "-n", self.file("bash")), (0, "", ""))
        code, out, _ = manual.run("bash", "-c", f"source {self.file('bash')}; complete -p belay")
        self.assertEqual(code, 0)
        self.assertIn("-F _belay", out)

    def test_bash_offers_what_fits(self):
        for line, offered in (
            ("belay subm", ["submit"]),
            ("belay can", ["cancel"]),
            ("belay nothing-", []),
            ("belay submit --mark", ["--market"]),
            ("belay submit --market ", ["any", "spot", "on-demand"]),
            ("belay submit --market=", ["any", "spot", "on-demand"]),
            ("belay run --checkpoint=co", ["coop"]),
            ("belay cost --by d", ["day"]),
            ("belay token ", ["create", "list", "revoke"]),
            ("belay nodes dr", ["drain"]),
            ("belay completion f", ["fish"]),
            ("belay why -", ["--json", "--utc", "--color", "--help"]),
            ("belay why --color ", ["auto", "always", "never"]),
            ("belay submit tra", []),  # a file name: completed by bash itself
            ("belay update 42 ti", ["time="]),
            ("belay update 42 market=", ["any", "spot", "on-demand", "none"]),
            ("belay update 42 requeue=n", ["no"]),
            ("belay nonsense --x", []),
        ):
            with self.subTest(line):
                self.assertEqual(self.bash(line), offered)

    def test_bash_asks_belay_for_jobs_nodes_and_pools(self):
        with tempfile.TemporaryDirectory() as folder:
            belay = os.path.join(folder, "belay")
            with open(belay, "w") as f:
                f.write('#!/bin/sh\necho "$1"-7\n')
            os.chmod(belay, 0o755)
            path = folder + ":" + os.environ["PATH"]
            with unittest.mock.patch.dict(os.environ, {"PATH": path}):
                for line, offered in (
                    ("belay cancel ", ["list-7"]),
                    ("belay show li", ["list-7"]),
                    ("belay nodes drain ", ["drain", "undrain", "remove", "nodes-7"]),
                    ("belay submit --pool ", ["pools-7"]),
                    ("belay reservation rm res", ["reservation-7"]),
                    ("belay reservation show ", ["add", "list", "show", "remove", "reservation-7"]),
                    ("belay calendar show cal", ["calendar-7"]),
                    ("belay calendar remove ", ["set", "list", "show", "remove", "calendar-7"]),
                    ("belay cron --skip-on ", ["calendar-7"]),
                    ("belay cron --only-on=", ["calendar-7"]),
                    ("sbatch -p ", ["pools-7"]),
                    ("srun --partition=", ["pools-7"]),
                    ("sinfo --partition ", ["pools-7"]),
                    ("squeue -j ", ["list-7"]),
                    ("squeue -w no", ["nodes-7"]),
                    ("scancel ", ["list-7"]),
                    ("/usr/bin/seff li", ["list-7"]),
                    ("sstat --jobs=", ["list-7"]),
                    ("sacct -j li", ["list-7"]),
                    ("scontrol rel", ["release"]),
                    ("scontrol release ", ["list-7"]),
                    ("scontrol show par", ["partition"]),
                    ("scontrol show partition ", ["pools-7"]),
                    ("scontrol show job ", ["list-7"]),
                    ("sbatch tra", []),
                    ("belay submit tra", []),
                ):
                    with self.subTest(line):
                        self.assertEqual(self.bash(line), offered)

    def test_every_option_of_slurms_names_is_offered(self):
        names = ["sbatch", "squeue", "scancel", "sinfo", "sacct", "scontrol", "srun", "salloc"]
        code, out, _ = manual.run("bash", "-c", f"source {self.file('bash')}; complete -p")
        self.assertEqual(code, 0)
        for name in (*names, "sstat", "sshare", "seff"):
            with self.subTest(name):
                self.assertRegex(out, rf"(?m) -F _belay_slurm {name}$")
                offered = self.bash(f"{name} --")
                self.assertEqual(len(offered), len(set(offered)))
                self.assertIn("--version", offered)
        self.assertIn("--array", self.bash("sbatch --arr"))
        self.assertIn("--parsable2", self.bash("sacct --parsable"))

    def test_every_verb_and_option_is_offered(self):
        verbs = [v for v in self.bash("belay ") if not v.startswith("-")]
        self.assertEqual(verbs, manual.verbs())
        for verb in verbs:
            with self.subTest(verb):
                offered = set(self.bash(f"belay {verb} --"))
                self.assertEqual(
                    offered, {o for o in manual.options_of_verb(verb) if o.startswith("--")}
                )

    def test_fish_takes_it_and_offers_what_fits(self):
        if not self.has("fish"):
            return
        file = self.file("fish")
        for line, offered in (
            ("belay subm", ["submit"]),
            ("belay submit --market ", ["any", "on-demand", "spot"]),
            ("belay token ", ["create", "list", "revoke"]),
            ("belay cost --by", ["--by"]),
            ("belay update 42 ti", ["time="]),
        ):
            with self.subTest(line):
                code, out, err = manual.run(
                    "fish", "--no-config", "-c", f"source {file}; complete -C '{line}'"
                )
                self.assertEqual((code, err), (0, ""))
                self.assertEqual(sorted(row.split("\t")[0] for row in out.splitlines()), offered)

    def test_zsh_takes_it(self):
        if self.has("zsh"):
            self.assertEqual(manual.run("zsh", "-n", self.file("zsh")), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
