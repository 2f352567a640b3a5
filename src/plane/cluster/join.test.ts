import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Client } from '#client/client.ts';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { conflict, notFound } from '#kube/api-error.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { joinNode } from '#plane/cluster/join.ts';
import type { SigningRequest } from '#plane/node/signing-requests.ts';

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const ACCESS: ClusterAccess = {
  server: 'https://10.0.0.1:6443',
  namespace: 'default',
  certificateAuthority: CERTIFICATE,
  serverName: 'kubernetes.default',
  insecureSkipTlsVerify: false,
};

interface Cluster {
  /** Labels of an existing Node of that name. */
  readonly labels?: Record<string, string>;
  /** Status of the request after its approval. */
  readonly status?: SigningRequest['status'];
  /** Number of concurrent writes by another client. */
  readonly conflicts?: number;
}

function clientOf({ labels, status, conflicts = 0 }: Cluster) {
  const steps: string[] = [];
  let left = conflicts;
  const client = {
    async get({ plural }: ResourceType, { name }: { name: string }) {
      if (plural !== 'nodes') return { metadata: { name }, status: steps.includes('approved') ? status : {} };
      if (labels === undefined) throw notFound({ group: '', plural }, name);
      return { metadata: { name, labels } };
    },
    async create(_: ResourceType, object: KubeObject) {
      steps.push('requested');
      return { ...object, metadata: { name: 'csr' } };
    },
    async update() {
      if (left-- > 0) throw conflict({ group: '', plural: 'x' }, 'csr', 'changed');
      steps.push('approved');
    },
    async delete() {
      steps.push('deleted');
    },
  };
  return { client: client as unknown as Client, steps };
}

function outIn(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-join-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return join(dir, 'new', 'host.kubeconfig');
}

const SIGNED = { certificate: Buffer.from(CERTIFICATE).toString('base64') };
const good: Record<string, Cluster> = {
  'a new node': { status: SIGNED },
  'an existing node of Selfsame': { labels: { 'selfsame.io/hypervisor': 'qemu' }, status: SIGNED },
  'a node with concurrent writes to its request': { conflicts: 2, status: SIGNED },
};
for (const [name, cluster] of Object.entries(good)) {
  test(`${name} can join`, async (t) => {
    const { client, steps } = clientOf(cluster);
    const out = outIn(t);
    await joinNode('host', { client, access: ACCESS, out, clock: systemClock });
    assert.deepEqual(steps, ['requested', 'approved', 'deleted']);
    const { server, serverName, clientCertificate } = readKubeconfigFile(out);
    assert.deepEqual([server, serverName, clientCertificate], [ACCESS.server, ACCESS.serverName, CERTIFICATE]);
    assert.equal(statSync(out).mode & 0o777, 0o600);
  });
}

const bad: Record<string, { cluster: Cluster; message: RegExp; steps: string[] }> = {
  'an existing node that Selfsame did not create': {
    cluster: { labels: { 'kubernetes.io/hostname': 'host' } },
    message: /node "host" already exists and was not created by Selfsame; choose another --name/,
    steps: [],
  },
  'a node whose request the cluster denies': {
    cluster: { status: { conditions: [{ type: 'Failed', message: 'not this one' }] } },
    message: /the cluster refused to sign: not this one/,
    steps: ['requested', 'approved', 'deleted'],
  },
};
for (const [name, { cluster, message, steps: want }] of Object.entries(bad)) {
  test(`${name} cannot join`, async (t) => {
    const { client, steps } = clientOf(cluster);
    const out = outIn(t);
    await assert.rejects(joinNode('host', { client, access: ACCESS, out, clock: systemClock }), {
      name: 'JoinError',
      message,
    });
    assert.deepEqual(steps, want);
  });
}
