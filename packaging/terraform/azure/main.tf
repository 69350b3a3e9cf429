# SPDX-License-Identifier: Apache-2.0
# belayd on one small machine on Azure, a container for checkpoints, and the two identities: belayd's,
# which may make and delete machines in belay's resource group and read the subscription's quotas, and
# the nodes', which reach the checkpoints only.

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = ">= 3.100, < 5.0"
    }
  }
}

variable "subscription" {
  type = string
}

variable "region" {
  type    = string
  default = "eastus"
}

variable "address_space" {
  type    = string
  default = "10.66.0.0/16"
}

variable "node_cidrs" {
  type        = list(string)
  description = "Addresses of nodes and users, who connect to port 7443."
}

variable "vm_size" {
  type    = string
  default = "Standard_B2s"
}

variable "ssh_key" {
  type        = string
  description = "Public key of an administrator: Azure makes no Linux machine without one."
}

variable "storage_account" {
  type        = string
  description = "Name of the storage account to make for checkpoints."
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
  type    = string
  default = "Canonical:ubuntu-24_04-lts:server:latest"
}

variable "node_types" {
  type    = list(string)
  default = ["Standard_NC4as_T4_v3"]
}

variable "max_nodes" {
  type    = number
  default = 4
}

provider "azurerm" {
  subscription_id = var.subscription
  features {}
}

locals {
  configuration = yamlencode({
    cluster      = "lab"
    listen       = "0.0.0.0:7443"
    server       = "https://${azurerm_network_interface.belayd.private_ip_address}:7443"
    socket       = "/run/belay/belayd.sock"
    socket_users = "all"
    store        = "az://${var.storage_account}/checkpoints/belay"
    pools = {
      burst = {
        provider       = "azure"
        region         = var.region
        zones          = [var.region]
        types          = var.node_types
        markets        = ["spot", "on-demand"]
        subscription   = var.subscription
        resource_group = azurerm_resource_group.belay.name
        image          = var.node_image
        subnet         = "${azurerm_virtual_network.belay.name}/${azurerm_subnet.nodes.name}"
        ssh_key        = var.ssh_key
        identity       = azurerm_user_assigned_identity.node.id
        max_nodes      = var.max_nodes
      }
    }
  })
}

resource "azurerm_resource_group" "belay" {
  name     = "belay"
  location = var.region
}

resource "azurerm_virtual_network" "belay" {
  name                = "belay"
  resource_group_name = azurerm_resource_group.belay.name
  location            = var.region
  address_space       = [var.address_space]
}

resource "azurerm_subnet" "nodes" {
  name                 = "nodes"
  resource_group_name  = azurerm_resource_group.belay.name
  virtual_network_name = azurerm_virtual_network.belay.name
  address_prefixes     = [var.address_space]
}

resource "azurerm_storage_account" "store" {
  name                            = var.storage_account
  resource_group_name             = azurerm_resource_group.belay.name
  location                        = var.region
  account_tier                    = "Standard"
  account_replication_type        = "LRS"
  allow_nested_items_to_be_public = false
  shared_access_key_enabled       = false
  min_tls_version                 = "TLS1_2"
}

resource "azurerm_storage_container" "checkpoints" {
  name                  = "checkpoints"
  storage_account_name  = azurerm_storage_account.store.name
  container_access_type = "private"
}

resource "azurerm_user_assigned_identity" "belayd" {
  name                = "belayd"
  resource_group_name = azurerm_resource_group.belay.name
  location            = var.region
}

resource "azurerm_user_assigned_identity" "node" {
  name                = "belay-node"
  resource_group_name = azurerm_resource_group.belay.name
  location            = var.region
}

resource "azurerm_role_definition" "belayd" {
  name        = "belayd"
  scope       = azurerm_resource_group.belay.id
  description = "What belayd does in its resource group"
  permissions {
    actions = jsondecode(file("${path.module}/belayd-actions.json"))
  }
  assignable_scopes = [azurerm_resource_group.belay.id]
}

resource "azurerm_role_assignment" "belayd" {
  scope              = azurerm_resource_group.belay.id
  role_definition_id = azurerm_role_definition.belayd.role_definition_resource_id
  principal_id       = azurerm_user_assigned_identity.belayd.principal_id
}

# Quotas are the subscription's: belay admin doctor compares them with what the pools may start.
resource "azurerm_role_definition" "quotas" {
  name        = "belayd-quotas"
  scope       = "/subscriptions/${var.subscription}"
  description = "Reads the quotas of the subscription"
  permissions {
    actions = jsondecode(file("${path.module}/quotas-actions.json"))
  }
  assignable_scopes = ["/subscriptions/${var.subscription}"]
}

resource "azurerm_role_assignment" "quotas" {
  scope              = "/subscriptions/${var.subscription}"
  role_definition_id = azurerm_role_definition.quotas.role_definition_resource_id
  principal_id       = azurerm_user_assigned_identity.belayd.principal_id
}

resource "azurerm_role_assignment" "store" {
  for_each = {
    belayd = azurerm_user_assigned_identity.belayd.principal_id
    node   = azurerm_user_assigned_identity.node.principal_id
  }
  scope                = azurerm_storage_container.checkpoints.resource_manager_id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = each.value
}

resource "azurerm_network_security_group" "belayd" {
  name                = "belayd"
  resource_group_name = azurerm_resource_group.belay.name
  location            = var.region

  security_rule {
    name                       = "nodes-and-users"
    priority                   = 100
    direction                  = "Inbound"
    access                     = "Allow"
    protocol                   = "Tcp"
    source_port_range          = "*"
    destination_port_range     = "7443"
    source_address_prefixes    = var.node_cidrs
    destination_address_prefix = "*"
  }
}

resource "azurerm_network_interface" "belayd" {
  name                = "belayd"
  resource_group_name = azurerm_resource_group.belay.name
  location            = var.region
  ip_configuration {
    name                          = "internal"
    subnet_id                     = azurerm_subnet.nodes.id
    private_ip_address_allocation = "Dynamic"
  }
}

resource "azurerm_network_interface_security_group_association" "belayd" {
  network_interface_id      = azurerm_network_interface.belayd.id
  network_security_group_id = azurerm_network_security_group.belayd.id
}

resource "azurerm_linux_virtual_machine" "belayd" {
  name                  = "belayd"
  resource_group_name   = azurerm_resource_group.belay.name
  location              = var.region
  size                  = var.vm_size
  network_interface_ids = [azurerm_network_interface.belayd.id]
  admin_username        = "ops" # belay is the user that belayd runs as
  secure_boot_enabled   = true
  vtpm_enabled          = true
  custom_data = base64encode(templatefile("${path.module}/../belayd.cloud-init.yaml", {
    apt_source      = var.apt_source
    apt_key_b64     = base64encode(var.apt_key)
    belayd_yaml_b64 = base64encode(local.configuration)
  }))

  admin_ssh_key {
    username   = "ops"
    public_key = var.ssh_key
  }

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.belayd.id]
  }

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
    disk_size_gb         = 40
  }

  source_image_reference {
    publisher = "Canonical"
    offer     = "ubuntu-24_04-lts"
    sku       = "server"
    version   = "latest"
  }

  lifecycle {
    prevent_destroy = true # its disk has the jobs, the ledger and the certificate authority
    ignore_changes  = [custom_data, source_image_reference]
  }
}

output "server" {
  value = "https://${azurerm_network_interface.belayd.private_ip_address}:7443"
}
