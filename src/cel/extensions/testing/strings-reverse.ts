/** `reverse` of version 3 of cel-go's strings extension, for the tests of the specification. Kubernetes 1.32 has version 2. */
import { type Budget, bytesCost } from '#cel/limits/budget.ts';
import { hasSurrogates } from '#cel/evaluate/text/code-points.ts';
import { method } from '#cel/extensions/overload.ts';
import type { Library } from '#cel/library.ts';
import { STRING } from '#cel/type.ts';

export const stringsReverseLibrary: Library = {
  functions: { reverse: [method<[string]>('string_reverse', [STRING], STRING, reverse)] },
};

function reverse(budget: Budget, text: string): string {
  budget.charge(bytesCost(text.length * 4)); // Covers the intermediate list of characters.
  return (hasSurrogates(text) ? [...text] : text.split('')).reverse().join('');
}
