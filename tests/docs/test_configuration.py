# SPDX-License-Identifier: Apache-2.0
"""docs/reference/configuration.md compared with the programs that read the files: its examples are
accepted, its mistake is refused with the quoted error, and it describes exactly the keys that
are read.
"""

import os
import re
import tempfile
import unittest
from pathlib import Path

import manual

EMULATOR = "docs/reference/emulator.md"
PAGE = "docs/reference/configuration.md"


def keys_read(source):
    """The keys passed to the readers of base/yaml.h, and to the file's own ones built on them."""
    return set(
        re.findall(
            r'\b(?:yaml_(?:opt|req)\w*|(?:config_)?opt_\w+|read_words|read_hook|config_read_retries)\(\s*&?r,\s*"(\w+)"',
            manual.read(source),
        )
    )


def keys_described(section):
    """The first cells of the tables."""
    keys = set()
    for line in section.splitlines():
        if line.startswith("| `"):
            keys |= set(re.findall(r"`(\w+)`", line.split("|")[1]))
    return keys


class Configuration(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def check(self, text):
        """Checks the text with the parser of the program that reads this file."""
        name = "agent.yaml" if text.startswith("# agent.yaml") else "belayd.yaml"
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        # --check would look for the files and hosts of the examples
        parse = "BELAY_AGENT_PARSE" if name == "agent.yaml" else "BELAYD_PARSE"
        code, _, err = manual.run(os.environ[parse], path)
        return code, err.replace(f"{self.folder}/", "")

    def test_every_example_is_taken(self):
        n = 0
        pages = [
            str(p.relative_to(manual.ROOT))
            for folder in ("docs/how-to/clouds", "docs/tutorial")
            for p in (manual.ROOT / folder).glob("*.md")
        ]
        for page in (PAGE, "README.md", EMULATOR, *pages):
            for line, text in manual.blocks(page, "yaml"):
                if page == EMULATOR and not text.startswith("# belayd.yaml"):
                    continue
                with self.subTest(f"{page}:{line}"):
                    self.assertEqual(self.check(text), (0, ""))
                    n += 1
        self.assertGreaterEqual(n, 4)

    def test_the_emulators_configuration_is_checked_too(self):
        path = self.folder / "emulator.yaml"
        text = (
            "keys:\n  - {access_key: a, secret_key: b}\n"
            "pools:\n  - {zone: us-east-1a, type: m6i.xlarge, on_demand: {capacity: 1}}\n"
        )
        for more, expected in (("", (0, "the configuration is fine\n")), ("noise: 1\n", (2, ""))):
            path.write_text(text + more)
            code, out, err = manual.run(os.environ["BELAY_EMULATOR"], "--check", "--config", path)
            self.assertEqual((code, out), expected)
        self.assertRegex(err, r"emulator\.yaml:5: .*noise")

    def test_the_mistake_that_is_shown_is_refused_in_these_words(self):
        shown = re.search(r"^belayd: belayd\.yaml:.*$", manual.read(PAGE), re.M)[0]
        example = manual.blocks(PAGE, "yaml")[0][1]
        self.assertEqual(self.check(example.replace("g6.xlarge", "g6.xlrge")), (2, shown + "\n"))

    def test_every_key_is_described_and_no_other(self):
        belayd, agent = manual.read(PAGE).split("\n## belay-agent\n")
        agent = agent.split("\n## belay\n")[0]
        read = set()
        for part in (
            "access",
            "run_as",
            "config",
            "digest",
            "failing_nodes",
            "notify",
            "offers",
            "oidc",
            "policy",
            "pools",
            "procurement",
            "readers",
            "retention",
            "spend",
            "store",
            "telemetry",
            "windows",
        ):
            read |= keys_read(f"scheduler/config/{part}.c")
        read |= keys_read("scheduler/config/budgets.c") | set(
            re.findall(r'"(usd_per_\w+)"', manual.read("scheduler/config/budgets.c"))
        )
        read |= {"webhooks", "mail", "notify_allow", "budgets", "match", "labels"}
        read |= {"calendars", "idle_gpus", "digest", "spend_anomalies"}
        read |= {"volume_usd_per_gib_month"}
        read |= {"teams", "roles"}  # of oidc:
        read |= (keys_read("scheduler/config/racks.c") - {"idle", "full"}) | {
            "racks",
            "node_types",
            "watts",
        }
        self.assertEqual(keys_described(belayd), read - {"limits", "providers"})
        self.assertEqual(keys_described(agent), keys_read("agent/config.c"))

    def test_every_setting_of_a_provider_is_described_on_its_page(self):
        providers = re.search(
            r"cloud_provider_names\[\] = \{(.*?), NULL\}", manual.read("cloud/provider.c"), re.S
        )[1]
        for name in re.findall(r'"(\w+)"', providers):
            settings = set()
            for source in (manual.ROOT / "cloud" / name).glob("*.c"):
                settings |= set(re.findall(r'\{"(\w+)",\s*CLOUD_SETTING_', source.read_text()))
            with self.subTest(name):
                self.assertTrue(settings)
                self.assertLessEqual(
                    settings, keys_described(manual.read(f"docs/how-to/clouds/{name}.md"))
                )
                self.assertIn(f"clouds/{name}.md", manual.read(PAGE))

    def test_the_variables_of_the_command_line_are_described(self):
        described = set(re.findall(r"`(BELAY_\w+)`", manual.read(PAGE).split("\n## belay\n")[1]))
        self.assertEqual(
            described, set(re.findall(r'"(BELAY_[A-Z_]+)"', manual.read("cli/client.c")))
        )


if __name__ == "__main__":
    unittest.main()
