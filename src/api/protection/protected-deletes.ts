/** Objects that cannot be deleted while protected VMs depend on them, and the message of the refusal. Pure. */
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { groupResource } from '#kube/meta.ts';

export type GuardedKind = 'Namespace' | 'PersistentVolumeClaim' | 'PersistentVolume' | 'CustomResourceDefinition';

/** Describes the relation of an object of the kind to the VMs. */
export const RELATIONS: Readonly<Record<GuardedKind, string>> = {
  Namespace: 'it holds',
  PersistentVolumeClaim: 'it is a disk of',
  PersistentVolume: 'it holds a disk of',
  CustomResourceDefinition: 'it defines',
};

/** The definitions that protected VMs depend on, by name, with their relation to the VMs. */
export const DEFINITION_RELATIONS: Readonly<Record<string, string>> = {
  [groupResource(VIRTUAL_MACHINES)]: RELATIONS.CustomResourceDefinition,
  [groupResource(VIRTUAL_MACHINE_IDENTITIES)]: 'it defines the identity record of',
};

/** Reports whether VMs depend on the definition. */
export function isGuardedDefinition(name: string): boolean {
  return Object.hasOwn(DEFINITION_RELATIONS, name);
}

/** Returns the relation of the object to the VMs. */
export function relationOf(kind: GuardedKind, name: string): string {
  const isDefinition = kind === 'CustomResourceDefinition' && isGuardedDefinition(name);
  return (isDefinition ? DEFINITION_RELATIONS[name] : undefined) ?? RELATIONS[kind];
}

/** The end of a refusal: what to do. */
export const UNPROTECT_FIRST = `remove the label ${PROTECTION_LABEL} from them first (virtctl unprotect)`;

interface ProtectedDelete {
  readonly kind: string;
  readonly name: string;
  readonly relation: string;
  /** Names of the VMs, as in PROTECTED_VMS_ANNOTATION. */
  readonly vms: string;
}

export function describeDeleteRefusal({ kind, name, relation, vms }: ProtectedDelete): string {
  return `${kind} "${name}" cannot be deleted: ${relation} the protected VirtualMachine ${vms}; ${UNPROTECT_FIRST}`;
}
