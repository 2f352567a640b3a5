import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { decideDomain } from '#node/domains/decide-domain.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { StartAttempt } from '#node/guests/domain-notes.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';
import type { HotplugNote } from '#node/guests/hotplug-notes.ts';
import { reportedStatus } from '#node/domains/vmi-report.ts';
import type { DomainInfo, DomainState } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';

const NOW = 1_900_000_000_000;
const STORED = { uid: 'u', resourceVersion: '1', creationTimestamp: timestamp(NOW), namespace: 'ns' };

interface PodFacts {
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  /** Grace period of the deletion in seconds. */
  readonly deleted?: number;
}

function aPod({ phase = 'Pending', deleted }: PodFacts = {}): Stored<Pod> {
  const deletion =
    deleted === undefined ? {} : { deletionTimestamp: timestamp(NOW), deletionGracePeriodSeconds: deleted };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...STORED, name: 'launcher', ...deletion },
    spec: { containers: [{ name: 'compute', image: 'selfsame/virt-launcher' }] },
    status: { phase },
  };
}

const node: DomainWorld['node'] = {
  name: 'n1',
  hostIp: '127.0.0.1',
  sandboxed: false,
  capabilities: { machines: [], accelerator: 'tcg', version: 'QEMU 7.2' },
};

function aDomain(current: DomainState = { state: 'running' }): DomainInfo {
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
const inspection = { definition: { ...aDefinition(), devices: [nic] }, unplugging: [] };
const reading = { devices: [], hash: 'h1', revision: 7 };

interface VmiFacts {
  readonly grace?: number;
  readonly deleted?: boolean;
  readonly status?: VirtualMachineInstance['status'];
  readonly reported?: DomainInfo;
  readonly spec?: Partial<VirtualMachineInstance['spec']>;
}

function aVmi({ grace, deleted, status, reported, spec }: VmiFacts = {}): Stored<VirtualMachineInstance> {
  const vmi: Stored<VirtualMachineInstance> = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...STORED, name: 'db', ...(deleted ? { deletionTimestamp: timestamp(NOW) } : {}) },
    spec: { domain: {}, ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }), ...spec },
    status: { nodeName: 'n1', phase: 'Scheduled', activePods: { u: '' }, ...status },
  };
  if (reported === undefined) return vmi;
  return {
    ...vmi,
    status: reportedStatus(vmi, { domain: reported, inspection, reading, hotplug: [], node, nowMs: NOW }),
  };
}

const running = aDomain();
const paused = aDomain({ state: 'paused' });
const ofHostApi: DomainInfo = { ...running, origin: 'host-api' };
const interfaces = ['default', 'second'].map((name) => ({ name, masquerade: {} }));
const twoNics = { domain: { devices: { interfaces } }, networks: interfaces.map(({ name }) => ({ name, pod: {} })) };
const ended = (how: 'shutdown' | 'destroyed' | 'crashed') => aDomain({ state: 'ended', how });
const waiting = (tries: number, inMs: number): StartAttempt => ({
  is: 'waiting',
  reason: 'ClaimPending',
  message: 'm',
  tries,
  dueAtMs: NOW + inMs,
});

/** Returns an action in short form, for example `reportPod Running`. */
function summarizeAction(action: DomainAction): string {
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
    case 'recheck':
      return `recheck ${action.afterMs}`;
    default:
      return action.do;
  }
}

interface Case extends Partial<Omit<DomainWorld, 'node'>> {
  readonly want: readonly string[];
}

const groups: Record<string, Record<string, Case>> = {
  'without a pod': {
    'does nothing if there is no guest': { want: [] },
    'switches off and removes a running guest': { domain: running, want: ['destroy', 'remove'] },
    'switches off and removes a paused guest': { domain: paused, want: ['destroy', 'remove'] },
    'removes an ended guest': { domain: ended('shutdown'), want: ['remove'] },
    'releases the volumes of a failed start': { attempt: waiting(1, 0), want: ['remove'] },
  },
  'to be started': {
    'starts at once': { pod: aPod(), vmi: aVmi(), want: ['start'] },
    'waits if its instance does not exist': { pod: aPod(), want: ['reportPod Pending InstanceMissing'] },
    'waits until the status of the instance names the pod': {
      pod: aPod(),
      vmi: aVmi({ status: { activePods: { other: 'n2' } } }),
      want: ['recheck 10000'],
    },
    'does not start an instance under deletion': { pod: aPod(), vmi: aVmi({ deleted: true }), want: [] },
    'does not start an ended instance': { pod: aPod(), vmi: aVmi({ status: { phase: 'Failed' } }), want: [] },
    'does not report the first failed attempts': {
      pod: aPod(),
      vmi: aVmi(),
      attempt: waiting(2, 70),
      want: ['recheck 70'],
    },
    'reports the reason for waiting after three attempts': {
      pod: aPod(),
      vmi: aVmi(),
      attempt: waiting(3, 200),
      want: ['reportPod Pending ClaimPending', 'recheck 200'],
    },
    'tries again when the backoff is over': { pod: aPod(), vmi: aVmi(), attempt: waiting(3, 0), want: ['start'] },
    'cleans up and fails the pod after a permanent failure': {
      pod: aPod(),
      vmi: aVmi(),
      attempt: { is: 'failed', reason: 'VolumeUnsupported', message: 'm' },
      want: ['remove', 'reportPod Failed VolumeUnsupported'],
    },
    'never starts a guest for an ended pod': { pod: aPod({ phase: 'Failed' }), vmi: aVmi(), want: [] },
    'never starts a guest a second time': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi(),
      want: ['reportPod Failed GuestLost'],
    },
  },
  'with a guest': {
    'reads the devices before the first status report': {
      pod: aPod(),
      vmi: aVmi(),
      domain: running,
      readingDueAtMs: 0,
      want: ['reportPod Running', 'learn'],
    },
    'reports the status after the devices were read': {
      pod: aPod(),
      vmi: aVmi(),
      domain: running,
      reading,
      want: ['reportPod Running', 'reportVmi'],
    },
    'reports the status while the devices cannot be read, and reads them later': {
      pod: aPod(),
      vmi: aVmi(),
      domain: running,
      readingDueAtMs: NOW + 200,
      want: ['reportPod Running', 'reportVmi', 'recheck 200'],
    },
    'does not write to an instance that is not on this node yet': {
      pod: aPod(),
      vmi: aVmi({ status: { nodeName: undefined } }),
      domain: running,
      readingDueAtMs: 0,
      want: ['reportPod Running'],
    },
    'does not write an unchanged status': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running }),
      domain: running,
      want: ['reportPod Running'],
    },
    'reports the status again after the guest was paused': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running }),
      domain: paused,
      want: ['reportPod Running', 'reportVmi'],
    },
    'reports the status again after the devices changed': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running }),
      domain: running,
      reading: { ...reading, hash: 'h2', revision: 8 },
      want: ['reportPod Running', 'reportVmi'],
    },
    'reports a missing device before plugging it in': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running, spec: twoNics }),
      domain: running,
      want: ['reportPod Running', 'reportVmi', 'plug nic-second'],
    },
    'plugs nothing in if the instance is deleted': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running, spec: twoNics, deleted: true }),
      domain: running,
      want: ['reportPod Running'],
    },
    'plugs nothing in if the guest has ended': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running, spec: twoNics }),
      domain: ended('shutdown'),
      want: ['reportPod Succeeded'],
    },
    'reports the pod if the instance is gone': { pod: aPod(), domain: running, want: ['reportPod Running'] },
    'reports a shutdown': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running }),
      domain: ended('shutdown'),
      want: ['reportPod Succeeded'],
    },
    'reports a crash of a paused guest': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: paused }),
      domain: ended('crashed'),
      want: ['reportPod Failed GuestCrashed', 'reportVmi'],
    },
    'reports a guest that was switched off': {
      pod: aPod({ phase: 'Running' }),
      vmi: aVmi({ reported: running }),
      domain: ended('destroyed'),
      want: ['reportPod Failed Killed'],
    },
    'keeps an ended guest for its log': {
      pod: aPod({ phase: 'Succeeded' }),
      vmi: aVmi(),
      domain: ended('shutdown'),
      want: [],
    },
    'switches off a guest whose pod has ended': { pod: aPod({ phase: 'Failed' }), domain: running, want: ['destroy'] },
  },
  'with a guest of the host API': {
    'leaves the guest alone if there is no pod': { domain: ofHostApi, want: [] },
    'reads the devices if there is no pod': { domain: ofHostApi, readingDueAtMs: 0, want: ['learn'] },
    'does not start another guest': {
      pod: aPod(),
      vmi: aVmi(),
      domain: ofHostApi,
      want: ['reportPod Pending DomainInUse'],
    },
    'removes a deleted pod only': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: ofHostApi,
      want: ['removePod'],
    },
    'does nothing for a deleted pod that a finalizer keeps': { pod: aPod({ deleted: 0 }), domain: ofHostApi, want: [] },
  },
  'to be stopped': {
    'removes the pod if there is no guest': { pod: aPod({ deleted: 45 }), vmi: aVmi(), want: ['remove', 'removePod'] },
    'presses the power button and checks again': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      want: ['powerDown', 'recheck 10000'],
    },
    'resumes a paused guest first': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: paused,
      want: ['resume', 'powerDown', 'recheck 10000'],
    },
    'waits after pressing the button': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      stop: { sinceMs: NOW - 4000, pressedAtMs: NOW - 4000 },
      want: ['recheck 6000'],
    },
    'presses the button again after 10 seconds': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      stop: { sinceMs: NOW - 24_000, pressedAtMs: NOW - 10_000 },
      want: ['powerDown', 'recheck 6000'],
    },
    'switches the guest off after the default grace period of 30 seconds': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi(),
      domain: running,
      stop: { sinceMs: NOW - 30_000, pressedAtMs: NOW - 1000 },
      want: ['destroy'],
    },
    'uses the grace period of the instance': {
      pod: aPod({ deleted: 135 }),
      vmi: aVmi({ grace: 120 }),
      domain: running,
      stop: { sinceMs: NOW - 100_000, pressedAtMs: NOW - 1000 },
      want: ['recheck 9000'],
    },
    'switches the guest off at once if the grace period of the instance is 0': {
      pod: aPod({ deleted: 45 }),
      vmi: aVmi({ grace: 0 }),
      domain: running,
      want: ['destroy'],
    },
    'uses the grace period of the pod if it is shorter': {
      pod: aPod({ deleted: 5 }),
      vmi: aVmi({ grace: 120 }),
      domain: running,
      want: ['powerDown', 'recheck 5000'],
    },
    'uses the grace period of the pod if the instance is gone': {
      pod: aPod({ deleted: 45 }),
      domain: running,
      stop: { sinceMs: NOW - 40_000, pressedAtMs: NOW },
      want: ['recheck 5000'],
    },
    'reports the end of the guest before removing it': {
      pod: aPod({ phase: 'Running', deleted: 45 }),
      vmi: aVmi(),
      domain: ended('shutdown'),
      want: ['reportPod Succeeded', 'remove', 'removePod'],
    },
    'reports that the guest was killed': {
      pod: aPod({ phase: 'Running', deleted: 45 }),
      vmi: aVmi(),
      domain: ended('destroyed'),
      want: ['reportPod Failed Killed', 'remove', 'removePod'],
    },
    'does not report the end twice': {
      pod: aPod({ phase: 'Succeeded', deleted: 45 }),
      domain: ended('shutdown'),
      want: ['remove', 'removePod'],
    },
    'does not remove a pod that a finalizer keeps': {
      pod: aPod({ phase: 'Succeeded', deleted: 0 }),
      want: ['remove'],
    },
  },
};

for (const [group, cases] of Object.entries(groups)) {
  describe(`a launcher ${group}`, () => {
    for (const [sentence, { want, ...world }] of Object.entries(cases)) {
      it(sentence, () => {
        const none = { pod: undefined, vmi: undefined, domain: undefined, attempt: undefined, stop: undefined };
        const read = { inspection, reading, readingDueAtMs: undefined, hotplugNotes: new Map<string, HotplugNote>() };
        const given = { ...none, ...read, ...world, node, nowMs: 0, elapsedMs: NOW };
        assert.deepEqual(decideDomain(given).map(summarizeAction), want);
      });
    }
  });
}
