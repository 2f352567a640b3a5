/** Reads the mounts of this machine from the kernel. */
import { readFile } from 'node:fs/promises';

export interface Mount {
  /** An absolute path. */
  readonly target: string;
  /** Major and minor number: `7:3`. */
  readonly device: string;
}

export async function readMounts(): Promise<Mount[]> {
  return parseMounts(await readFile('/proc/self/mountinfo', 'utf8'));
}

/** Parses /proc/self/mountinfo. A mount over another one comes after it. Pure. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [, , device, , target] = line.split(' ');
    return device === undefined || target === undefined ? [] : [{ device, target: unescape(target) }];
  });
}

/** Decodes spaces and backslashes, which the kernel writes as octal numbers. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
