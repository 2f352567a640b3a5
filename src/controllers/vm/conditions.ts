/** Computes the conditions of a VM: its own, and copies of those of its instance. Wording follows KubeVirt. Pure. */
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { DEFINITION_MISSING } from '#api/network/missing-definition.ts';
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { CLAIM_DELETION } from '#api/virtual-machine/claim-deletion.ts';
import { claimDeletionCondition } from '#controllers/vm/deleted-claims.ts';
import { FIRMWARE_MISMATCH, firmwareMismatchCondition } from '#controllers/vm/firmware-mismatch.ts';
import { missingNetworksCondition } from '#controllers/vm/missing-networks.ts';
import { awaitsImport } from '#controllers/vm/identity/imported-devices.ts';
import { awaitsRebuild, lossCondition, RECORD_LOST } from '#controllers/vm/identity/lost-record.ts';
import { requiresRestart } from '#controllers/vm/hotplug/restart-required.ts';
import type { ValueSharers } from '#controllers/vm/identity/value-holders.ts';
import type { SharedAddress, SharedMac, VmFailure, VmWorld } from '#controllers/vm/vm-world.ts';
import { templateSpec } from '#api/virtual-machine/kind.ts';
import { findCondition, setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { timestamp } from '#lib/clock.ts';

type Conditions = NonNullable<VmStatus['conditions']>;

const DUPLICATE_UUID = 'DuplicateFirmwareUUID';
const DUPLICATE_MAC = 'DuplicateMACAddress';
const DUPLICATE_ADDRESS = 'DuplicateNetworkAddress';
/** A condition describes the first of them. */
const MAX_MACS = 3;

/** Condition types that the VM sets itself; all others are copied from the instance. */
const OWN_TYPES: ReadonlySet<string> = new Set([
  'Ready',
  'Failure',
  'RestartRequired',
  DUPLICATE_UUID,
  DUPLICATE_MAC,
  DUPLICATE_ADDRESS,
  RECORD_LOST,
  CLAIM_DELETION,
  FIRMWARE_MISMATCH,
  DEFINITION_MISSING,
]);

export function vmConditions(world: VmWorld, failure: VmFailure | undefined): Conditions {
  const { vm, vmi, sharers, sharedMacs = [], sharedAddresses = [], now } = world;
  const old = (vm.status?.conditions ?? []) as Condition[];
  const condition = (next: NextCondition): Condition[] => {
    const before = findCondition(old, next.type);
    return [...setCondition(before === undefined ? [] : [before], next, timestamp(now))];
  };
  const loss = lossCondition(world);
  const claimDeletion = claimDeletionCondition(world);
  const mismatch = firmwareMismatchCondition(world);
  const missing = missingNetworksCondition(world);
  const mirrored = vmi?.status?.conditions ?? [];
  const ready = mirrored.find(({ type }) => type === 'Ready');
  return [
    ...(ready === undefined ? condition(notReady(world)) : [ready]),
    ...(failure === undefined ? [] : condition({ type: 'Failure', status: 'True', ...failure })),
    ...(requiresRestart(world) ? condition(RESTART_REQUIRED) : []),
    ...(loss === undefined ? [] : condition(loss)),
    ...(claimDeletion === undefined ? [] : condition(claimDeletion)),
    ...(mismatch === undefined ? [] : condition(mismatch)),
    ...(missing === undefined ? [] : condition(missing)),
    ...(sharers === undefined ? [] : condition(duplicateUuid(world, sharers))),
    ...(sharedMacs.length === 0 ? [] : condition(duplicateMacs(world, sharedMacs))),
    ...(sharedAddresses.length === 0 ? [] : condition(duplicateAddresses(world, sharedAddresses))),
    ...mirrored.filter(({ type }) => !OWN_TYPES.has(type)),
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

/**
 * Returns the condition. Its message has no count, so that it does not change with each additional duplicate, and no
 * names from other namespaces, which the reader may not be allowed to see.
 */
function duplicateUuid({ vm }: VmWorld, sharers: ValueSharers): NextCondition {
  const { uuid } = templateSpec(vm).domain.firmware ?? {};
  const message = `Firmware uuid ${uuid} is also used by ${describeSharers(vm, sharers)}; change the uuid of all but one of them`;
  return { type: DUPLICATE_UUID, status: 'True', reason: DUPLICATE_UUID, message };
}

function duplicateMacs({ vm }: VmWorld, shared: readonly SharedMac[]): NextCondition {
  const texts = shared
    .slice(0, MAX_MACS)
    .map(({ macAddress, sharers }) => `MAC address ${macAddress} is also used by ${describeSharers(vm, sharers)}`);
  const more = shared.length > MAX_MACS ? ['so are other MAC addresses of this VirtualMachine'] : [];
  const message = `${[...texts, ...more].join('; ')}; change the address of all but one of them`;
  return { type: DUPLICATE_MAC, status: 'True', reason: DUPLICATE_MAC, message };
}

function duplicateAddresses({ vm }: VmWorld, shared: readonly SharedAddress[]): NextCondition {
  const texts = shared
    .slice(0, MAX_MACS)
    .map(({ address, sharers }) => `Address ${address} is also claimed by ${describeSharers(vm, sharers)}`);
  const more = shared.length > MAX_MACS ? ['so are other addresses of this VirtualMachine'] : [];
  const message = `${[...texts, ...more].join('; ')}; only one of them can start: ask for another address in the annotation ${REQUESTED_ADDRESSES_ANNOTATION} of the others`;
  return { type: DUPLICATE_ADDRESS, status: 'True', reason: DUPLICATE_ADDRESS, message };
}

function describeSharers(vm: VmWorld['vm'], { names, hasMore }: ValueSharers): string {
  const prefix = `${vm.metadata.namespace}/`;
  const own = names.filter((name) => name.startsWith(prefix)).map((name) => `"${name.slice(prefix.length)}"`);
  const listed = [
    ...(own.length === 0 ? [] : [`VirtualMachine ${own.join(', ')}`]),
    ...(own.length === names.length ? [] : ['VirtualMachines in other namespaces']),
    ...(hasMore ? ['others'] : []),
  ];
  return listed.join(' and ');
}

const RESTART_REQUIRED: NextCondition = {
  type: 'RestartRequired',
  status: 'True',
  message: 'a non-live-updatable field was changed in the template spec',
};
