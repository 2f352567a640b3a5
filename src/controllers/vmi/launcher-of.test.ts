import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationState } from '#api/migration-state.ts';
import { CREATED_BY_LABEL, MIGRATION_UID_LABEL } from '#api/names.ts';
import {
  currentLauncherName,
  LAUNCHERS_BY_INSTANCE,
  launcherIndexKeys,
  launcherOf,
  launchersOf,
} from '#controllers/vmi/launcher-of.ts';
import { targetPodName } from '#controllers/vmi/launcher-pod.ts';
import { aPod, aVmi, POD_NAME, UID } from '#controllers/vmi/vmi-world.fixture.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const vmiWith = (migrationState?: MigrationState) => aVmi({ status: { phase: 'Running', migrationState } });
const FIRST = targetPodName(aVmi(), 'm1');
const SECOND = targetPodName(aVmi(), 'm2');
const MOVING: MigrationState = { migrationUid: 'm1', sourcePod: POD_NAME, targetPod: FIRST };

const targetOf = (migrationUid: string, meta: ObjectMeta = {}): Stored<Pod> =>
  aPod(
    {},
    {
      name: targetPodName(aVmi(), migrationUid),
      uid: `${migrationUid}-pod`,
      labels: { [CREATED_BY_LABEL]: UID, [MIGRATION_UID_LABEL]: migrationUid },
      ...meta,
    },
  );

const cacheOf = (pods: readonly Stored<Pod>[]) => ({
  get: (key: string) => pods.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key),
  byIndex: (index: string, uid: string) => {
    assert.equal(index, LAUNCHERS_BY_INSTANCE);
    return pods.filter((pod) => launcherIndexKeys(pod).includes(uid));
  },
});

interface Case {
  readonly state?: MigrationState;
  readonly pods?: readonly Stored<Pod>[];
  readonly want: { readonly pod?: string; readonly target?: string; readonly others?: readonly string[] };
}

const both = [aPod(), targetOf('m1')];
const cases: Record<string, Case> = {
  'an instance that never moved has the pod that was made for it': { pods: [aPod()], want: { pod: POD_NAME } },
  'there may be none yet': { pods: [], want: {} },
  'a target of which no agent was told is one of the others': {
    pods: both,
    want: { pod: POD_NAME, others: [FIRST] },
  },
  'while the guest moves the source has it': {
    state: MOVING,
    pods: both,
    want: { pod: POD_NAME, target: FIRST },
  },
  'when it has moved the target has it': {
    state: { ...MOVING, completed: true },
    pods: both,
    want: { pod: FIRST, others: [POD_NAME] },
  },
  'when it could not, the source keeps it': {
    state: { ...MOVING, completed: true, failed: true },
    pods: both,
    want: { pod: POD_NAME, others: [FIRST] },
  },
  'it moves on from where it has moved to': {
    state: { migrationUid: 'm2', sourcePod: FIRST, targetPod: SECOND },
    pods: [targetOf('m1'), targetOf('m2')],
    want: { pod: FIRST, target: SECOND },
  },
  'and stays there when it could not': {
    state: { migrationUid: 'm2', sourcePod: FIRST, targetPod: SECOND, completed: true, failed: true },
    pods: [targetOf('m1'), targetOf('m2')],
    want: { pod: FIRST, others: [SECOND] },
  },
  'a pod is not the one that has it because another is gone': {
    state: { ...MOVING, completed: true },
    pods: [aPod()],
    want: { others: [POD_NAME] },
  },
  'a pod of another instance is none': {
    pods: [aPod({}, { labels: { [CREATED_BY_LABEL]: 'another' } })],
    want: {},
  },
  'nor is one of another namespace': { pods: [aPod({}, { namespace: 'other' })], want: {} },
  'nor one that only has the label': {
    pods: [aPod({}, { name: 'mine' }), targetOf('m1', { name: 'mine-too' })],
    want: {},
  },
};

describe('launcher pods', () => {
  for (const [name, { state, pods = [], want }] of Object.entries(cases)) {
    it(name, () => {
      const vmi = vmiWith(state);
      const { pod, targetPod, otherPods } = launchersOf(cacheOf(pods), vmi);
      const names = otherPods.map(({ metadata }) => metadata.name);
      assert.deepEqual(
        [pod?.metadata.name, targetPod?.metadata.name, names],
        [want.pod, want.target, want.others ?? []],
      );
      assert.equal(launcherOf(cacheOf(pods), vmi), pod);
      assert.ok(want.pod === undefined || currentLauncherName(vmi) === want.pod);
    });
  }
});
