/** What is mounted where on this machine. The kernel is the only one that remembers. */
import { readFile } from 'node:fs/promises';

export interface Mount {
  /** Absolute. */
  readonly target: string;
  /** `7:3`: major and minor number. */
  readonly device: string;
}

export async function readMounts(): Promise<Mount[]> {
  return parseMounts(await readFile('/proc/self/mountinfo', 'utf8'));
}

/** Pure: of /proc/self/mountinfo. One that lies over another comes after it. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [, , device, , target] = line.split(' ');
    return device === undefined || target === undefined ? [] : [{ device, target: unescape(target) }];
  });
}

/** Blanks and backslashes are told as octal numbers. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
