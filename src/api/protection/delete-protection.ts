/**
 * Delete protection of VMs: its label and annotations. Policies, webhook, controllers and virtctl take them from here.
 * Pure.
 */
import type { KubeObject } from '#kube/meta.ts';

export const PROTECTION_LABEL = 'kubevirt.io/vm-delete-protection';
/** Name of the policy and of its binding, as in KubeVirt. */
export const PROTECTION_POLICY = 'kubevirt-vm-deletion-protection';
/** Label selector that matches exactly the VMs for which isProtected is true. */
export const PROTECTED_SELECTOR = `${PROTECTION_LABEL} in (true,True)`;

/** On VMs: the reason for the protection, written by the user. */
export const PROTECTION_REASON_ANNOTATION = 'selfsame.io/delete-protection-reason';
/** On VMs: the user who last protected or unprotected them, and the time. Only admission writes these. */
export const PROTECTION_BY_ANNOTATION = 'selfsame.io/delete-protection-by';
export const PROTECTION_AT_ANNOTATION = 'selfsame.io/delete-protection-at';

/**
 * On namespaces, claims, volumes, and the definitions of VMs and records: the protected VMs that would be lost with
 * them.
 */
export const PROTECTED_VMS_ANNOTATION = 'selfsame.io/protected-vms';

/** Admission refuses longer reasons. */
export const MAX_REASON_LENGTH = 1024;

const PROTECTING_VALUES: ReadonlySet<string | undefined> = new Set(['true', 'True']);

export function isProtected({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return PROTECTING_VALUES.has(metadata.labels?.[PROTECTION_LABEL]);
}

/** Values that were probably meant to protect, limited to what a label can hold. */
const PROBABLY_PROTECTING = /^(true|t|yes|y|on|1|enabled?|protect(ed)?)$/i;

/** Reports whether the value does not protect but was probably meant to. */
export function looksLikeProtection(value: string | undefined): boolean {
  return value !== undefined && !PROTECTING_VALUES.has(value) && PROBABLY_PROTECTING.test(value);
}

const MAX_NAMES = 3;

/**
 * Returns `db, web and others`. More than three names give the same text, so that annotations are not rewritten for
 * each VM.
 */
export function formatProtectedNames(sortedNames: readonly string[]): string {
  const listed = sortedNames.slice(0, MAX_NAMES).join(', ');
  return sortedNames.length > MAX_NAMES ? `${listed} and others` : listed;
}
