/** Evictions of launcher pods: which guests go elsewhere instead, and who is told to come again. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reviewPodEviction, type EvictionLookup } from '#admission/pod-evictions.ts';
import type { ReviewRequest } from '#admission/review.ts';
import type { EvictionStrategy } from '#api/kubevirt/kind.ts';
import { aVmi, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import { applyMergePatch } from '#kube/merge-patch.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    namespace: 'golden',
    name: 'virt-launcher-db',
    labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': 'vmi-uid' },
    annotations: { 'kubevirt.io/domain': 'db' },
  },
  spec: { nodeName: 'node-1', containers: [] },
  status: { phase: 'Running' },
};
const GO = { type: 'LiveMigratable', status: 'True' };
const STAY = { type: 'LiveMigratable', status: 'False', message: 'volume d: a hostDisk is a file of its node' };
const STATUS = { phase: 'Running', nodeName: 'node-1', conditions: [GO] };
const INSTANCE = { metadata: { uid: 'vmi-uid' }, status: STATUS };
const moves = (more: object = {}) => ({ migrationState: { migrationUid: 'm', sourceNode: 'node-1', ...more } });

const TRIGGERED = 'Eviction triggered evacuation of VMI "golden/db"';
const FIXED = 'VMI db is configured with an eviction strategy but is not live-migratable';

interface Case {
  readonly strategy?: EvictionStrategy;
  readonly pod?: object | 'none';
  readonly vmi?: object | 'none';
  readonly request?: Partial<ReviewRequest>;
  /** The refusal; undefined where it may be evicted. */
  readonly want?: string;
  /** The node that the instance is marked with. */
  readonly marked?: string;
}

const cases: Record<string, Case> = {
  'a guest that can go is sent away': { want: TRIGGERED, marked: 'node-1' },
  'a dry run marks nothing': { request: { dryRun: true }, want: TRIGGERED },
  'nor does the dry run of kubectl drain': {
    request: { object: { metadata: {}, deleteOptions: { dryRun: ['All'] } } as unknown as KubeObject },
    want: TRIGGERED,
  },
  'a guest that is marked already is not marked again': {
    vmi: { status: { evacuationNodeName: 'node-1' } },
    want: `Evacuation in progress: ${TRIGGERED}`,
  },
  'an old mark of another node is replaced': {
    vmi: { status: { evacuationNodeName: 'node-2' } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'a guest that cannot go stays, and so does its pod': {
    vmi: { status: { conditions: [STAY] } },
    want: `${FIXED}: volume d: a hostDisk is a file of its node`,
  },
  'a guest of which nobody knows yet whether it can go stays': { vmi: { status: { conditions: null } }, want: FIXED },
  'if possible: a guest that can go is sent away': {
    strategy: 'LiveMigrateIfPossible',
    want: TRIGGERED,
    marked: 'node-1',
  },
  'if possible: a guest that cannot go is shut down': {
    strategy: 'LiveMigrateIfPossible',
    vmi: { status: { conditions: [STAY] } },
  },
  'external: somebody else is told by the mark': {
    strategy: 'External',
    vmi: { status: { conditions: [STAY] } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'none: it is shut down': { strategy: 'None' },
  'its own strategy counts more than that of all': {
    strategy: 'None',
    vmi: { spec: { evictionStrategy: 'LiveMigrate' } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'its own none counts, too': { vmi: { spec: { evictionStrategy: 'None' } } },
  'a guest on its way is not cut off, whatever is said of it meanwhile': {
    strategy: 'LiveMigrateIfPossible',
    vmi: { status: { conditions: [STAY], ...moves() } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'a guest on its way to the node is not cut off, either': {
    pod: { spec: { nodeName: 'node-2' } },
    vmi: { status: moves({ targetNode: 'node-2' }) },
    want: 'VMI "golden/db" is migrating to this node',
  },
  'the pod that a guest has left may go': {
    vmi: { status: { nodeName: 'node-2', ...moves({ completed: true }) } },
  },
  'a pod that waits for a node may go': { pod: { spec: { nodeName: null } }, vmi: { status: { nodeName: null } } },
  'a pod that has ended may go': { pod: { status: { phase: 'Failed' } } },
  'a pod that is going anyway may go': { pod: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } },
  'the pod of an earlier instance may go': { vmi: { metadata: { uid: 'another' } } },
  'the pod of an instance that has ended may go': { vmi: { status: { phase: 'Succeeded' } } },
  'the pod of an instance that is being deleted may go': {
    vmi: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
  },
  'the pod of nobody may go': { vmi: 'none' },
  'other pods may go': { pod: { metadata: { labels: { 'kubevirt.io': 'virt-handler' } } } },
  'a pod that is not there is left to others': { pod: 'none' },
  'other operations are not asked about': { request: { operation: 'DELETE' } },
};

function lookupOf({ strategy = 'LiveMigrate', pod = {}, vmi = {} }: Case): EvictionLookup {
  const instance = pod === 'none' || vmi === 'none' ? undefined : applyMergePatch(aVmi(INSTANCE), vmi);
  return {
    configuration: () => ({ ...CONFIGURATION, evictionStrategy: strategy }),
    async pod(namespace, name) {
      if (pod === 'none' || `${namespace}/${name}` !== 'golden/virt-launcher-db') return undefined;
      return applyMergePatch(structuredClone(POD), pod) as Stored<Pod>;
    },
    instance: async (namespace, name) =>
      `${namespace}/${name}` === 'golden/db' ? (instance as Stored<VirtualMachineInstance> | undefined) : undefined,
  };
}

const REQUEST: ReviewRequest = {
  uid: 'u',
  operation: 'CREATE',
  user: 'alice',
  namespace: 'golden',
  name: 'virt-launcher-db',
  dryRun: false,
  isReplace: false,
};

describe('an eviction', () => {
  for (const [name, one] of Object.entries(cases)) {
    test(name, async () => {
      const marks: string[] = [];
      const answer = await reviewPodEviction(
        { ...REQUEST, ...one.request },
        {
          lookup: lookupOf(one),
          markForEvacuation: async ({ metadata }, node) => void marks.push(`${metadata.uid} ${node}`),
        },
      );
      assert.deepEqual(answer, one.want === undefined ? {} : { tooManyRequests: one.want });
      assert.deepEqual(marks, one.marked === undefined ? [] : [`vmi-uid ${one.marked}`]);
    });
  }

  test('waits where the instance cannot be marked', async () => {
    const markForEvacuation = () => Promise.reject(new Error('the store is full'));
    assert.deepEqual(await reviewPodEviction(REQUEST, { lookup: lookupOf({}), markForEvacuation }), {
      tooManyRequests: 'kubevirt failed marking the vmi for eviction: the store is full',
    });
  });
});
