// SPDX-License-Identifier: Apache-2.0
// Google's own clients against the emulator: node gce_client.js PORTS.json KEY.json; run where @google-cloud/compute is
// installed. Prints what it saw as a line of JSON.
"use strict";
const fs = require("fs");
const assert = require("assert");
const { createRequire } = require("module");
const from = createRequire(process.cwd() + "/");
const { InstancesClient, ZoneOperationsClient } = from("@google-cloud/compute");
const { GoogleAuth } = from("google-auth-library");
const gcpMetadata = from("gcp-metadata");

const ports = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const api = new URL(ports.gcp);
const project = ports.gcp_project,
    zone = "us-central1-a";
const scopes = ["https://www.googleapis.com/auth/cloud-platform"];

function resource(name) {
    return {
        name,
        machineType: `zones/${zone}/machineTypes/n2-standard-8`,
        scheduling: { provisioningModel: "SPOT", instanceTerminationAction: "DELETE" },
        disks: [
            {
                boot: true,
                autoDelete: true,
                initializeParams: {
                    sourceImage: "projects/debian-cloud/global/images/family/debian-12",
                    diskSizeGb: "100",
                },
            },
        ],
        networkInterfaces: [{ network: "global/networks/default" }],
        serviceAccounts: [{ email: "default", scopes }],
        labels: { job: "17" },
    };
}

// A GPU cannot be moved to another host.
function withGpus(name, host) {
    return {
        ...resource(name),
        machineType: `zones/${zone}/machineTypes/n1-standard-8`,
        scheduling: { provisioningModel: "STANDARD", onHostMaintenance: host },
        guestAccelerators: [
            {
                acceleratorType: `projects/${project}/zones/${zone}/acceleratorTypes/nvidia-tesla-t4`,
                acceleratorCount: 2,
            },
        ],
        labels: { job: "18" },
    };
}

async function metadataUrl(name) {
    const state = await (await fetch(ports.control + "/state")).json();
    return state.instances.find((i) => i.name === name).metadata;
}

async function main() {
    // The client asks only Google's own address for tokens: it signs its own instead.
    const auth = new GoogleAuth({ keyFile: process.argv[3], scopes, projectId: project });
    (await auth.getClient()).useJWTAccessWithScope = true;
    const options = { auth, apiEndpoint: api.hostname, port: Number(api.port), protocol: "http" };
    const instances = new InstancesClient(options),
        operations = new ZoneOperationsClient(options);
    const finish = async (call) => {
        const [reply] = await call;
        let [op] = await operations.wait({ project, zone, operation: reply.latestResponse.name });
        while (op.status !== "DONE")
            [op] = await operations.wait({ project, zone, operation: op.name });
        return op;
    };
    const list = async () => {
        const found = [];
        for await (const i of instances.listAsync({
            project,
            zone,
            filter: "labels.job = 17",
            maxResults: 1,
        }))
            found.push(i.name);
        return found;
    };

    const seen = {};
    for (const name of ["a", "b"]) {
        const op = await finish(
            instances.insert({ project, zone, instanceResource: resource(name) }),
        );
        assert.ok(!op.error);
    }
    seen.full = (
        await finish(instances.insert({ project, zone, instanceResource: resource("c") }))
    ).error.errors[0].code;
    seen.list = await list();
    seen.zones = [];
    for await (const [scope, found] of instances.aggregatedListAsync({ project }))
        if (found.instances.length > 0) seen.zones.push(scope);
    const [shown] = await instances.get({ project, zone, instance: "a" });
    seen.status = shown.status;
    await assert.rejects(
        instances.insert({ project, zone, instanceResource: resource("a") }),
        /already exists/,
    );
    await assert.rejects(instances.get({ project, zone, instance: "none" }), /not found/);

    // On the instance: the metadata library, and a token that it gets there.
    const url = new URL(await metadataUrl("a"));
    process.env.GCE_METADATA_HOST = url.host;
    seen.id = String(await gcpMetadata.instance("id")) === String(shown.id);
    seen.preempted = await gcpMetadata.instance("preempted");
    const there = new GoogleAuth({ scopes, projectId: project });
    const onInstance = new InstancesClient({ ...options, auth: there });
    const [same] = await onInstance.get({ project, zone, instance: "a" });
    seen.byToken = same.name;

    const insert = (resource) =>
        finish(instances.insert({ project, zone, instanceResource: resource }));
    await assert.rejects(insert(withGpus("g", "MIGRATE")), /do not support live migration/);
    assert.ok(!(await insert(withGpus("g", "TERMINATE"))).error);
    const [gpus] = await instances.get({ project, zone, instance: "g" });
    const last = (url) => url.split("/").pop();
    seen.gpus = [
        last(gpus.machineType),
        last(gpus.guestAccelerators[0].acceleratorType),
        gpus.guestAccelerators[0].acceleratorCount,
        gpus.scheduling.onHostMaintenance,
    ];
    seen.noGpus = (await insert(withGpus("h", "TERMINATE"))).error.errors[0].code;
    await finish(instances.delete({ project, zone, instance: "g" }));

    await finish(instances.delete({ project, zone, instance: "a" }));
    await finish(instances.delete({ project, zone, instance: "b" }));
    seen.left = await list();
    console.log(JSON.stringify(seen));
}

main().catch((e) => {
    console.error(e);
    process.exit(1);
});
