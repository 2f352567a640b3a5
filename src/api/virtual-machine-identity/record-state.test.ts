import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { findNewestRecord, vmOfContent } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Stored } from '#kube/meta.ts';

const vm = { metadata: { name: 'db', uid: 'vm-uid' } } as Stored<VirtualMachine>;

interface Overrides {
  readonly at?: string;
  readonly uid?: string;
  readonly status?: unknown;
  readonly source?: unknown;
}

function aContent(
  name: string,
  { at = '2026-01-01T10:00:00Z', uid = 'vm-uid', status = { devices: [] }, source }: Overrides = {},
) {
  const taken = { virtualMachine: { metadata: { name: 'db', uid } }, virtualMachineIdentity: { spec: {}, status } };
  return {
    metadata: { name: `content-${name}`, creationTimestamp: at },
    spec: { virtualMachineSnapshotName: name, source: source ?? taken },
  } as unknown as Stored<VirtualMachineSnapshotContent>;
}

const cases: Record<string, { contents: ReturnType<typeof aContent>[]; want: string | undefined }> = {
  'none without contents': { contents: [], want: undefined },
  'the newest, in any order': {
    contents: [
      aContent('c', { at: '2026-01-01T09:00:00Z' }),
      aContent('a', { at: '2026-01-03T09:00:00Z' }),
      aContent('b'),
    ],
    want: 'a',
  },
  'of two with the same time, the last by name': { contents: [aContent('b'), aContent('a')], want: 'b' },
  'not a content of an earlier VM of the same name': { contents: [aContent('a', { uid: 'earlier' })], want: undefined },
  'not a content from before the first start': {
    contents: [aContent('a', { at: '2026-02-01T09:00:00Z', status: {} }), aContent('b')],
    want: 'b',
  },
  'not a content that KubeVirt created': {
    contents: [aContent('a', { source: { virtualMachine: { metadata: { uid: 'vm-uid' } } } })],
    want: undefined,
  },
  'not an invalid content': {
    contents: [
      aContent('a', { source: {} }),
      aContent('b', { source: { virtualMachine: {} } }),
      aContent('c', { status: { devices: 'all' } }),
    ],
    want: undefined,
  },
};

for (const [sentence, { contents, want }] of Object.entries(cases)) {
  test(`a record is rebuilt from: ${sentence}`, () => {
    assert.equal(findNewestRecord(vm, contents)?.name, want);
    for (const content of contents) assert.doesNotThrow(() => vmOfContent(content));
  });
}
