/** The conditions of a VM: what it says itself, and its instance's as they are. In KubeVirt's words. Pure. */
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { awaitsImport } from '#controllers/vm/imported-devices.ts';
import { awaitsRebuild, lossCondition, RECORD_LOST } from '#controllers/vm/lost-record.ts';
import { restartRequired } from '#controllers/vm/restart-required.ts';
import type { UuidSharers } from '#controllers/vm/uuid-holders.ts';
import { templateSpec, type VmWorld } from '#controllers/vm/vm-world.ts';
import { findCondition, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { timestamp } from '#lib/clock.ts';

export interface Trouble {
  readonly reason: string;
  readonly message: string;
}

type Conditions = NonNullable<VmStatus['conditions']>;

const DUPLICATE_UUID = 'DuplicateFirmwareUUID';

/** What the VM says itself; everything else is mirrored. */
const OWN: ReadonlySet<string> = new Set(['Ready', 'Failure', 'RestartRequired', DUPLICATE_UUID, RECORD_LOST]);

export function conditionsOf(world: VmWorld, trouble: Trouble | undefined): Conditions {
  const { vm, vmi, sharers, now } = world;
  const old = (vm.status?.conditions ?? []) as Condition[];
  const stated = (next: NextCondition): Condition[] => {
    const before = findCondition(old, next.type);
    return [...setCondition(before === undefined ? [] : [before], next, timestamp(now))];
  };
  const loss = lossCondition(world);
  const mirrored = vmi?.status?.conditions ?? [];
  const ready = mirrored.find(({ type }) => type === 'Ready');
  return [
    ...(ready === undefined ? stated(notReady(world)) : [ready]),
    ...(trouble === undefined ? [] : stated({ type: 'Failure', status: 'True', ...trouble })),
    ...(restartRequired(world) ? stated(RESTART_REQUIRED) : []),
    ...(loss === undefined ? [] : stated(loss)),
    ...(sharers === undefined ? [] : stated(duplicateUuid(world, sharers))),
    ...mirrored.filter(({ type }) => !OWN.has(type)),
  ] as Conditions;
}

function notReady(world: VmWorld): NextCondition {
  const [reason, message] =
    world.vmi !== undefined
      ? ['VMIConditionMissing', 'VMI is missing the Ready condition']
      : awaitsImport(world)
        ? ['ImportedDevicesPending', 'The start waits until the identity record has the devices of the import']
        : awaitsRebuild(world)
          ? ['IdentityRebuildPending', 'The start waits until the identity record has been rebuilt']
          : ['VMINotExists', 'VMI does not exist'];
  return { type: 'Ready', status: 'False', reason, message };
}

/** It tells no number, so that it stays the same while further ones come, and no names that are others' business. */
function duplicateUuid({ vm }: VmWorld, { names, more }: UuidSharers): NextCondition {
  const { uuid } = templateSpec(vm).domain.firmware ?? {};
  const here = `${vm.metadata.namespace}/`;
  const own = names.filter((name) => name.startsWith(here)).map((name) => `"${name.slice(here.length)}"`);
  const listed = [
    ...(own.length === 0 ? [] : [`VirtualMachine ${own.join(', ')}`]),
    ...(own.length === names.length ? [] : ['VirtualMachines in other namespaces']),
    ...(more ? ['others'] : []),
  ];
  const message = `Firmware uuid ${uuid} is also that of ${listed.join(' and ')}; give one of them another one`;
  return { type: DUPLICATE_UUID, status: 'True', reason: DUPLICATE_UUID, message };
}

const RESTART_REQUIRED: NextCondition = {
  type: 'RestartRequired',
  status: 'True',
  message: 'a non-live-updatable field was changed in the template spec',
};
