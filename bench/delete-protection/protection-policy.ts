/** The policy and its binding, exactly as the operator installs them. */
import { PROTECTION_POLICY } from '#api/protection/delete-protection.ts';
import { maintainedObjects } from '#operator/objects/installation.ts';

export const protectionPolicy = maintainedObjects.filter(({ object }) => object.metadata.name === PROTECTION_POLICY);
