# SPDX-License-Identifier: Apache-2.0
"""Pools of three providers without credentials, whose metadata services are at a port of this
machine."""

import re

BARE = """cluster: lab
listen: 127.0.0.1:0
pools:
  aws:
    provider: aws
    region: us-east-1
    zones: [us-east-1a]
    types: [m6i.xlarge]
    markets: [spot]
    image: ami-1
    endpoint: http://127.0.0.1:9
    metadata: http://127.0.0.1:%(metadata)d
    max_nodes: 4
  azure:
    provider: azure
    region: eastus
    zones: ["1"]
    types: [Standard_NC4as_T4_v3]
    markets: [spot]
    subscription: 8a6f2c1e-0b0d-4e5f-9f3a-5d2b7c9e1a44
    resource_group: lab
    image: "a:b:c:latest"
    subnet: net/nodes
    ssh_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ ops@lab
    endpoint: http://127.0.0.1:9
    metadata: http://127.0.0.1:%(metadata)d
    max_nodes: 4
  gcp:
    provider: gcp
    region: us-central1
    zones: [us-central1-a]
    types: [g2-standard-4]
    markets: [spot]
    project: lab-123
    image: projects/lab-123/global/images/family/belay-node
    endpoint: http://127.0.0.1:9
    metadata: http://127.0.0.1:%(metadata)d
    max_nodes: 4
"""
CLEAN = ["env", "-u", "GOOGLE_APPLICATION_CREDENTIALS", "-u", "AZURE_CLIENT_SECRET"]
CLEAN += ["-u", "AWS_ACCESS_KEY_ID", "-u", "AWS_SECRET_ACCESS_KEY", "HOME=/nonexistent"]


def bare(text, pool):
    """The configuration with only this pool."""
    head, *pools = re.split(r"^(?=  \w+:$)", text, flags=re.M)
    return head + "".join(p for p in pools if p.startswith("  %s:" % pool))
