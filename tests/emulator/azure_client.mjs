// SPDX-License-Identifier: Apache-2.0
// Azure's own client for JavaScript against the emulator: creates a machine, finds it, deletes it.
//     node azure_client.mjs ENDPOINT TENANT SUBSCRIPTION

import assert from "node:assert/strict";
import { ComputeManagementClient } from "@azure/arm-compute";

const [endpoint, tenant, subscription] = process.argv.slice(2);
const GROUP = "lab";
const NAME = "job17-3";
const QUICK = { updateIntervalInMs: 100 };
const SUBNET = `/subscriptions/${subscription}/resourceGroups/${GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/s`;

async function getToken() {
    const reply = await fetch(`${endpoint}/${tenant}/oauth2/v2.0/token`, {
        method: "POST",
        body: new URLSearchParams({
            grant_type: "client_credentials", client_id: "belay", client_secret: "s3cret",
            scope: "https://management.azure.com/.default",
        }),
    });
    assert.equal(reply.status, 200);
    const body = await reply.json();
    return { token: body.access_token, expiresOnTimestamp: Date.now() + body.expires_in * 1000 };
}

// The client's own policy for tokens refuses to send one without TLS, even to this machine.
function makeClient(token) {
    const client = new ComputeManagementClient({ getToken: async () => token }, subscription,
        { endpoint, allowInsecureConnection: true, retryOptions: { maxRetries: 0 } });
    client.pipeline.removePolicy({ name: "bearerTokenAuthenticationPolicy" });
    client.pipeline.addPolicy({
        name: "static-token",
        sendRequest(request, next) {
            request.headers.set("Authorization", `Bearer ${token.token}`);
            request.allowInsecureConnection = true;
            return next(request);
        },
    });
    return client;
}

const machine = {
    location: "eastus",
    zones: ["1"],
    tags: { "belay-job": "17" },
    priority: "Spot",
    evictionPolicy: "Delete",
    billingProfile: { maxPrice: -1 },
    hardwareProfile: { vmSize: "Standard_D8s_v5" },
    storageProfile: {
        imageReference: { publisher: "Debian", offer: "debian-12", sku: "12-gen2", version: "latest" },
        osDisk: { createOption: "FromImage", deleteOption: "Delete", diskSizeGB: 32 },
    },
    osProfile: {
        computerName: NAME, adminUsername: "ops",
        customData: Buffer.from("#!/bin/sh\nexec sleep 600\n").toString("base64"),
        linuxConfiguration: {
            disablePasswordAuthentication: true,
            ssh: { publicKeys: [{ path: "/home/ops/.ssh/authorized_keys", keyData: "ssh-ed25519 AAAA ops" }] },
        },
    },
    diagnosticsProfile: { bootDiagnostics: { enabled: true } },
    networkProfile: {
        networkApiVersion: "2020-11-01",
        networkInterfaceConfigurations: [{
            name: "nic0", primary: true, deleteOption: "Delete",
            ipConfigurations: [{ name: "ip0", primary: true, subnet: { id: SUBNET } }],
        }],
    },
};

async function all(pages) {
    const found = [];
    for await (const item of pages)
        found.push(item);
    return found;
}

const client = makeClient(await getToken());

const made = await client.virtualMachines.beginCreateOrUpdateAndWait(GROUP, NAME, machine, QUICK);
assert.equal(made.provisioningState, "Succeeded");
assert.equal(made.priority, "Spot");
assert.equal(made.networkProfile.networkInterfaces.length, 1);
assert.equal(made.osProfile.customData, undefined);

const shown = await client.virtualMachines.get(GROUP, NAME, { expand: "instanceView" });
assert.ok(shown.instanceView.statuses.some((s) => s.code === "PowerState/running"));
assert.deepEqual((await all(client.virtualMachines.list(GROUP))).map((m) => m.name), [NAME]);
assert.deepEqual((await all(client.virtualMachines.listAll())).map((m) => m.vmId), [made.vmId]);
assert.equal((await all(client.disks.list())).length, 1);

const boot = await client.virtualMachines.retrieveBootDiagnosticsData(GROUP, NAME, { sasUriExpirationTimeInMinutes: 5 });
const log = await fetch(boot.serialConsoleLogBlobUri);
assert.equal(log.status, 200);
assert.equal((await fetch(boot.serialConsoleLogBlobUri.replace("sig=", "sig=x"))).status, 403);

// More than one page.
for (let i = 0; i < 3; i++)
    await client.virtualMachines.beginCreateOrUpdateAndWait(GROUP, `more-${i}`, machine, QUICK);
assert.equal((await all(client.virtualMachines.list(GROUP))).length, 4);
for (let i = 0; i < 3; i++)
    await client.virtualMachines.beginDeleteAndWait(GROUP, `more-${i}`, { forceDeletion: true, ...QUICK });

// Its errors are understood as errors of the service.
await assert.rejects(client.virtualMachines.beginCreateOrUpdateAndWait(GROUP, "full", { ...machine, zones: ["2"] }),
    (e) => e.code === "SkuNotAvailable" && e.statusCode === 409);
await assert.rejects(client.virtualMachines.get(GROUP, "nobody"), (e) => e.code === "ResourceNotFound");
await assert.rejects(makeClient({ token: "a.b.c", expiresOnTimestamp: 0 }).virtualMachines.get(GROUP, NAME),
    (e) => e.statusCode === 401);

await client.virtualMachines.beginDeleteAndWait(GROUP, NAME, QUICK);
assert.deepEqual(await all(client.virtualMachines.listAll()), []);
assert.deepEqual(await all(client.disks.list()), []);
console.log("created, listed and deleted");
