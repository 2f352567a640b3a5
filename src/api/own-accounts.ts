/** How the API server names our parts when they ask it for something. */
import { SYSTEM_NAMESPACE } from '#api/names.ts';

export const accountOf = (name: string) => `system:serviceaccount:${SYSTEM_NAMESPACE}:${name}`;

/** Reports whether a user of the API server is one of our parts. */
export const isOwnAccount = (user: string) => user.startsWith(accountOf(''));

/** The only writer of marks (PROTECTED_VMS_ANNOTATION). */
export const PROTECTION_ACCOUNT = accountOf('protection-controller');

/** Who puts other claims in the place of those of a VM: protected VMs are restored, and migrated, too. */
export const CLAIM_REPLACERS: readonly string[] = [accountOf('restore-controller'), accountOf('migration-controller')];
