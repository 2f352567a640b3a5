/** Content of disks with files from API objects, read with standard tools if they are installed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { VmiVolume } from '#api/domain/volume.ts';
import { aScene, aVmi, readyVolume } from '#node/volumes/local/testing/volumes-scene.ts';

const meta = (name: string) => ({ name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '' });
const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Case {
  readonly volume: Omit<VmiVolume, 'name'>;
  readonly label?: string;
  /** The names and texts on the disk, in this order, or the message of the refusal. */
  readonly want: string | Readonly<Record<string, string>>;
}

const cases: Record<string, Case> = {
  'writes the keys of a ConfigMap': {
    volume: { configMap: { name: 'settings' } },
    want: { 'App.conf': 'colour=blue', 'bin.dat': 'bytes' },
  },
  'writes the keys of a Secret with a label': {
    volume: { secret: { secretName: 'keys', volumeLabel: 'my keys' } },
    label: 'my keys',
    want: { 'id_rsa.pub': 'ssh-rsa x' },
  },
  'writes the token of a ServiceAccount': {
    volume: { serviceAccount: { serviceAccountName: 'robot' } },
    want: { 'ca.crt': 'CERTIFICATE', namespace: 'default', token: 'token of robot' },
  },
  'writes metadata of the instance': {
    volume: {
      downwardAPI: {
        fields: [
          { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
          { path: 'name', fieldRef: { fieldPath: 'metadata.name' } },
          { path: 'tier', fieldRef: { fieldPath: "metadata.labels['tier']" } },
        ],
      },
    },
    want: { labels: 'app="db"\ntier="1"', name: 'guest', tier: '1' },
  },
  'writes nothing for a missing optional ConfigMap': {
    volume: { configMap: { name: 'gone', optional: true } },
    want: {},
  },
  'refuses a missing ConfigMap': { volume: { configMap: { name: 'gone' } }, want: 'configmap "gone" not found' },
  'refuses a missing Secret': { volume: { secret: { secretName: 'gone' } }, want: 'secret "gone" not found' },
  'refuses a missing account': {
    volume: { serviceAccount: { serviceAccountName: 'nobody' } },
    want: 'serviceaccount "nobody" not found',
  },
  'refuses a key that is not a file name': {
    volume: { configMap: { name: 'long' } },
    want: `volume "v": the key "${'k'.repeat(101)}" is not a file name of at most 100 characters`,
  },
};
for (const [name, { volume, label = 'cfgdata', want }] of Object.entries(cases)) {
  test(name, async () => {
    await using scene = aScene();
    const { configMaps, secrets } = scene;
    const kinds = { apiVersion: 'v1', kind: 'ConfigMap' };
    const data = { 'App.conf': 'colour=blue' };
    configMaps.set('settings', {
      ...kinds,
      metadata: meta('settings'),
      data,
      binaryData: { 'bin.dat': base64('bytes') },
    });
    configMaps.set('long', { ...kinds, metadata: meta('long'), data: { ['k'.repeat(101)]: '' } });
    configMaps.set('kube-root-ca.crt', { ...kinds, metadata: meta('ca'), data: { 'ca.crt': 'CERTIFICATE' } });
    secrets.set('keys', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: meta('keys'),
      data: { 'id_rsa.pub': base64('ssh-rsa x') },
    });
    const vmi = aVmi([{ name: 'v', ...volume }]);
    vmi.metadata.labels = { app: 'db', tier: '1' };
    const prepared = await (await scene.open()).prepare(vmi, scene.lookups, {});
    if (typeof want === 'string') {
      assert.deepEqual(prepared, { is: 'waiting', reason: 'FailedMount', message: want });
      return;
    }
    const image = readFileSync(readyVolume(prepared, 'v').source.path);
    const text = image.toString('latin1');
    assert.equal(text.slice(16 * 2048 + 40, 16 * 2048 + 40 + label.length), label);
    let from = 0;
    for (const name of Object.keys(want)) from = after(text, name, from);
    for (const content of Object.values(want)) from = after(text, content, from);
  });
}

function after(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  assert.ok(at >= 0, `${JSON.stringify(part)} is on it, after what comes before`);
  return at + part.length;
}
