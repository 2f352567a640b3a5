/** Compares the output of a command with the page, except for times, ages, ids and column widths. Pure. */
import { normalise } from '#test/transcripts/normalise.ts';

const PLACEHOLDERS: readonly (readonly [RegExp, string])[] = [
  // Names with a random suffix of five characters.
  [
    /\b((?:persistent-state-for|virt-launcher|kubevirt-migrate-vm|convert-machine-type|pvc|snapcontent|vmsnapshot-content|restore|vmsnapshot)-[\w<>.-]*)/g,
    '<name>',
  ],
  [/\b\d+(?:\.\d+)?(?:ms|s|m|h)\b/g, '<time>'],
  [/<age>/g, '<time>'],
  [/\b\d+ bytes\b/g, '<n> bytes'],
  [/\bnode-\d\b/g, '<node>'],
  [/\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, '<mac>'],
  // The type behind `q35`: pages show that of Debian's QEMU, simulated nodes have RHEL's.
  [/\bpc-q35-(?:7\.2|rhel9\.2\.0)(?![\w.-])/g, '<q35>'],
];

function plain(text: string): string[] {
  const alike = PLACEHOLDERS.reduce((result, [pattern, instead]) => result.replace(pattern, instead), normalise(text));
  return alike
    .split('\n')
    .map((line) => line.replaceAll(/\s+/g, ' ').trim())
    .filter((line) => line !== '');
}

export function isSameOutput(shown: string, printed: string): boolean {
  return matches(plain(shown), plain(printed));
}

/** A line of three dots matches any number of lines, three dots within a line match any text. */
function matches([first, ...rest]: readonly string[], lines: readonly string[]): boolean {
  if (first === undefined) return lines.length === 0;
  if (first === '...') {
    for (let skip = 0; skip <= lines.length; skip++) if (matches(rest, lines.slice(skip))) return true;
    return false;
  }
  const [line, ...others] = lines;
  return line !== undefined && matchesLine(first, line) && matches(rest, others);
}

function matchesLine(shown: string, line: string): boolean {
  if (!shown.includes('...')) return shown === line;
  const parts = shown.split('...').map((part) => part.trim());
  let from = 0;
  for (const [index, part] of parts.entries()) {
    const found = line.indexOf(part, from);
    if (found < 0 || (index === 0 && found > 0)) return false;
    from = found + part.length;
  }
  const last = parts.at(-1) ?? '';
  return last === '' || line.endsWith(last);
}
