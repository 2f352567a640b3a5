/** The policy and its binding, the very objects that the operator installs. */
import { PROTECTION_POLICY } from '#api/delete-protection.ts';
import { installation } from '#operator/objects/installation.ts';

export const protectionPolicy = installation.filter(({ object }) => object.metadata.name === PROTECTION_POLICY);
