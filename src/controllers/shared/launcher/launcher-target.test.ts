/** The target pod of a migration. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LOCAL_DRIVER } from '#api/names.ts';
import {
  buildLauncherPod,
  launcherPodName,
  type MigrationTarget,
  targetPodName,
} from '#controllers/shared/launcher/launcher-pod.ts';
import { aClaim, aPod, aVmi, aVolume, UID, type VmiOverrides } from '#controllers/vmi/testing/vmi-world.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { Pod } from '#kube/core-kinds.ts';

const MIGRATION = '11111111-2222-4333-8444-555555555555';

const onNode = (name: string, node: string): ClaimView => {
  const volume = aVolume(`pv-${name}`, { 'selfsame.io/volume-node': node });
  return {
    claim: aClaim(name, { spec: { volumeName: `pv-${name}` } }),
    volume: { ...volume, spec: { ...volume.spec, csi: { driver: LOCAL_DRIVER, volumeHandle: name } } },
  };
};
const aSharedClaim = (name: string): ClaimView => {
  const volume = aVolume(`pv-${name}`);
  return { claim: aClaim(name), volume: { ...volume, spec: { ...volume.spec, accessModes: ['ReadWriteMany'] } } };
};
const claimVolume = (name: string) => ({ name, persistentVolumeClaim: { claimName: `${name}-claim` } });

interface TargetOverrides {
  readonly vmi?: VmiOverrides;
  readonly claims?: readonly ClaimView[];
  /** Names of the volumes that the source pod has. */
  readonly named?: readonly string[];
  readonly state?: ClaimView;
  readonly target?: Partial<MigrationTarget>;
}

function build({ vmi, claims = [], named = [], state, target }: TargetOverrides): Pod {
  const source = aPod({ phase: 'Running', nodeName: 'node-1' });
  const old = { name: 'vm-state', persistentVolumeClaim: { claimName: 'old-state' } };
  const sourcePod = { ...source, spec: { ...source.spec, volumes: [...named.map(claimVolume), old] } };
  const views = new Map(claims.map((view) => [view.claim.metadata.name, view]));
  return buildLauncherPod(aVmi(vmi), views, {
    state,
    target: { uid: MIGRATION, sourceNode: 'node-1', sourcePod, ...target },
  });
}

interface Affinity {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: { matchExpressions: { operator: string; values: string[] }[] }[];
    };
  };
}

/** Returns the expressions of each alternative. */
function expressionsOf({ spec }: Pod): string[][] {
  const { nodeAffinity } = spec.affinity as Affinity;
  const { nodeSelectorTerms } = nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  return nodeSelectorTerms.map(({ matchExpressions }) =>
    matchExpressions.map(({ operator, values }) => `${operator} ${values.join()}`),
  );
}

const disks = (...names: string[]) => ({ devices: { disks: names.map((name) => ({ name })) } });

describe('the target pod', () => {
  it('has a name that depends on the migration and differs from the first pod', () => {
    const { metadata } = build({});
    assert.equal(metadata.name, targetPodName(aVmi(), MIGRATION));
    assert.notEqual(metadata.name, launcherPodName(aVmi()));
    assert.match(metadata.name ?? '', /^virt-launcher-db-[a-z0-9]{5}$/);
    const long = targetPodName(aVmi({ name: 'a'.repeat(80) }), MIGRATION);
    assert.equal(long.length, 63);
  });

  it('has the migration in a label, our finalizer, and the instance as owner', () => {
    const meta = { labels: { team: 'a', 'kubevirt.io/nodeName': 'node-1' } };
    const { metadata } = build({ vmi: { meta } });
    assert.deepEqual(metadata.labels, {
      team: 'a',
      'kubevirt.io': 'virt-launcher',
      'kubevirt.io/created-by': UID,
      'vm.kubevirt.io/name': 'db',
      'kubevirt.io/migrationJobUID': MIGRATION,
    });
    assert.deepEqual(metadata.finalizers, ['selfsame.io/migration']);
    assert.deepEqual(
      metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller]),
      [[UID, true]],
    );
  });

  it('requests the same resources as the first pod', () => {
    const first = buildLauncherPod(aVmi(), new Map());
    assert.deepEqual(build({}).spec.containers, first.spec.containers);
  });

  it('requires another node than the source, whatever the affinity says', () => {
    assert.deepEqual(expressionsOf(build({})), [['NotIn node-1']]);
    const within = (value: string) => ({
      matchExpressions: [{ key: 'zone', operator: 'In' as const, values: [value] }],
    });
    const required = { nodeSelectorTerms: [within('a'), within('b')] };
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } };
    assert.deepEqual(expressionsOf(build({ vmi: { spec: { affinity } } })), [
      ['In a', 'NotIn node-1'],
      ['In b', 'NotIn node-1'],
    ]);
  });

  it('requires the exact machine type of the guest; labels can be added but not changed', () => {
    const spec = { nodeSelector: { disk: 'ssd' }, domain: { machine: { type: 'q35' } } };
    const addedNodeSelector = { rack: '7', disk: 'hdd', 'kubevirt.io/schedulable': 'false' };
    const status = { machine: { type: 'pc-q35-7.2' } };
    assert.deepEqual(build({ vmi: { spec, status }, target: { addedNodeSelector } }).spec.nodeSelector, {
      rack: '7',
      disk: 'ssd',
      'machine-type.node.kubevirt.io/q35': 'true',
      'machine-type.node.kubevirt.io/pc-q35-7.2': 'true',
      'kubevirt.io/schedulable': 'true',
    });
  });
});

describe('the volumes of the target pod', () => {
  const names = ({ spec }: Pod) => spec.volumes?.map(({ persistentVolumeClaim: claim }) => claim?.claimName);
  const spec = { domain: disks('root', 'late'), volumes: [claimVolume('root'), claimVolume('late')] };

  it('are those of the source pod; hotplugged volumes are hotplugged again, removed ones are gone', () => {
    const claims = [aSharedClaim('root-claim'), aSharedClaim('late-claim')];
    const pod = build({ vmi: { spec }, claims, named: ['root', 'gone'] });
    assert.deepEqual(names(pod), ['root-claim']);
    assert.deepEqual(
      pod.spec.containers[0]?.volumeMounts?.map(({ name }) => name),
      ['root'],
    );
  });

  it('have the new state claim instead of the old one', () => {
    assert.deepEqual(names(build({ state: { claim: aClaim('new-state') } })), ['new-state']);
    assert.equal(names(build({})), undefined);
  });

  const pins: Record<string, { overrides: TargetOverrides; want: string[] }> = {
    'are not required on the node if they are migrated': {
      overrides: { vmi: { spec }, claims: [onNode('root-claim', 'node-1')], named: ['root'] },
      want: ['NotIn node-1'],
    },
    'are not required on the node if all nodes can reach them': {
      overrides: { vmi: { spec }, claims: [aSharedClaim('root-claim')], named: ['root'] },
      want: ['NotIn node-1'],
    },
    'require their node if they cannot be migrated, and the scheduler reports that': {
      overrides: {
        vmi: {
          spec: { domain: { devices: { disks: [{ name: 'root', cdrom: {} }] } }, volumes: [claimVolume('root')] },
        },
        claims: [onNode('root-claim', 'node-1')],
        named: ['root'],
      },
      want: ['In node-1', 'NotIn node-1'],
    },
    'require the node of the state claim, if it is local': {
      overrides: { state: onNode('new-state', 'node-2') },
      want: ['In node-2', 'NotIn node-1'],
    },
  };
  for (const [name, { overrides, want }] of Object.entries(pins)) {
    it(name, () => assert.deepEqual(expressionsOf(build(overrides)), [want]));
  }
});
