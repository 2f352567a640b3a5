/**
 * Delete protection of VMs: the label that asks for it, and what is written beside it. The one place that knows the label;
 * policies, webhook, controllers and virtctl read it here. Pure.
 */
import type { KubeObject } from '#kube/meta.ts';

export const PROTECTION_LABEL = 'kubevirt.io/vm-delete-protection';
/** The policy and its binding, as upstream's operator names them. */
export const PROTECTION_POLICY = 'kubevirt-vm-deletion-protection';
/** For label selectors of lists: exactly what isProtected says. */
export const PROTECTED_SELECTOR = `${PROTECTION_LABEL} in (true,True)`;

/** On VMs: why they are protected; written by who protects them. */
export const PROTECTION_REASON_ANNOTATION = 'selfsame.io/delete-protection-reason';
/** On VMs: who has last protected or unprotected them, and when; written by admission, by nobody else. */
export const PROTECTION_BY_ANNOTATION = 'selfsame.io/delete-protection-by';
export const PROTECTION_AT_ANNOTATION = 'selfsame.io/delete-protection-at';

/** On namespaces, claims, volumes and the definitions of VMs and records: the protected VMs that would be lost with them. */
export const PROTECTED_VMS_ANNOTATION = 'selfsame.io/protected-vms';

/** Longer reasons are refused. */
export const MAX_REASON_LENGTH = 1024;

const PROTECTING: ReadonlySet<string | undefined> = new Set(['true', 'True']);

export function isProtected({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return PROTECTING.has(metadata.labels?.[PROTECTION_LABEL]);
}

/** Words of people who believe that they protect; labels hold no others. */
const MEANT = /^(true|t|yes|y|on|1|enabled?|protect(ed)?)$/i;

/** Whether the value does not protect, but looks as if it were meant to. */
export function looksMeant(value: string | undefined): boolean {
  return value !== undefined && !PROTECTING.has(value) && MEANT.test(value);
}

const MAX_NAMES = 3;

/** `db, web and others`: stays the same while further ones come, so that it is not written again for each. */
export function namesOfProtected(sortedNames: readonly string[]): string {
  const listed = sortedNames.slice(0, MAX_NAMES).join(', ');
  return sortedNames.length > MAX_NAMES ? `${listed} and others` : listed;
}
