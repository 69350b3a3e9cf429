# SPDX-License-Identifier: Apache-2.0
# belayd on one small machine on Google Cloud, a bucket for checkpoints, and the two service accounts:
# belayd's, which may make and delete instances in the project, and the nodes', which reach the
# checkpoints and may delete belay's instances (each deletes itself if belayd is gone for good).

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0, < 8.0"
    }
  }
}

variable "project" {
  type = string
}

variable "region" {
  type    = string
  default = "us-central1"
}

variable "zones" {
  type    = list(string)
  default = ["us-central1-a", "us-central1-b"]
}

variable "network" {
  type    = string
  default = "default"
}

variable "subnet" {
  type    = string
  default = "default"
}

variable "node_cidrs" {
  type        = list(string)
  description = "Addresses of nodes and users, who connect to port 7443."
}

variable "machine_type" {
  type    = string
  default = "e2-small"
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
  description = "projects/PROJECT/global/images/family/FAMILY of the nodes, in this project."
}

variable "node_types" {
  type    = list(string)
  default = ["g2-standard-4", "g2-standard-12"]
}

variable "max_nodes" {
  type    = number
  default = 4
}

provider "google" {
  project = var.project
  region  = var.region
}

locals {
  configuration = yamlencode({
    cluster      = "lab"
    listen       = "0.0.0.0:7443"
    server       = "https://${google_compute_address.belayd.address}:7443"
    socket       = "/run/belay/belayd.sock"
    socket_users = "all"
    store        = "gs://${var.bucket}/belay"
    pools = {
      burst = {
        provider        = "gcp"
        project         = var.project
        region          = var.region
        zones           = var.zones
        types           = var.node_types
        markets         = ["spot", "on-demand"]
        image           = var.node_image
        subnet          = var.subnet
        max_nodes       = var.max_nodes
        service_account = google_service_account.node.email
        tags            = ["belay-node"]
      }
    }
  })
}

resource "google_storage_bucket" "store" {
  name                        = var.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
}

resource "google_service_account" "belayd" {
  account_id = "belayd"
}

resource "google_service_account" "node" {
  account_id = "belay-node"
}

resource "google_project_iam_custom_role" "belayd" {
  role_id     = "belayd"
  title       = "belayd"
  permissions = jsondecode(file("${path.module}/belayd-permissions.json"))
}

resource "google_project_iam_member" "belayd" {
  project = var.project
  role    = google_project_iam_custom_role.belayd.id
  member  = google_service_account.belayd.member
}

# Its instances run as the nodes' account: the right to set it, and to use this one account only.
resource "google_project_iam_custom_role" "set_account" {
  role_id     = "belaydSetAccount"
  title       = "belayd: instances with a service account"
  permissions = ["compute.instances.setServiceAccount"]
}

resource "google_project_iam_member" "set_account" {
  project = var.project
  role    = google_project_iam_custom_role.set_account.id
  member  = google_service_account.belayd.member
}

resource "google_service_account_iam_member" "belayd_node" {
  service_account_id = google_service_account.node.name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.belayd.member
}

resource "google_project_iam_custom_role" "node" {
  role_id     = "belayNode"
  title       = "belay: nodes"
  permissions = ["compute.instances.delete"]
}

resource "google_project_iam_member" "node" {
  project = var.project
  role    = google_project_iam_custom_role.node.id
  member  = google_service_account.node.member
  condition {
    title      = "belay"
    expression = "resource.name.extract(\"/instances/{name}\").startsWith(\"belay-\")"
  }
}

resource "google_storage_bucket_iam_member" "store" {
  for_each = {
    belayd = google_service_account.belayd.member
    node   = google_service_account.node.member
  }
  bucket = google_storage_bucket.store.name
  role   = "roles/storage.objectUser"
  member = each.value
}

resource "google_compute_address" "belayd" {
  name         = "belayd"
  address_type = "INTERNAL"
  subnetwork   = var.subnet
  region       = var.region
}

resource "google_compute_firewall" "belayd" {
  name                    = "belayd"
  network                 = var.network
  source_ranges           = var.node_cidrs
  target_service_accounts = [google_service_account.belayd.email]
  allow {
    protocol = "tcp"
    ports    = ["7443"]
  }
}

resource "google_compute_instance" "belayd" {
  name         = "belayd"
  machine_type = var.machine_type
  zone         = var.zones[0]

  boot_disk {
    auto_delete = false # it has the jobs, the ledger and the certificate authority
    initialize_params {
      image = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
      size  = 40
      type  = "pd-balanced"
    }
  }

  network_interface {
    subnetwork = var.subnet
    network_ip = google_compute_address.belayd.address
    access_config {}
  }

  service_account {
    email  = google_service_account.belayd.email
    scopes = ["cloud-platform"] # the account's roles are the limit
  }

  shielded_instance_config {
    enable_secure_boot = true
  }

  metadata = {
    enable-oslogin = "TRUE"
    user-data = templatefile("${path.module}/../belayd.cloud-init.yaml", {
      apt_source      = var.apt_source
      apt_key_b64     = base64encode(var.apt_key)
      belayd_yaml_b64 = base64encode(local.configuration)
    })
  }

  lifecycle {
    ignore_changes = [boot_disk[0].initialize_params[0].image, metadata["user-data"]]
  }
}

output "server" {
  value = "https://${google_compute_address.belayd.address}:7443"
}
