/** Reads the persistent state: an element of our own namespace, which only our own OVFs have. */
import type { Findings } from '#formats/findings.ts';
import type { DescribedState } from '#formats/machine.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import type { OvfStorage } from '#formats/ovf/read-storage.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childrenNamed } from '#lib/xml.ts';
import { quoteText } from '#lib/quote-text.ts';

export function readState(
  { system }: Envelope,
  { files }: OvfStorage,
  findings: Findings,
): { readonly state?: DescribedState } {
  const [element, ...others] = childrenNamed(system, 'State', OWN);
  if (element === undefined) return {};
  if (others.length > 0) findings.addError('the persistent state appears twice');
  const is = (name: string) => attributeOf(element, name, OWN) === 'true';
  const reference = attributeOf(element, 'fileRef', OWN);
  const file = reference === undefined ? undefined : files.find(({ id }) => id === reference);
  if (reference !== undefined && file === undefined) {
    findings.addError(`the persistent state is in the file ${quoteText(reference)}, which is missing`);
  }
  return {
    state: {
      tpm: is('tpm'),
      efi: is('efi'),
      ...(file !== undefined && { file: file.href }),
      ...(file?.sizeBytes !== undefined && { sizeBytes: file.sizeBytes }),
    },
  };
}
