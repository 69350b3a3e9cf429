# SPDX-License-Identifier: Apache-2.0
"""The examples for Terraform: their rights are those of the documents, which are what the drivers
use, and no more; their files are well-formed; cloud-init takes the machine's user data.

BELAY_TERRAFORM_PLUGINS may name a folder with providers (terraform init -plugin-dir). An example
whose provider is not in there is only parsed.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "packaging" / "terraform"
CLOUDS = ROOT / "docs" / "how-to" / "clouds"
TERRAFORM = shutil.which("terraform") or shutil.which("tofu")
# Rights that EC2 asks for without a call of that name: tags and the nodes' role are given at the
# launch, the service-linked role is made by the first spot instance of an account.
INDIRECT = {"ec2:CreateTags", "iam:PassRole", "iam:CreateServiceLinkedRole"}


def run(*argv, text=""):
    env = {k: v for k, v in os.environ.items() if k != "TF_CLI_CONFIG_FILE"}
    return subprocess.run(
        argv,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        timeout=300,
        env={**env, "CHECKPOINT_DISABLE": "1"},
    )


def json_blocks(page):
    return re.findall(r"^```json\n(.*?)^```$", (CLOUDS / page).read_text(), re.S | re.M)


def actions(policy):
    found = set()
    for statement in policy["Statement"]:
        action = statement["Action"]
        found |= set([action] if isinstance(action, str) else action)
    return found


def sources(folder):
    return "".join(path.read_text() for path in sorted((ROOT / "cloud" / folder).glob("*.c")))


class Rights(unittest.TestCase):
    def test_the_policies_on_aws_are_those_of_the_page(self):
        for name, block, words in (
            (
                "belayd-policy.json",
                0,
                {"111122223333": "${account}", "role/belay-node": "role/${node_role}"},
            ),
            ("store-policy.json", 1, {"lab-checkpoints": "${bucket}"}),
        ):
            text = json_blocks("aws.md")[block]
            for there, here in words.items():
                text = text.replace(there, here)
            self.assertEqual(
                json.loads((EXAMPLES / "aws" / name).read_text()), json.loads(text), name
            )

    def test_belayd_may_do_on_aws_what_the_driver_asks_for_and_no_more(self):
        text = sources("aws")
        asked = {"ec2:" + name for name in re.findall(r'add_action\(\w+, "(\w+)"\)', text)}
        self.assertGreater(len(asked), 8)
        self.assertTrue("GetProducts" in text)
        self.assertTrue("SERVICE_QUOTAS_APPLIED" in text and "SERVICE_QUOTAS_DEFAULT" in text)
        others = {
            "pricing:GetProducts",
            "servicequotas:GetServiceQuota",
            "servicequotas:GetAWSDefaultServiceQuota",
        }
        policy = json.loads((EXAMPLES / "aws" / "belayd-policy.json").read_text())
        self.assertEqual(actions(policy), asked | others | INDIRECT)

    def test_the_actions_on_azure_are_those_of_the_page(self):
        page = json.loads(json_blocks("azure.md")[0])["Actions"]
        given = json.loads((EXAMPLES / "azure" / "belayd-actions.json").read_text())
        self.assertEqual(given, page)
        named = re.findall(r'\.permission = "(Microsoft\.\S+?)["\s]', sources("azure"))
        self.assertTrue(named)
        quotas = json.loads((EXAMPLES / "azure" / "quotas-actions.json").read_text())
        self.assertEqual(len(quotas), 1)
        self.assertIn('"Actions": ["%s"]' % quotas[0], (CLOUDS / "azure.md").read_text())
        self.assertLessEqual(set(named), {*given, *quotas})
        kinds = re.findall(r'\[ARM_\w+\] = "(Microsoft\.\S+)"', sources("azure"))
        self.assertEqual(len(kinds), 3)
        for kind in kinds:
            for verb in "read", "write", "delete":
                self.assertIn(kind + "/" + verb, given)

    def test_the_permissions_on_google_cloud_are_those_of_the_page(self):
        page = (CLOUDS / "gcp.md").read_text()
        table = page.split("A custom role with just these")[1].split("```")[1]
        listed = re.search(
            r"--permissions=((?:(?:compute|cloudquotas)\.[\w.]+,?(?:\\\n)?)+)", page
        )[1]
        given = json.loads((EXAMPLES / "gcp" / "belayd-permissions.json").read_text())
        self.assertEqual(given, sorted(re.findall(r"(?:compute|cloudquotas)\.[\w.]+", table)))
        self.assertEqual(given, sorted(re.findall(r"(?:compute|cloudquotas)\.[\w.]+", listed)))
        named = re.findall(r'\.permission = "(compute\.\S+)"', sources("gcp"))
        self.assertTrue(named)
        named += re.findall(r'finish_denied\(c, e, "(compute\.\S+)"\)', sources("gcp"))
        self.assertLessEqual(set(named), set(given))

    def test_an_example_gives_belayd_no_other_right(self):
        """Each role of an example is one of those above, or named here."""
        for cloud, others in (
            ("aws", set()),
            ("azure", {"Storage Blob Data Contributor"}),
            ("gcp", {"roles/iam.serviceAccountUser", "roles/storage.objectUser"}),
        ):
            text = (EXAMPLES / cloud / "main.tf").read_text()
            given = re.findall(r'(?m)^ +(?:role|role_definition_name) += "([^"]+)"', text)
            self.assertEqual(set(given), others, cloud)
            self.assertNotRegex(
                text, r"arn:aws:iam::aws:policy|AdministratorAccess|\"Contributor\""
            )
            listed = re.findall(r"(?m)^ +(?:permissions|actions) += (\[.*\])$", text)
            own = [["compute.instances.setServiceAccount"], ["compute.instances.delete"]]
            self.assertEqual([json.loads(t) for t in listed], own if cloud == "gcp" else [], cloud)


@unittest.skipUnless(TERRAFORM, "neither terraform nor tofu is installed")
class Examples(unittest.TestCase):
    def test_they_are_well_formed(self):
        done = run(TERRAFORM, "fmt", "-check", "-diff", "-recursive", str(EXAMPLES))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_they_are_valid(self):
        plugins = os.environ.get("BELAY_TERRAFORM_PLUGINS")
        if not plugins:
            self.skipTest("BELAY_TERRAFORM_PLUGINS names no folder with providers")
        options = ["-plugin-dir=" + plugins]
        for cloud in "aws", "azure", "gcp":
            with self.subTest(cloud), tempfile.TemporaryDirectory() as folder:
                shutil.copytree(EXAMPLES, folder + "/t")
                where = "-chdir=%s/t/%s" % (folder, cloud)
                done = run(TERRAFORM, where, "init", "-backend=false", "-input=false", *options)
                if done.returncode != 0:
                    self.assertRegex(done.stdout, "(?i)provider|registry", done.stdout)
                    self.skipTest("the provider of %s is not in there" % cloud)
                done = run(TERRAFORM, where, "validate", "-no-color")
                self.assertEqual(done.returncode, 0, done.stdout)

    def render(self, expression):
        """The value of an expression of Terraform's that names files of the examples."""
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                TERRAFORM, "-chdir=" + folder, "console", text="jsonencode(%s)\n" % expression
            )
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(json.loads(done.stdout))

    def test_cloud_init_takes_the_users_data(self):
        text = self.render(
            'templatefile("%s", {apt_source = "https://packages.lab.example noble main", '
            'apt_key_b64 = base64encode("KEY\\n"), '
            'belayd_yaml_b64 = base64encode("cluster: lab\\n")})'
            % (EXAMPLES / "belayd.cloud-init.yaml")
        )
        self.assertTrue(text.startswith("#cloud-config\n"))
        contents = re.findall(r"content: (\S+)", text)
        self.assertEqual([base64.b64decode(c) for c in contents], [b"KEY\n", b"cluster: lab\n"])
        program = shutil.which("cloud-init")
        if not program:
            self.skipTest("cloud-init is not installed: its schema was not checked")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(text)
            f.flush()
            done = run(program, "schema", "--config-file", f.name)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
