/** The one place that draws random names and ids. */
import { randomInt, randomUUID } from 'node:crypto';

/** Kubernetes' alphabet for generated names: no vowels and no look-alikes, so that no words come out. */
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

/** The name that the API server gives for a generateName: the base is cut so that the whole fits into 63 characters. */
export function generatedName(base: string): string {
  return base.slice(0, NAME_MAX - SUFFIX_LENGTH) + randomSuffix();
}
