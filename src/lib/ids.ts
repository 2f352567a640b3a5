/** The only module that creates random names and ids. */
import { randomInt, randomUUID } from 'node:crypto';

/**
 * Kubernetes' alphabet for generated names: without vowels, so that no words appear, and without similar characters.
 */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const NAME_MAX = 63;
const SUFFIX_LENGTH = 5;

export function newUid(): string {
  return randomUUID();
}

export function randomSuffix(length = SUFFIX_LENGTH): string {
  let suffix = '';
  for (let i = 0; i < length; i++) suffix += ALPHABET[randomInt(ALPHABET.length)];
  return suffix;
}

/**
 * Returns a name for a generateName, as the API server does: cuts the base so that the name has at most 63 characters.
 */
export function generateName(base: string): string {
  return base.slice(0, NAME_MAX - SUFFIX_LENGTH) + randomSuffix();
}
