/** Detects the format of an image by its first bytes (api/storage/image-header.ts), or refuses it. */
import { readImageHeader, type ImageHeader } from '#api/storage/image-header.ts';
import { failedRefusal, type VolumeRefusal } from '../volumes-host.ts';

export { HEADER_BYTES } from '#api/storage/image-header.ts';

export type ImageFormat = Exclude<ImageHeader, { is: 'refused' }>;

export function parseImageFormat(header: Buffer, path: string): ImageFormat | VolumeRefusal {
  const found = readImageHeader(header);
  if (found.is !== 'refused') return found;
  const text = `Cannot use image "${path}": ${found.why}; expected a raw or a self-contained qcow2 image`;
  return failedRefusal('ImageRefused', text);
}
