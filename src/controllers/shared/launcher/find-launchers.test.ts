import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MigrationState } from '#api/migration/migration-state.ts';
import { CREATED_BY_LABEL, MIGRATION_UID_LABEL } from '#api/names.ts';
import {
  currentLauncherName,
  LAUNCHERS_BY_INSTANCE,
  launcherIndexKeys,
  launcherOf,
  launchersOf,
} from '#controllers/shared/launcher/find-launchers.ts';
import { targetPodName } from '#controllers/shared/launcher/launcher-pod.ts';
import { aPod, aVmi, POD_NAME, UID } from '#controllers/vmi/testing/vmi-world.ts';
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
  'the guest is in the first pod before any migration': { pods: [aPod()], want: { pod: POD_NAME } },
  'an instance may have no pod yet': { pods: [], want: {} },
  'a target that is not announced yet is one of the other pods': {
    pods: both,
    want: { pod: POD_NAME, others: [FIRST] },
  },
  'the source pod has the guest during a migration': {
    state: MOVING,
    pods: both,
    want: { pod: POD_NAME, target: FIRST },
  },
  'the target pod has the guest after a migration': {
    state: { ...MOVING, completed: true },
    pods: both,
    want: { pod: FIRST, others: [POD_NAME] },
  },
  'the source pod has the guest after a failed migration': {
    state: { ...MOVING, completed: true, failed: true },
    pods: both,
    want: { pod: POD_NAME, others: [FIRST] },
  },
  'the target pod is the source of the next migration': {
    state: { migrationUid: 'm2', sourcePod: FIRST, targetPod: SECOND },
    pods: [targetOf('m1'), targetOf('m2')],
    want: { pod: FIRST, target: SECOND },
  },
  'the guest stays there if the next migration fails': {
    state: { migrationUid: 'm2', sourcePod: FIRST, targetPod: SECOND, completed: true, failed: true },
    pods: [targetOf('m1'), targetOf('m2')],
    want: { pod: FIRST, others: [SECOND] },
  },
  'another pod does not become the current one if that is gone': {
    state: { ...MOVING, completed: true },
    pods: [aPod()],
    want: { others: [POD_NAME] },
  },
  'a pod of another instance is ignored': {
    pods: [aPod({}, { labels: { [CREATED_BY_LABEL]: 'another' } })],
    want: {},
  },
  'a pod in another namespace is ignored': { pods: [aPod({}, { namespace: 'other' })], want: {} },
  'a pod that only has the label is ignored': {
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
