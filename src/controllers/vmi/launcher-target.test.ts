/** The pod to which the guest of an instance is to move. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LOCAL_DRIVER } from '#api/names.ts';
import {
  buildLauncherPod,
  launcherPodName,
  type MigrationTarget,
  targetPodName,
} from '#controllers/vmi/launcher-pod.ts';
import { aClaim, aPod, aVmi, aVolume, UID, type VmiWish } from '#controllers/vmi/vmi-world.fixture.ts';
import type { ClaimView } from '#controllers/vmi/vmi-world.ts';
import type { Pod } from '#kube/core-kinds.ts';

const MIGRATION = '11111111-2222-4333-8444-555555555555';

const onNode = (name: string, node: string): ClaimView => {
  const volume = aVolume(`pv-${name}`, { 'selfsame.io/volume-node': node });
  return {
    claim: aClaim(name, { spec: { volumeName: `pv-${name}` } }),
    volume: { ...volume, spec: { ...volume.spec, csi: { driver: LOCAL_DRIVER, volumeHandle: name } } },
  };
};
const everywhere = (name: string): ClaimView => {
  const volume = aVolume(`pv-${name}`);
  return { claim: aClaim(name), volume: { ...volume, spec: { ...volume.spec, accessModes: ['ReadWriteMany'] } } };
};
const claimVolume = (name: string) => ({ name, persistentVolumeClaim: { claimName: `${name}-claim` } });

interface Wish {
  readonly vmi?: VmiWish;
  readonly claims?: readonly ClaimView[];
  /** Names of the volumes that the source pod has. */
  readonly named?: readonly string[];
  readonly state?: ClaimView;
  readonly target?: Partial<MigrationTarget>;
}

function build({ vmi, claims = [], named = [], state, target }: Wish): Pod {
  const source = aPod({ phase: 'Running', nodeName: 'node-1' });
  const old = { name: 'vm-state', persistentVolumeClaim: { claimName: 'old-state' } };
  const sourcePod = { ...source, spec: { ...source.spec, volumes: [...named.map(claimVolume), old] } };
  const views = new Map(claims.map((view) => [view.claim.metadata.name, view]));
  return buildLauncherPod(aVmi(vmi), views, state, { uid: MIGRATION, sourceNode: 'node-1', sourcePod, ...target });
}

interface Affinity {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: { matchExpressions: { operator: string; values: string[] }[] }[];
    };
  };
}

/** For each alternative. */
function expressionsOf({ spec }: Pod): string[][] {
  const { nodeAffinity } = spec.affinity as Affinity;
  const { nodeSelectorTerms } = nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution;
  return nodeSelectorTerms.map(({ matchExpressions }) =>
    matchExpressions.map(({ operator, values }) => `${operator} ${values.join()}`),
  );
}

const disks = (...names: string[]) => ({ devices: { disks: names.map((name) => ({ name })) } });

describe('the target pod', () => {
  it('is named after the migration, and is another one than the first', () => {
    const { metadata } = build({});
    assert.equal(metadata.name, targetPodName(aVmi(), MIGRATION));
    assert.notEqual(metadata.name, launcherPodName(aVmi()));
    assert.match(metadata.name ?? '', /^virt-launcher-db-[a-z0-9]{5}$/);
    const long = targetPodName(aVmi({ name: 'a'.repeat(80) }), MIGRATION);
    assert.equal(long.length, 63);
  });

  it('is known by its migration, is held, and belongs to the instance', () => {
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

  it('asks for as much as the first did', () => {
    const first = buildLauncherPod(aVmi(), new Map());
    assert.deepEqual(build({}).spec.containers, first.spec.containers);
  });

  it('goes where the guest is not, whatever people prefer', () => {
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

  it('goes where the very machine of the guest can run; more may be asked for, but nothing else', () => {
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

  it('are those of the source: what came late is late there, too, and what has gone is gone', () => {
    const claims = [everywhere('root-claim'), everywhere('late-claim')];
    const pod = build({ vmi: { spec }, claims, named: ['root', 'gone'] });
    assert.deepEqual(names(pod), ['root-claim']);
    assert.deepEqual(
      pod.spec.containers[0]?.volumeMounts?.map(({ name }) => name),
      ['root'],
    );
  });

  it('have the claim that was made for the state in place of the old one', () => {
    assert.deepEqual(names(build({ state: { claim: aClaim('new-state') } })), ['new-state']);
    assert.equal(names(build({})), undefined);
  });

  const pins: Record<string, { wish: Wish; want: string[] }> = {
    'data that moves along does not hold it back': {
      wish: { vmi: { spec }, claims: [onNode('root-claim', 'node-1')], named: ['root'] },
      want: ['NotIn node-1'],
    },
    'nor does data that all nodes reach': {
      wish: { vmi: { spec }, claims: [everywhere('root-claim')], named: ['root'] },
      want: ['NotIn node-1'],
    },
    'data that stays does, and the scheduler says so': {
      wish: {
        vmi: {
          spec: { domain: { devices: { disks: [{ name: 'root', cdrom: {} }] } }, volumes: [claimVolume('root')] },
        },
        claims: [onNode('root-claim', 'node-1')],
        named: ['root'],
      },
      want: ['In node-1', 'NotIn node-1'],
    },
    'it goes where the claim for the state is, if that is somewhere': {
      wish: { state: onNode('new-state', 'node-2') },
      want: ['In node-2', 'NotIn node-1'],
    },
  };
  for (const [name, { wish, want }] of Object.entries(pins)) {
    it(name, () => assert.deepEqual(expressionsOf(build(wish)), [want]));
  }
});
