/** Tests evictions of launcher pods: which guests are migrated instead, and which evictions are refused. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reviewPodEviction, type EvictionLookup } from '#admission/pod-evictions.ts';
import type { ReviewRequest } from '#admission/review.ts';
import type { EvictionStrategy } from '#api/kubevirt/kind.ts';
import { aVmi, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
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
const MIGRATABLE = { type: 'LiveMigratable', status: 'True' };
const NOT_MIGRATABLE = {
  type: 'LiveMigratable',
  status: 'False',
  message: 'volume d: a hostDisk is a file of its node',
};
const STATUS = { phase: 'Running', nodeName: 'node-1', conditions: [MIGRATABLE] };
const INSTANCE = { metadata: { uid: 'vmi-uid' }, status: STATUS };
const migrationStatus = (more: object = {}) => ({
  migrationState: { migrationUid: 'm', sourceNode: 'node-1', ...more },
});

const TRIGGERED = 'Eviction triggered evacuation of VMI "golden/db"';
const FIXED = 'VMI db is configured with an eviction strategy but is not live-migratable';

interface Case {
  readonly strategy?: EvictionStrategy;
  readonly pod?: object | 'none';
  readonly vmi?: object | 'none';
  readonly request?: Partial<ReviewRequest>;
  /** The refusal; undefined if the pod may be evicted. */
  readonly want?: string;
  /** The node that the instance is marked with. */
  readonly marked?: string;
}

const cases: Record<string, Case> = {
  'marks a migratable guest': { want: TRIGGERED, marked: 'node-1' },
  'does not mark the guest in a dry run': { request: { dryRun: true }, want: TRIGGERED },
  'does not mark the guest in a dry run of kubectl drain': {
    request: { object: { metadata: {}, deleteOptions: { dryRun: ['All'] } } as unknown as KubeObject },
    want: TRIGGERED,
  },
  'does not mark a guest again': {
    vmi: { status: { evacuationNodeName: 'node-1' } },
    want: `Evacuation in progress: ${TRIGGERED}`,
  },
  'replaces an old mark of another node': {
    vmi: { status: { evacuationNodeName: 'node-2' } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'refuses to evict a guest that is not migratable': {
    vmi: { status: { conditions: [NOT_MIGRATABLE] } },
    want: `${FIXED}: volume d: a hostDisk is a file of its node`,
  },
  'refuses to evict a guest that is not known to be migratable': { vmi: { status: { conditions: null } }, want: FIXED },
  'LiveMigrateIfPossible: marks a migratable guest': {
    strategy: 'LiveMigrateIfPossible',
    want: TRIGGERED,
    marked: 'node-1',
  },
  'LiveMigrateIfPossible: evicts a guest that is not migratable': {
    strategy: 'LiveMigrateIfPossible',
    vmi: { status: { conditions: [NOT_MIGRATABLE] } },
  },
  'External: marks the guest for an external controller': {
    strategy: 'External',
    vmi: { status: { conditions: [NOT_MIGRATABLE] } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'None: evicts the guest': { strategy: 'None' },
  'the strategy of the instance overrides the default': {
    strategy: 'None',
    vmi: { spec: { evictionStrategy: 'LiveMigrate' } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'None of the instance overrides the default': { vmi: { spec: { evictionStrategy: 'None' } } },
  'does not evict a migrating guest, even if it is not migratable now': {
    strategy: 'LiveMigrateIfPossible',
    vmi: { status: { conditions: [NOT_MIGRATABLE], ...migrationStatus() } },
    want: TRIGGERED,
    marked: 'node-1',
  },
  'does not evict the target pod of a migration': {
    pod: { spec: { nodeName: 'node-2' } },
    vmi: { status: migrationStatus({ targetNode: 'node-2' }) },
    want: 'VMI "golden/db" is migrating to this node',
  },
  'evicts the source pod of a finished migration': {
    vmi: { status: { nodeName: 'node-2', ...migrationStatus({ completed: true }) } },
  },
  'evicts a pod without a node': { pod: { spec: { nodeName: null } }, vmi: { status: { nodeName: null } } },
  'evicts a pod that has ended': { pod: { status: { phase: 'Failed' } } },
  'evicts a pod that is being deleted': { pod: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } } },
  'evicts the pod of an earlier instance': { vmi: { metadata: { uid: 'another' } } },
  'evicts the pod of an instance that has ended': { vmi: { status: { phase: 'Succeeded' } } },
  'evicts the pod of an instance that is being deleted': {
    vmi: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
  },
  'evicts a pod without an instance': { vmi: 'none' },
  'evicts other pods': { pod: { metadata: { labels: { 'kubevirt.io': 'virt-handler' } } } },
  'ignores a missing pod': { pod: 'none' },
  'ignores other operations': { request: { operation: 'DELETE' } },
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

  test('refuses the eviction if the instance cannot be marked', async () => {
    const markForEvacuation = () => Promise.reject(new Error('the store is full'));
    assert.deepEqual(await reviewPodEviction(REQUEST, { lookup: lookupOf({}), markForEvacuation }), {
      tooManyRequests: 'kubevirt failed marking the vmi for eviction: the store is full',
    });
  });
});
