/** What a file of this node is, by its first bytes (api/image-header.ts), in the words of volumes. */
import { readImageHeader, type ImageHeader } from '#api/image-header.ts';
import { failed, type Refusal } from './volumes-host.ts';

export { HEADER_BYTES } from '#api/image-header.ts';

export type ImageFormat = Exclude<ImageHeader, { is: 'refused' }>;

export function imageFormat(header: Buffer, path: string): ImageFormat | Refusal {
  const found = readImageHeader(header);
  if (found.is !== 'refused') return found;
  const text = `Cannot use image "${path}": ${found.why}; expected a raw or a self-contained qcow2 image`;
  return failed('ImageRefused', text);
}
