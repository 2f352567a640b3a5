/**
 * Recognises VMs that a backup tool created from a copy of another VM object: with a new uid, and usually without status.
 * At its first start every VM is marked with its namespace, name and uid. A VM whose mark has another uid is the copy of
 * a machine that has run, so it does not start as a new machine: it needs the identity record of the original. A mark with
 * another namespace or name means that a user created a new VM from an old manifest; such a mark is ignored. Pure.
 */
import { deriveMac } from '#api/identity/derived-mac.ts';
import { STARTED_ANNOTATION } from '#api/names.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

type VmMetadata = Pick<ObjectMeta, 'namespace' | 'name' | 'uid' | 'annotations'>;

/** Returns the value of STARTED_ANNOTATION for a VM that has been started. */
export function startedMark({ namespace, name, uid }: VmMetadata): string {
  return [namespace, name, uid].join('/');
}

/** Returns the uid of the VM that this one was restored from, until this one has started; otherwise undefined. */
export function restoredFrom({ metadata }: { readonly metadata: VmMetadata }): string | undefined {
  const [namespace, name, uid = '', ...rest] = (metadata.annotations?.[STARTED_ANNOTATION] ?? '').split('/');
  const isSameMachine = namespace === metadata.namespace && name === metadata.name && rest.length === 0;
  return isSameMachine && uid !== '' && uid !== metadata.uid ? uid : undefined;
}

/** Returns the uids under which objects of this machine know it: its own, and that of the VM it was restored from. */
export function uidsOf(vm: Stored<VirtualMachine>): string[] {
  const former = restoredFrom(vm);
  return former === undefined ? [vm.metadata.uid] : [vm.metadata.uid, former];
}

/**
 * Returns the MAC address of an interface for which the template sets none. A restored VM gets the address that was
 * derived from the uid of the original, so that it is the same even if the record is lost.
 */
export function derivedMacOf(vm: { readonly metadata: VmMetadata & { readonly uid: string } }, name: string): string {
  return deriveMac(restoredFrom(vm) ?? vm.metadata.uid, name);
}
