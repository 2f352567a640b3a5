/** Opens an OVF with its files, or an OVA that contains them. Everything is read and checked before it is used. */
import { dirname, join } from 'node:path';
import { CommandError } from '#lib/command-line/command-error.ts';
import { fileSize, hasLocalFile, pathBeside, readChunks, readLocalFile } from '#cli/transfer/local-files.ts';
import { limitList, FileFormatError } from '#formats/findings.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { checkOvaFile, findMissingFiles } from '#formats/ova/check-ova-file.ts';
import { readOva } from '#formats/ova/read-ova.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { XML_LIMITS } from '#lib/xml/xml-scan.ts';

interface SourceFile {
  readonly name: string;
  readonly size: number;
}

export interface ImportSource {
  readonly machine: MachineDescription;
  readonly notes: readonly string[];
  /** Yields the content of these files, each once, in any order. Read each content before you request the next file. */
  files(wanted: ReadonlySet<string>): AsyncIterable<SourceFile & { readonly content: AsyncIterable<Uint8Array> }>;
}

/** Opens the source. The files of `claimed` disks are not needed. Throws CommandError with all errors. */
export async function openImport(path: string, claimed: ReadonlySet<string>): Promise<ImportSource> {
  try {
    return /\.ova$/i.test(path) ? await openOva(path, claimed) : await openOvf(path, claimed);
  } catch (error) {
    if (!(error instanceof FileFormatError)) throw error;
    throw importError(path, error.errors, error);
  }
}

/** Returns an error with one line for each reason. */
export function importError(path: string, reasons: readonly string[], cause?: unknown): CommandError {
  const lines = limitList(reasons).map((reason) => `  ${reason}`);
  return new CommandError([`Cannot import ${path}:`, ...lines].join('\n'), cause === undefined ? {} : { cause });
}

async function openOva(path: string, claimed: ReadonlySet<string>): Promise<ImportSource> {
  await fileSize(path);
  if (await isXml(path)) throw importError(path, ['it is an OVF, not an archive; rename it so that it ends with .ovf']);
  let machine: MachineDescription | undefined;
  const [notes, errors, names]: [string[], string[], Set<string>] = [[], [], new Set()];
  // The archive is read to its end, because the manifest may be last.
  for await (const part of readOva(readChunks(path))) {
    if (part.kind === 'descriptor') machine = readOvf(part.content);
    else if (part.kind === 'note') notes.push(part.text);
    else {
      names.add(part.name);
      const error = machine && checkOvaFile(machine, part);
      if (error !== undefined) errors.push(error);
    }
  }
  if (machine === undefined) throw importError(path, ['it contains no machine']);
  errors.push(...listMissingFiles(machine, names, claimed, 'it is not in the archive'));
  if (errors.length > 0) throw importError(path, errors);
  return { machine, notes, files: (wanted) => filesOfOva(path, wanted) };
}

/** Reports whether the file begins like an XML document, after a byte order mark and blanks. */
async function isXml(path: string): Promise<boolean> {
  for await (const chunk of readChunks(path)) return /^[\uFEFF\s]*</.test(Buffer.from(chunk).toString('utf8', 0, 512));
  return false;
}

async function* filesOfOva(path: string, wanted: ReadonlySet<string>) {
  for await (const part of readOva(readChunks(path))) {
    if (part.kind === 'file' && wanted.has(part.name)) yield part;
  }
}

async function openOvf(path: string, claimed: ReadonlySet<string>): Promise<ImportSource> {
  const machine = readOvf(await readLocalFile(path, XML_LIMITS.bytes));
  const sizes = new Map<string, number>();
  const [errors, names]: [string[], Set<string>] = [[], new Set()];
  const disks = machine.disks.filter(({ name }) => !claimed.has(name));
  for (const { file } of [...disks, { file: machine.state?.file }]) {
    if (file === undefined) continue;
    const found = await findBeside(path, file);
    if (found === undefined) continue;
    if ('refused' in found) {
      errors.push(found.refused);
      names.add(file);
      continue;
    }
    const { size } = found;
    names.add(file);
    sizes.set(file, size);
    const error = checkOvaFile(machine, { name: file, size });
    if (error !== undefined) errors.push(error);
  }
  errors.push(...listMissingFiles(machine, names, claimed, 'it is not in the directory of the OVF'));
  if (errors.length > 0) throw importError(path, errors);
  return { machine, notes: [], files: (wanted) => filesBeside(path, wanted, sizes) };
}

/** Returns the size of a file that the OVF names, or why it is not used; undefined if there is none. */
async function findBeside(
  path: string,
  file: string,
): Promise<{ readonly size: number } | { readonly refused: string } | undefined> {
  if (!(await hasLocalFile(join(dirname(path), file)))) return undefined;
  try {
    return { size: await fileSize(await pathBeside(path, file)) };
  } catch (error) {
    if (error instanceof CommandError) return { refused: error.message };
    throw error;
  }
}

async function* filesBeside(path: string, wanted: ReadonlySet<string>, sizes: ReadonlyMap<string, number>) {
  for (const [name, size] of sizes) {
    if (wanted.has(name)) yield { name, size, content: readChunks(await pathBeside(path, name)) };
  }
}

function listMissingFiles(
  machine: MachineDescription,
  names: ReadonlySet<string>,
  claimed: ReadonlySet<string>,
  why: string,
): string[] {
  const { file: state } = machine.state ?? {};
  const lost = state === undefined || names.has(state) ? [] : [state];
  const needed = { disks: machine.disks.filter(({ name, lun }) => !claimed.has(name) && lun === undefined) };
  const ofDisks = findMissingFiles(needed, names).map((file) => {
    const disk = needed.disks.find((one) => one.file === file);
    return `the file ${JSON.stringify(file)} of the disk ${disk?.name} is missing: ${why}; use --claim ${disk?.name}=CLAIM to name a claim with its content`;
  });
  return [
    ...ofDisks,
    ...lost.map((file) => `the file ${JSON.stringify(file)} of the persistent state is missing: ${why}`),
  ];
}
