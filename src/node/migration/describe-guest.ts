/** What the source tells of a guest before it goes: as it is now, and what becomes of each of its disks. */
import { open, stat } from 'node:fs/promises';
import { claimNamesOf } from '#api/claim-names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { volumeMoves, type VolumeMove } from '#api/volume-move.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { DiskDevice, DomainDefinition } from '#node/definition/domain-definition.ts';
import type { Domain, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { MovingDisk } from '#node/hypervisor/migration.ts';
import type { Begin } from '#node/migration/messages.ts';
import { placeOf } from '#node/migration/source-place.ts';
import type { VolumeLookups } from '#node/volumes-port.ts';

/** All of a guest together. */
export const MAX_CONTENT_BYTES = 4 * 1024 * 1024;

/** Of what `stat` counts. */
const BLOCK_BYTES = 512;

/** Throws, with a sentence for people, where the guest cannot go. */
export async function describeGuest(
  uid: string,
  vmi: Stored<VirtualMachineInstance>,
  domain: Domain,
  { hypervisor, lookups }: { readonly hypervisor: Hypervisor; readonly lookups: VolumeLookups },
): Promise<Begin> {
  const { namespace = '', name, uid: instanceUid } = vmi.metadata;
  const inspection = hypervisor.inspect(domain.id);
  if (inspection === undefined) throw new Error('the guest is not there any more');
  const { definition } = inspection;
  const moves = volumeMoves(vmi.spec, await boundVolumes(vmi, lookups));
  const media = disksWithMedia(definition).map((disk) => ({ disk, move: moveOf(disk, moves) }));
  const sizes = await hypervisor.diskSizes(domain.id);
  // Simulated guests have none, and their disks need not be files.
  const dir = hypervisor.workingDir(domain.id);
  const disks: MovingDisk[] = [];
  for (const { disk, move } of media) {
    if (move.is !== 'moves') continue;
    const bytes = sizes.get(disk.id);
    if (bytes === undefined) throw new Error(`the hypervisor does not tell how large the disk ${disk.name} is`);
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
    definition,
    startedAtMs: domain.startedAtMs,
    paused: domain.current.state === 'paused',
    disks,
    contents: await readContents(media.flatMap(({ disk, move }) => (move.is === 'content' ? [disk] : []))),
    place: dir === undefined ? undefined : await placeOf(dir),
  };
}

function disksWithMedia({ devices }: DomainDefinition): DiskDevice[] {
  return devices.filter((device) => device.type === 'disk').filter(({ source }) => source !== undefined);
}

function moveOf({ name }: DiskDevice, moves: ReadonlyMap<string, VolumeMove>): VolumeMove {
  const move = moves.get(name);
  if (move === undefined) throw new Error(`the disk ${name} is in the guest, but not in its instance`);
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
  let leftBytes = MAX_CONTENT_BYTES;
  for (const { id, name, source } of disks) {
    const content = await readBounded(source?.path ?? '', leftBytes);
    if (content === undefined) throw new Error(`the disk ${name} is too large to be sent as it is`);
    leftBytes -= content.length;
    contents.set(id, content.toString('base64'));
  }
  return Object.fromEntries(contents);
}

/** Undefined where there is more. */
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
