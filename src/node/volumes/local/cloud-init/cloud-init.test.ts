import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { CloudInitNoCloud } from '#api/domain/volume.ts';
import type { Secret } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { aScene, aVmi } from '#node/volumes/local/testing/volumes-scene.ts';
import { buildCloudInitFiles, prepareCloudInit } from '#node/volumes/local/cloud-init/cloud-init.ts';

function aSecret(name: string, data: Record<string, string>): Stored<Secret> {
  const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')] as const);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    data: Object.fromEntries(encoded),
  };
}

interface Case {
  source: CloudInitNoCloud;
  secrets?: Stored<Secret>[];
  /** The texts in the image, or the message of the refusal. */
  want: string[] | RegExp;
}

const cases: Record<string, Case> = {
  'accepts plain text': { source: { userData: '#user', networkData: 'net: 1' }, want: ['#user', 'net: 1'] },
  'accepts base64': {
    source: { userDataBase64: 'I3VzZXI=', networkDataBase64: 'bmV0OiAx' },
    want: ['#user', 'net: 1'],
  },
  'reads both from one secret': {
    source: { secretRef: { name: 'seed' } },
    secrets: [aSecret('seed', { userdata: '#user', networkdata: 'net: 1' })],
    want: ['#user', 'net: 1'],
  },
  'accepts the other spelling of keys': {
    source: { secretRef: { name: 'seed' } },
    secrets: [aSecret('seed', { userData: '#user' })],
    want: ['#user'],
  },
  'reads network data from a separate secret': {
    source: { userData: '#user', networkDataSecretRef: { name: 'net' } },
    secrets: [aSecret('net', { networkdata: 'net: 1' })],
    want: ['#user', 'net: 1'],
  },
  'waits for a secret that is missing': {
    source: { secretRef: { name: 'seed' } },
    want: /secret "seed" not found/,
  },
  'waits for the key userdata': {
    source: { secretRef: { name: 'seed' } },
    secrets: [aSecret('seed', { other: 'x' })],
    want: /secret "seed" has no key userdata/,
  },
  'waits for the key networkdata': {
    source: { userData: '#user', networkDataSecretRef: { name: 'net' } },
    secrets: [aSecret('net', {})],
    want: /secret "net" has no key networkdata/,
  },
};

describe('cloud-init', () => {
  for (const [sentence, { source, secrets = [], want }] of Object.entries(cases)) {
    it(sentence, async () => {
      await using scene = aScene();
      for (const secret of secrets) scene.secrets.set(secret.metadata.name, secret);

      const prepared = await prepareCloudInit({ name: 'seed', source }, aVmi([]), scene.lookups, scene.host);

      if (want instanceof RegExp) {
        assert.match(prepared.is === 'waiting' ? prepared.message : prepared.is, want);
        return;
      }
      assert.equal(prepared.is, 'ready');
      const image = readFileSync(prepared.volume.source.path);
      for (const text of want) assert.ok(image.includes(text), text);
      assert.equal(image.includes('network-config'), want.length > 1);
    });
  }

  it('writes instance id and hostname to the meta data', () => {
    const { metadata, spec } = aVmi([]);
    const metaData = (over: { name?: string; hostname?: string }) => {
      const vmi = { metadata: { ...metadata, name: over.name ?? 'web' }, spec: { ...spec, hostname: over.hostname } };
      return JSON.parse(
        String(buildCloudInitFiles({ userData: Buffer.alloc(0), networkData: undefined }, vmi).get('meta-data')),
      );
    };
    assert.deepEqual(metaData({}), { 'instance-id': '5d307ca9-b3ef-428c-8861-06e72d69f223', 'local-hostname': 'web' });
    assert.equal(metaData({ hostname: 'db' })['local-hostname'], 'db');
    assert.equal(metaData({ name: 'a.b.c' })['local-hostname'], 'a');
    assert.equal(metaData({ name: 'x'.repeat(100) })['local-hostname'].length, 63);
  });
});
