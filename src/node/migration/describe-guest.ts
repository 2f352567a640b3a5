/** Builds the first message of a migration: the current definition of the guest, and how each of its disks is moved. */
import { open, stat } from 'node:fs/promises';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { decideVolumeMoves, type VolumeMove } from '#api/storage/volume-move.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { DiskDevice, DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { DomainInfo, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { MovingDisk } from '#node/hypervisor/migration.ts';
import type { BeginMessage } from '#node/migration/messages.ts';
import { describeDirectory } from '#node/migration/source-directory.ts';
import type { VolumeLookups } from '#node/volumes/volumes-port.ts';

/** Limit for the contents of all small disks of a guest. */
const MAX_CONTENT_BYTES = 4 * 1024 * 1024;

/** The unit of `stat`. */
const BLOCK_BYTES = 512;

/** Throws if the guest cannot be migrated, with a message for the user. */
export async function describeGuest(
  uid: string,
  vmi: Stored<VirtualMachineInstance>,
  domain: DomainInfo,
  { hypervisor, lookups }: { readonly hypervisor: Hypervisor; readonly lookups: VolumeLookups },
): Promise<BeginMessage> {
  const { namespace = '', name, uid: instanceUid } = vmi.metadata;
  const inspection = hypervisor.inspect(domain.id);
  if (inspection === undefined) throw new Error('the guest no longer exists');
  const { definition } = inspection;
  const moves = decideVolumeMoves(vmi.spec, await boundVolumes(vmi, lookups));
  const media = disksWithMedia(definition).map((disk) => ({ disk, move: requireMove(disk, moves) }));
  const sizes = await hypervisor.diskSizes(domain.id);
  // Simulated guests have no directory, and their disks may not be files.
  const dir = hypervisor.workingDir(domain.id);
  const disks: MovingDisk[] = [];
  for (const { disk, move } of media) {
    if (move.is !== 'moves') continue;
    const bytes = sizes.get(disk.id);
    if (bytes === undefined) throw new Error(`the hypervisor does not report the size of disk "${disk.name}"`);
    disks.push({
      deviceId: disk.id,
      bytes,
      usedBytes: dir === undefined ? undefined : await usedBytes(disk),
      overlay: move.overlay,
    });
  }
  return {
    type: 'begin',
    uid,
    instance: { namespace, name, uid: instanceUid },
    definition: withoutBases(definition),
    startedAtMs: domain.startedAtMs,
    paused: domain.current.state === 'paused',
    disks,
    contents: await readContents(media.flatMap(({ disk, move }) => (move.is === 'content' ? [disk] : []))),
    place: dir === undefined ? undefined : await describeDirectory(dir),
  };
}

/** The target prepares the base of an overlay itself, and refuses fields that it does not need. */
export function withoutBases(definition: DomainDefinition): DomainDefinition {
  const devices = definition.devices.map((device) => {
    if (device.type !== 'disk' || device.source?.base === undefined) return device;
    const { path, format } = device.source;
    return { ...device, source: { path, format } };
  });
  return { ...definition, devices };
}

function disksWithMedia({ devices }: DomainDefinition): DiskDevice[] {
  return devices.filter((device) => device.type === 'disk').filter(({ source }) => source !== undefined);
}

function requireMove({ name }: DiskDevice, moves: ReadonlyMap<string, VolumeMove>): VolumeMove {
  const move = moves.get(name);
  if (move === undefined)
    throw new Error(`disk "${name}" of the guest is not in the spec of its VirtualMachineInstance`);
  if (move.is === 'stays') throw new Error(move.why);
  return move;
}

async function usedBytes({ source }: DiskDevice): Promise<number | undefined> {
  const found = await stat(source?.path ?? '').catch(() => undefined);
  return found?.isFile() === true ? found.blocks * BLOCK_BYTES : undefined;
}

async function boundVolumes(
  { spec }: VirtualMachineInstance,
  lookups: VolumeLookups,
): Promise<(claim: string) => PersistentVolume | undefined> {
  const found = new Map<string, PersistentVolume>();
  for (const name of claimNamesOf(spec)) {
    const claim = await lookups.claim(name);
    const volume = claim?.spec.volumeName ? await lookups.volume(claim.spec.volumeName) : undefined;
    if (volume !== undefined) found.set(name, volume);
  }
  return (claim) => found.get(claim);
}

async function readContents(disks: readonly DiskDevice[]): Promise<Readonly<Record<string, string>>> {
  const contents = new Map<string, string>();
  let remainingBytes = MAX_CONTENT_BYTES;
  for (const { id, name, source } of disks) {
    const content = await readBounded(source?.path ?? '', remainingBytes);
    if (content === undefined)
      throw new Error(`disk "${name}" is too large: read-only disks may have ${MAX_CONTENT_BYTES} bytes in total`);
    remainingBytes -= content.length;
    contents.set(id, content.toString('base64'));
  }
  return Object.fromEntries(contents);
}

/** Returns the content of a file, or undefined if it is longer than the limit. */
async function readBounded(path: string, maxBytes: number): Promise<Buffer | undefined> {
  const file = await open(path, 'r');
  try {
    const buffer = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= maxBytes; length += read) {
      read = (await file.read(buffer, length, buffer.length - length, length)).bytesRead;
    }
    return length > maxBytes ? undefined : buffer.subarray(0, length);
  } finally {
    await file.close();
  }
}
