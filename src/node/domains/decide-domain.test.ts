import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { InterfaceDevice } from '#node/definition/domain-definition.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import type { Attempt, DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import type { HotplugNote } from '#node/domains/hotplug-notes.ts';
import { reportedStatus } from '#node/domains/vmi-report.ts';
import type { Domain, DomainState } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const NOW = 1_900_000_000_000;
const STORED = { uid: 'u', resourceVersion: '1', creationTimestamp: timestamp(NOW), namespace: 'ns' };

interface PodFacts {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  /** Deleted with so many seconds to go. */
  readonly deleted?: number;
}

function aPod({ phase = 'Pending', deleted }: PodFacts = {}): Stored<Pod> {
  const leaving =
    deleted === undefined ? {} : { deletionTimestamp: timestamp(NOW), deletionGracePeriodSeconds: deleted };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...STORED, name: 'launcher', ...leaving },
    spec: { containers: [{ name: 'compute', image: 'selfsame/virt-launcher' }] },
    status: { phase },
  };
}

const node: DomainWorld['node'] = {
  name: 'n1',
  hostIp: '127.0.0.1',
  capabilities: { machines: [], accelerator: 'tcg', version: 'QEMU 7.2' },
};

function aDomain(current: DomainState = { state: 'running' }): Domain {
  return { id: 'u', name: 'ns/db', machine: 'pc-q35-7.2', startedAtMs: NOW, current, deviceEvents: 0 };
}

const nic: InterfaceDevice = {
  type: 'interface',
  id: 'nic-default',
  name: 'default',
  model: 'virtio',
  macAddress: '02:00:00:00:00:01',
  backend: { type: 'user' },
};
const inspection = { definition: { ...aDefinition(), devices: [nic] }, leaving: [] };
const reading = { devices: [], hash: 'h1', revision: 7 };

interface VmiFacts {
  readonly grace?: number;
  readonly deleted?: boolean;
  readonly status?: VirtualMachineInstance['status'];
  readonly told?: Domain;
  readonly spec?: Partial<VirtualMachineInstance['spec']>;
}

function aVmi({ grace, deleted, status, told, spec }: VmiFacts = {}): Stored<VirtualMachineInstance> {
  const vmi: Stored<VirtualMachineInstance> = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...STORED, name: 'db', ...(deleted ? { deletionTimestamp: timestamp(NOW) } : {}) },
    spec: { domain: {}, ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }), ...spec },
    status: { nodeName: 'n1', phase: 'Scheduled', activePods: { u: '' }, ...status },
  };
  if (told === undefined) return vmi;
  return { ...vmi, status: reportedStatus(vmi, { domain: told, inspection, reading, hotplug: [], node, nowMs: NOW }) };
}

const running = aDomain();
const paused = aDomain({ state: 'paused' });
const ofHostApi: Domain = { ...running, origin: 'host-api' };
const interfaces = ['default', 'second'].map((name) => ({ name, masquerade: {} }));
const twoNics = { domain: { devices: { interfaces } }, networks: interfaces.map(({ name }) => ({ name, pod: {} })) };
const ended = (how: 'shutdown' | 'destroyed' | 'crashed') => aDomain({ state: 'ended', how });
const waiting = (tries: number, inMs: number): Attempt => ({
  is: 'waiting',
  reason: 'ClaimPending',
  message: 'm',
  tries,
  dueAtMs: NOW + inMs,
});

/** `reportPod Running` and the like: what matters of each action. */
function shown(action: DomainAction): string {
  switch (action.do) {
    case 'reportPod':
      return ['reportPod', action.view.phase, action.view.reason ?? action.view.state.waiting?.reason]
        .filter((word) => word !== undefined)
        .join(' ');
    case 'plug':
    case 'unplug':
    case 'clear':
    case 'verify':
      return `${action.do} ${action.device.id}`;
    case 'lookAgain':
      return `lookAgain ${action.afterMs}`;
    default:
      return action.do;
  }
}

interface Case extends Partial<Omit<DomainWorld, 'node'>> {
  readonly want: readonly string[];
}

const groups: Record<string, Record<string, Case>> = {
  'without a pod': {
    'nothing is there and nothing is done': { want: [] },
    'a guest that runs is switched off and cleared away': { domain: running, want: ['destroy', 'remove'] },
    'a paused one, too': { domain: paused, want: ['destroy', 'remove'] },
    'an ended one is cleared away': { domain: ended('shutdown'), want: ['remove'] },
    'what a try to start left is cleared away': { attempt: waiting(1, 0), want: ['remove'] },
  },
  'to be started': {
    'starts at once': { pod: aPod(), vmi: aVmi(), want: ['start'] },
    'waits where its instance is not there': { pod: aPod(), want: ['reportPod Pending InstanceMissing'] },
    'waits until its instance knows the pod': {
      pod: aPod(),
      vmi: aVmi({ status: { activePods: { other: 'n2' } } }),
      want: ['lookAgain 10000'],
    },
    'does not start what is about to be deleted': { pod: aPod(), vmi: aVmi({ deleted: true }), want: [] },
    'does not start what has ended': { pod: aPod(), vmi: aVmi({ status: { phase: 'Failed' } }), want: [] },
    'waits in silence at first': { pod: aPod(), vmi: aVmi(), attempt: waiting(2, 70), want: ['lookAgain 70'] },
    'tells what it waits for after some tries': {
      pod: aPod(),
      vmi: aVmi(),
      attempt: waiting(3, 200),
      want: ['reportPod Pending ClaimPending', 'lookAgain 200'],
    },
    'tries again when it is time': { pod: aPod(), vmi: aVmi(), attempt: waiting(3, 0), want: ['start'] },
    'gives up what can never be, and leaves nothing': {
      pod: aPod(),
      vmi: aVmi(),
      attempt: { is: 'failed', reason: 'VolumeUnsupported', message: 'm' },
      want: ['remove', 'reportPod Failed VolumeUnsupported'],
    },
    'never starts for a pod that has ended': { pod: aPod({ phase: 'Failed' }), vmi: aVmi(), want: [] },
    'never starts a second time': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi(),
      want: ['reportPod Failed GuestLost'],
    },
  },
  'with a guest': {
    'has its devices read first': {
      pod: aPod(),
      vmi: aVmi(),
      domain: running,
      readingDueAtMs: 0,
      want: ['reportPod Running', 'learn'],
    },
    'is reported then': {
      pod: aPod(),
      vmi: aVmi(),
      domain: running,
      reading,
      want: ['reportPod Running', 'reportVmi'],
    },
    'is reported also while they cannot be read, and they are read later': {
      pod: aPod(),
      vmi: aVmi(),
      domain: running,
      readingDueAtMs: NOW + 200,
      want: ['reportPod Running', 'reportVmi', 'lookAgain 200'],
    },
    'is not reported to an instance that is not on this node yet': {
      pod: aPod(),
      vmi: aVmi({ status: { nodeName: undefined } }),
      domain: running,
      readingDueAtMs: 0,
      want: ['reportPod Running'],
    },
    'is left alone when all is said': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running }),
      domain: running,
      want: ['reportPod Running'],
    },
    'is reported again when it was paused': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running }),
      domain: paused,
      want: ['reportPod Running', 'reportVmi'],
    },
    'is reported again when its devices are others': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running }),
      domain: running,
      reading: { ...reading, hash: 'h2', revision: 8 },
      want: ['reportPod Running', 'reportVmi'],
    },
    'is told of what it lacks before it gets it': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running, spec: twoNics }),
      domain: running,
      want: ['reportPod Running', 'reportVmi', 'plug nic-second'],
    },
    'gets nothing more when its instance is deleted': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running, spec: twoNics, deleted: true }),
      domain: running,
      want: ['reportPod Running'],
    },
    'gets nothing more when it has ended': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running, spec: twoNics }),
      domain: ended('shutdown'),
      want: ['reportPod Succeeded'],
    },
    'is reported when its instance is gone': { pod: aPod(), domain: running, want: ['reportPod Running'] },
    'has shut down': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running }),
      domain: ended('shutdown'),
      want: ['reportPod Succeeded'],
    },
    'has crashed while it was paused': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: paused }),
      domain: ended('crashed'),
      want: ['reportPod Failed GuestCrashed', 'reportVmi'],
    },
    'was switched off by somebody': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ told: running }),
      domain: ended('destroyed'),
      want: ['reportPod Failed Killed'],
    },
    'is kept for its log when it has ended and is reported': {
      pod: aPod({ phase: 'Succeeded' }),
      vmi: aVmi(),
      domain: ended('shutdown'),
      want: [],
    },
    'is switched off where its pod has ended': { pod: aPod({ phase: 'Failed' }), domain: running, want: ['destroy'] },
  },
  'beside a guest of the host API': {
    'is not there, and the guest is left alone': { domain: ofHostApi, want: [] },
    'is not there, and the devices of the guest are read': { domain: ofHostApi, readingDueAtMs: 0, want: ['learn'] },
    'starts nothing': { pod: aPod(), vmi: aVmi(), domain: ofHostApi, want: ['reportPod Pending DomainInUse'] },
    'ends nothing when it is deleted': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: ofHostApi,
      want: ['removePod'],
    },
    'ends nothing when it is deleted and held': { pod: aPod({ deleted: 0 }), domain: ofHostApi, want: [] },
  },
  'to be stopped': {
    'has nothing to stop': { pod: aPod({ deleted: 45 }), vmi: aVmi(), want: ['remove', 'removePod'] },
    'presses the power button and looks again': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      want: ['powerDown', 'lookAgain 10000'],
    },
    'resumes a paused guest first': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: paused,
      want: ['resume', 'powerDown', 'lookAgain 10000'],
    },
    'waits after it pressed': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      stopping: { sinceMs: NOW - 4000, pressedAtMs: NOW - 4000 },
      want: ['lookAgain 6000'],
    },
    'presses again after a while': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      stopping: { sinceMs: NOW - 24_000, pressedAtMs: NOW - 10_000 },
      want: ['powerDown', 'lookAgain 6000'],
    },
    'switches it off when its 30 seconds are over': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      stopping: { sinceMs: NOW - 30_000, pressedAtMs: NOW - 1000 },
      want: ['destroy'],
    },
    'gives it the time of its instance': {
      pod: aPod({ deleted: 135 }),
      vmi: aVmi({ grace: 120 }),
      domain: running,
      stopping: { sinceMs: NOW - 100_000, pressedAtMs: NOW - 1000 },
      want: ['lookAgain 9000'],
    },
    'gives it no time when its instance says so': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi({ grace: 0 }),
      domain: running,
      want: ['destroy'],
    },
    'gives it no more time than its pod has': {
      pod: aPod({ deleted: 5 }),
      vmi: aVmi({ grace: 120 }),
      domain: running,
      want: ['powerDown', 'lookAgain 5000'],
    },
    'gives it the time of its pod when its instance is gone': {
      pod: aPod({ deleted: 45 }),
      domain: running,
      stopping: { sinceMs: NOW - 40_000, pressedAtMs: NOW },
      want: ['lookAgain 5000'],
    },
    'reports an end before it clears away': {
      pod: aPod({ phase: 'Running', deleted: 45 }),
      vmi: aVmi(),
      domain: ended('shutdown'),
      want: ['reportPod Succeeded', 'remove', 'removePod'],
    },
    'reports that it was killed': {
      pod: aPod({ phase: 'Running', deleted: 45 }),
      vmi: aVmi(),
      domain: ended('destroyed'),
      want: ['reportPod Failed Killed', 'remove', 'removePod'],
    },
    'does not report an end twice': {
      pod: aPod({ phase: 'Succeeded', deleted: 45 }),
      domain: ended('shutdown'),
      want: ['remove', 'removePod'],
    },
    'does not ask again for a pod that others hold': {
      pod: aPod({ phase: 'Succeeded', deleted: 0 }),
      want: ['remove'],
    },
  },
};

for (const [group, cases] of Object.entries(groups)) {
  describe(`a launcher ${group}`, () => {
    for (const [sentence, { want, ...world }] of Object.entries(cases)) {
      it(sentence, () => {
        const none = { pod: undefined, vmi: undefined, domain: undefined, attempt: undefined, stopping: undefined };
        const read = { inspection, reading, readingDueAtMs: undefined, hotplugNotes: new Map<string, HotplugNote>() };
        const given = { ...none, ...read, ...world, node, nowMs: 0, elapsedMs: NOW };
        assert.deepEqual(decideDomain(given).map(shown), want);
      });
    }
  });
}
