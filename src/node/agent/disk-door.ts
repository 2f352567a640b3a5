/** Opens the disks behind claims for export and import: never while a guest of this node has one, or is about to. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { PersistentVolume, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { claimOf, guestsOf, usersOf } from '#node/agent/claim-users.ts';
import { instanceUids } from '#node/domains/observe-domain.ts';
import { volumeLookups } from '#node/domains/start-domain.ts';
import type { DiskDoor } from '#node/endpoint/endpoint-agent.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Volumes } from '#node/volumes-port.ts';

export interface DiskDoorParts {
  readonly client: Reader;
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  readonly signal: AbortSignal;
}

/** To be called when claims are indexed (indexClaims). Undefined where disks are only pretended. */
export function diskDoor(parts: DiskDoorParts): DiskDoor | undefined {
  const { client, signal } = parts;
  const { contents } = parts.volumes;
  if (contents === undefined) return undefined;
  const useOf = (volume: Stored<PersistentVolume>) => useText(volume, parts);
  return {
    open: (namespace, claim) => contents.open(claim, volumeLookups(namespace, client, signal), { useOf }),
    replace: (namespace, claim) => contents.replace(claim, volumeLookups(namespace, client, signal), { useOf }),
  };
}

/** As for snapshots of disks that nobody has open (take-unused.ts). */
function useText(volume: Stored<PersistentVolume>, { pods, vmis, hypervisor }: DiskDoorParts): string | undefined {
  const { name, deletionTimestamp } = volume.metadata;
  if (deletionTimestamp !== undefined) return `PersistentVolume "${name}" is being deleted`;
  const claim = claimOf(volume);
  const pod = usersOf(claim, pods).find((user) => instanceUids(user).length > 0);
  if (pod !== undefined) return `PersistentVolume "${name}" is in use by pod "${pod.metadata.name}"`;
  const [vmi] = guestsOf(claim, { vmis, hypervisor });
  if (vmi === undefined) return undefined;
  return `PersistentVolume "${name}" is in use by VirtualMachineInstance "${vmi.metadata.name}"`;
}
