/**
 * Reports networks of a VM for which there is no NetworkAttachmentDefinition. VMs of earlier versions named bridges of the
 * host; their guests keep running, and the condition shows what their next start needs. Pure.
 */
import { DEFINITION_MISSING, describeMissingDefinition } from '#api/network/missing-definition.ts';
import { definitionPlaces } from '#api/network/network-attachment-definition.ts';
import { secondaryNetworksOf } from '#api/network/secondary-networks.ts';
import { templateSpec, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { findCondition, type NextCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';

/** A condition describes the first of them. */
const MAX_DESCRIBED = 3;

/** Returns the keys of all definitions that the networks of a VM could mean. */
export function definitionKeysOf(vm: Stored<VirtualMachine>): string[] {
  const keys = secondaryNames(vm).flatMap(placeKeys(vm));
  return [...new Set(keys)];
}

/** Returns the network names of a VM that mean no definition. `exists` tells whether there is one with this key. */
export function findMissingNetworks(vm: Stored<VirtualMachine>, exists: (key: string) => boolean): string[] {
  const keysOf = placeKeys(vm);
  return [...new Set(secondaryNames(vm))].filter((name) => !keysOf(name).some(exists));
}

function placeKeys({ metadata: { namespace = '' } }: Stored<VirtualMachine>): (networkName: string) => string[] {
  return (networkName) =>
    (definitionPlaces(networkName, namespace) ?? []).map((place) => `${place.namespace}/${place.name}`);
}

function secondaryNames(vm: Stored<VirtualMachine>): string[] {
  return secondaryNetworksOf(templateSpec(vm)).map(({ networkName }) => networkName);
}

export function missingNetworksCondition({ vm, missingNetworks = [] }: VmWorld): NextCondition | undefined {
  if (missingNetworks.length === 0) return undefined;
  const { namespace = '' } = vm.metadata;
  const texts = missingNetworks.slice(0, MAX_DESCRIBED).map((name) => describeMissingDefinition(name, namespace));
  const message = [...texts, ...(missingNetworks.length > MAX_DESCRIBED ? ['Others are missing, too.'] : [])].join(' ');
  return { type: DEFINITION_MISSING, status: 'True', reason: DEFINITION_MISSING, message };
}

/** Returns the Event if the condition is new. Must accompany the status, which then shows the condition. */
export function missingNetworksEvents(world: VmWorld): EventNote[] {
  const condition = missingNetworksCondition(world);
  const isKnown = findCondition(world.vm.status?.conditions, DEFINITION_MISSING) !== undefined;
  if (condition === undefined || isKnown) return [];
  return [{ type: 'Warning', reason: DEFINITION_MISSING, message: condition.message ?? '' }];
}
