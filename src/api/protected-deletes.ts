/** What cannot be deleted while protected VMs would be lost with it, and in which words that is refused. Pure. */
import { PROTECTION_LABEL } from '#api/delete-protection.ts';

export type GuardedKind = 'Namespace' | 'PersistentVolumeClaim' | 'PersistentVolume' | 'CustomResourceDefinition';

/** What such an object is to the VMs. */
export const BONDS: Readonly<Record<GuardedKind, string>> = {
  Namespace: 'it holds',
  PersistentVolumeClaim: 'it is a disk of',
  PersistentVolume: 'it holds a disk of',
  CustomResourceDefinition: 'it defines',
};

export interface ProtectedDelete {
  readonly kind: string;
  readonly name: string;
  readonly bond: string;
  /** As marks name them. */
  readonly vms: string;
}

export function deleteRefusal({ kind, name, bond, vms }: ProtectedDelete): string {
  return `${kind} "${name}" cannot be deleted: ${bond} the protected VirtualMachine ${vms}; remove the label ${PROTECTION_LABEL} from them first`;
}
