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
import type { SigningRequest } from '#plane/cluster/signing-requests.ts';

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const ACCESS: ClusterAccess = {
  server: 'https://10.0.0.1:6443',
  namespace: 'default',
  certificateAuthority: CERTIFICATE,
  serverName: 'kubernetes.default',
  insecureSkipTlsVerify: false,
};

interface Cluster {
  /** The labels of a Node of that name that is there already. */
  readonly labels?: Record<string, string>;
  /** What the cluster makes of the request once it is approved. */
  readonly status?: SigningRequest['status'];
  /** Somebody else writes at the same time, so often. */
  readonly conflicts?: number;
}

function clientOf({ labels, status, conflicts = 0 }: Cluster) {
  const did: string[] = [];
  let left = conflicts;
  const client = {
    async get({ plural }: ResourceType, { name }: { name: string }) {
      if (plural !== 'nodes') return { metadata: { name }, status: did.includes('approved') ? status : {} };
      if (labels === undefined) throw notFound({ group: '', plural }, name);
      return { metadata: { name, labels } };
    },
    async create(_: ResourceType, object: KubeObject) {
      did.push('asked');
      return { ...object, metadata: { name: 'csr' } };
    },
    async update() {
      if (left-- > 0) throw conflict({ group: '', plural: 'x' }, 'csr', 'changed');
      did.push('approved');
    },
    async delete() {
      did.push('tidied');
    },
  };
  return { client: client as unknown as Client, did };
}

function outIn(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-join-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return join(dir, 'new', 'host.kubeconfig');
}

const SIGNED = { certificate: Buffer.from(CERTIFICATE).toString('base64') };
const good: Record<string, Cluster> = {
  'a new node': { status: SIGNED },
  'a node of ours again': { labels: { 'selfsame.io/hypervisor': 'qemu' }, status: SIGNED },
  'a node whose request others write to, too': { conflicts: 2, status: SIGNED },
};
for (const [name, cluster] of Object.entries(good)) {
  test(`${name} is let in`, async (t) => {
    const { client, did } = clientOf(cluster);
    const out = outIn(t);
    await joinNode('host', { client, access: ACCESS, out, clock: systemClock });
    assert.deepEqual(did, ['asked', 'approved', 'tidied']);
    const { server, serverName, clientCertificate } = readKubeconfigFile(out);
    assert.deepEqual([server, serverName, clientCertificate], [ACCESS.server, ACCESS.serverName, CERTIFICATE]);
    assert.equal(statSync(out).mode & 0o777, 0o600);
  });
}

const bad: Record<string, { cluster: Cluster; message: RegExp; did: string[] }> = {
  'a node of others': {
    cluster: { labels: { 'kubernetes.io/hostname': 'host' } },
    message: /there is a node "host" already, and it is none of ours; choose another --name/,
    did: [],
  },
  'one whom the cluster refuses': {
    cluster: { status: { conditions: [{ type: 'Failed', message: 'not this one' }] } },
    message: /the cluster refused to sign: not this one/,
    did: ['asked', 'approved', 'tidied'],
  },
};
for (const [name, { cluster, message, did: want }] of Object.entries(bad)) {
  test(`${name} is not let in`, async (t) => {
    const { client, did } = clientOf(cluster);
    const out = outIn(t);
    await assert.rejects(joinNode('host', { client, access: ACCESS, out, clock: systemClock }), {
      name: 'JoinError',
      message,
    });
    assert.deepEqual(did, want);
  });
}
