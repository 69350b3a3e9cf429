# SPDX-License-Identifier: Apache-2.0
# belayd on one small machine on AWS, a bucket for checkpoints, and the two roles: belayd's, which may
# launch and end belay's own instances, and the nodes', which reach the checkpoints only.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40, < 7.0"
    }
  }
}

variable "region" {
  type    = string
  default = "us-east-1"
}

variable "subnet" {
  type        = string
  description = "Subnet of belayd's machine; nodes reach it by its private address."
}

variable "node_cidrs" {
  type        = list(string)
  description = "Addresses of nodes and users, who connect to port 7443."
}

variable "admin_cidrs" {
  type        = list(string)
  default     = []
  description = "Addresses that may log in over ssh; none by default (use Session Manager)."
}

variable "instance_type" {
  type    = string
  default = "t3.small"
}

variable "bucket" {
  type        = string
  description = "Name of the bucket to make for checkpoints."
}

variable "apt_source" {
  type        = string
  description = "Where your packages are: URL SUITE COMPONENT, as in sources.list."
}

variable "apt_key" {
  type        = string
  description = "The public key that signs them (ASCII-armoured)."
}

variable "node_image" {
  type        = string
  description = "AMI of the nodes."
}

variable "node_types" {
  type    = list(string)
  default = ["g6.xlarge", "g5.xlarge"]
}

variable "zones" {
  type    = list(string)
  default = ["us-east-1a", "us-east-1b"]
}

variable "max_nodes" {
  type    = number
  default = 4
}

provider "aws" {
  region = var.region
}

data "aws_caller_identity" "this" {}

data "aws_subnet" "this" {
  id = var.subnet
}

data "aws_ami" "ubuntu" {
  most_recent = true
  owners      = ["099720109477"] # Canonical
  filter {
    name   = "name"
    values = ["ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-*"]
  }
}

locals {
  store_policy = templatefile("${path.module}/store-policy.json", { bucket = var.bucket })
  ec2_trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
  # The address is that of an interface made before the machine, because the configuration names it.
  configuration = yamlencode({
    cluster      = "lab"
    listen       = "0.0.0.0:7443"
    server       = "https://${aws_network_interface.belayd.private_ip}:7443"
    socket       = "/run/belay/belayd.sock"
    socket_users = "all"
    store        = "s3://${var.bucket}/belay?region=${var.region}"
    pools = {
      burst = {
        provider    = "aws"
        region      = var.region
        zones       = var.zones
        types       = var.node_types
        markets     = ["spot", "on-demand"]
        image       = var.node_image
        max_nodes   = var.max_nodes
        iam_profile = aws_iam_instance_profile.node.name
      }
    }
  })
}

resource "aws_s3_bucket" "store" {
  bucket = var.bucket
}

resource "aws_s3_bucket_public_access_block" "store" {
  bucket                  = aws_s3_bucket.store.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

# What a killed agent left of an upload. No rule may expire objects: old chunks belong to new
# checkpoints.
resource "aws_s3_bucket_lifecycle_configuration" "store" {
  bucket = aws_s3_bucket.store.id
  rule {
    id     = "unfinished-uploads"
    status = "Enabled"
    filter {}
    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}

resource "aws_iam_role" "node" {
  name               = "belay-node"
  assume_role_policy = local.ec2_trust
}

resource "aws_iam_role_policy" "node_store" {
  name   = "store"
  role   = aws_iam_role.node.id
  policy = local.store_policy
}

resource "aws_iam_instance_profile" "node" {
  name = "belay-node"
  role = aws_iam_role.node.name
}

resource "aws_iam_role" "belayd" {
  name               = "belayd"
  assume_role_policy = local.ec2_trust
}

resource "aws_iam_role_policy" "belayd" {
  name = "belayd"
  role = aws_iam_role.belayd.id
  policy = templatefile("${path.module}/belayd-policy.json", {
    account   = data.aws_caller_identity.this.account_id
    node_role = aws_iam_role.node.name
  })
}

# belayd removes the checkpoints of jobs that ended.
resource "aws_iam_role_policy" "belayd_store" {
  name   = "store"
  role   = aws_iam_role.belayd.id
  policy = local.store_policy
}

resource "aws_iam_instance_profile" "belayd" {
  name = "belayd"
  role = aws_iam_role.belayd.name
}

resource "aws_security_group" "belayd" {
  name        = "belayd"
  description = "belayd: nodes and users connect to it"
  vpc_id      = data.aws_subnet.this.vpc_id

  ingress {
    description = "nodes and users"
    from_port   = 7443
    to_port     = 7443
    protocol    = "tcp"
    cidr_blocks = var.node_cidrs
  }

  dynamic "ingress" {
    for_each = length(var.admin_cidrs) > 0 ? [1] : []
    content {
      description = "administrators"
      from_port   = 22
      to_port     = 22
      protocol    = "tcp"
      cidr_blocks = var.admin_cidrs
    }
  }

  egress {
    description = "EC2, S3, packages"
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_network_interface" "belayd" {
  subnet_id       = var.subnet
  security_groups = [aws_security_group.belayd.id]
}

resource "aws_instance" "belayd" {
  ami                  = data.aws_ami.ubuntu.id
  instance_type        = var.instance_type
  iam_instance_profile = aws_iam_instance_profile.belayd.name
  user_data = templatefile("${path.module}/../belayd.cloud-init.yaml", {
    apt_source      = var.apt_source
    apt_key_b64     = base64encode(var.apt_key)
    belayd_yaml_b64 = base64encode(local.configuration)
  })

  network_interface {
    network_interface_id = aws_network_interface.belayd.id
    device_index         = 0
  }

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type           = "gp3"
    volume_size           = 40
    encrypted             = true
    delete_on_termination = false # it has the jobs, the ledger and the certificate authority
  }

  tags = { Name = "belayd" }

  lifecycle {
    ignore_changes = [ami, user_data] # a newer image or configuration must not replace the machine
  }
}

output "server" {
  value = "https://${aws_network_interface.belayd.private_ip}:7443"
}
